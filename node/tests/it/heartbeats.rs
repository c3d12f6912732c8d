//! Heartbeats of real nodes over loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use kelp_node::node::TelemetryMode;
use kelp_node::status_report::{ReportedHeartbeat, ReportedRole};
use tokio::runtime::Runtime;

use crate::cluster::{ClusterOptions, TestCluster, eventually, patient};

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime can be made")
}

/// Waits until all that a node says of the heartbeats of the others is as wanted.
async fn heard(
    cluster: &TestCluster,
    at: usize,
    is_wanted: impl Fn(&ReportedHeartbeat) -> bool,
) -> Vec<ReportedHeartbeat> {
    eventually(async || {
        let heartbeats = cluster.report(at).await.ok()?.heartbeats;
        let all = heartbeats.iter().all(&is_wanted);
        (all && heartbeats.len() + 1 == cluster.nodes.len()).then_some(heartbeats)
    })
    .await
}

fn arrives(heartbeat: &ReportedHeartbeat) -> bool {
    heartbeat.state == "arriving" && heartbeat.round_trip_us.is_some()
}

/// The page of a node's metrics.
#[expect(clippy::disallowed_methods, reason = "asks as Prometheus does")]
fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the node listens");
    let request = "GET /metrics HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it answers");
    page
}

fn metric(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
}

#[test]
fn three_nodes_hear_each_other_and_say_so() {
    let mut cluster = TestCluster::start(3);
    let runtime = runtime();
    for at in 0..3 {
        let heartbeats = runtime.block_on(heard(&cluster, at, arrives));
        for heartbeat in heartbeats {
            assert!(heartbeat.age_ms.is_some(), "{heartbeat:?}");
            assert!(heartbeat.clock_offset_ms.is_some(), "{heartbeat:?}");
            assert_eq!(heartbeat.version.as_deref(), Some("0.1.0"));
            assert!(heartbeat.memory_bytes.is_none_or(|bytes| bytes > 1 << 20));
        }
    }
    let leader = cluster.wait_for_leader();
    let leader_id = cluster.nodes[leader].id.get();
    let of_leader = runtime.block_on(heard(&cluster, (leader + 1) % 3, |heartbeat| {
        (heartbeat.role == Some(ReportedRole::Leader)) == (heartbeat.peer == leader_id)
    }));
    assert!(of_leader.iter().all(|heartbeat| heartbeat.term >= Some(1)));
    let page = metrics(&cluster.nodes[leader].member.http);
    let other = cluster.nodes[(leader + 1) % 3].id;
    for name in ["age_seconds", "round_trip_seconds", "lost_ratio"] {
        let name = format!("kelp_heartbeat_{name}{{peer=\"{other}\"}}");
        assert!(metric(&page, &name).is_some(), "{name}");
    }
    // A node that comes back has another boot and other connections.
    cluster.kill((leader + 1) % 3);
    runtime.block_on(eventually(async || {
        let heartbeats = cluster.report(leader).await.ok()?.heartbeats;
        let gone = |heartbeat: &&ReportedHeartbeat| heartbeat.state == "missing";
        (heartbeats.iter().filter(gone).count() == 1).then_some(())
    }));
    cluster.start_node((leader + 1) % 3);
    for at in 0..3 {
        runtime.block_on(heard(&cluster, at, arrives));
    }
}

#[test]
fn a_cluster_whose_udp_is_blocked_serves_and_says_so() {
    let options = ClusterOptions {
        udp_blocked: true,
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(3, options);
    cluster.wait_for_leader();
    let runtime = runtime();
    for at in 0..3 {
        let client = cluster.client(at);
        let key = format!("key{at}");
        runtime
            .block_on(client.put_with(key.as_bytes(), b"value", &patient()))
            .expect("writes need no heartbeats");
    }
    for at in 0..3 {
        runtime.block_on(heard(&cluster, at, |heartbeat| {
            heartbeat.state == "blocked"
        }));
    }
    for node in &cluster.nodes {
        node.transport.block_udp(false);
    }
    for at in 0..3 {
        runtime.block_on(heard(&cluster, at, arrives));
    }
}

#[test]
fn telemetry_and_garbage_are_told_apart() {
    let options = ClusterOptions {
        telemetry: TelemetryMode::Local,
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(1, options);
    cluster.wait_for_leader();
    let member = &cluster.nodes[0].member;
    let target: SocketAddr = member.peer.parse().expect("an address");
    #[expect(clippy::disallowed_methods, reason = "sends as any program may")]
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    runtime().block_on(eventually(async || {
        for datagram in [
            &b"\xa1\x05\x00\x0dqueue.depth=3"[..],
            b"\xa1\x06\x00\x00",
            b"noise",
        ] {
            socket.send_to(datagram, target).expect("it leaves");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let page = metrics(&member.http);
        let value = metric(&page, "kelp_telemetry_value{name=\"queue.depth\"}");
        let refused = metric(&page, "kelp_heartbeat_refused_total{reason=\"malformed\"}");
        (value == Some(3.0) && refused >= Some(2.0)).then_some(())
    }));
}
