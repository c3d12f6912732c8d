//! Who gets in, who is told why not, and how much those inside may hold.

use kelp_node::node::NodeLimits;
use kelp_wire::Status;
use tokio::runtime::Runtime;

use crate::cluster::{ClusterOptions, TestCluster, eventually};
use crate::raw::{RawConnection, RawReply, get, hello, metric};

fn limited(limits: NodeLimits) -> TestCluster {
    let options = ClusterOptions {
        limits,
        ..ClusterOptions::default()
    };
    TestCluster::start_with(1, options)
}

async fn greet(address: &str) -> (RawConnection, RawReply) {
    let mut connection = RawConnection::open(address).await;
    connection.send(&hello()).await;
    let reply = connection.next().await.expect("hello is answered");
    (connection, reply)
}

#[test]
fn a_client_over_the_limit_is_told_and_gets_in_when_another_leaves() {
    let cluster = limited(NodeLimits {
        connection_count_max: 3,
        ..NodeLimits::default()
    });
    let member = &cluster.nodes[0].member;
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let silent = RawConnection::open(&member.client).await;
        let mut inside = Vec::new();
        for _ in 0..3 {
            let (connection, reply) = greet(&member.client).await;
            assert_eq!(reply.status, Status::Ok);
            inside.push(connection);
        }
        let (mut refused, reply) = greet(&member.client).await;
        assert_eq!(reply.status, Status::Overloaded);
        assert!(reply.text().contains("3 clients"), "{reply:?}");
        assert!(refused.rest().await.is_empty(), "one frame, then the end");

        let count = async |name: &str| metric(&member.http, name).await;
        assert_eq!(count("kelp_client_connections{state=\"greeted\"}").await, 3);
        let refusals = "kelp_client_refused_connections_total{reason=\"full\"}";
        assert_eq!(count(refusals).await, 1);

        drop(inside.pop());
        eventually(async || {
            let (_, reply) = greet(&member.client).await;
            (reply.status == Status::Ok).then_some(())
        })
        .await;
        drop(silent);
    });
}

#[test]
fn a_port_that_speaks_tls_only_says_so_to_a_client_without_it() {
    let options = ClusterOptions {
        tls_only: true,
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(1, options);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let (mut connection, reply) = greet(&cluster.nodes[0].member.client).await;
        assert_eq!((reply.id, reply.status), (1, Status::Refused));
        assert!(reply.text().contains("--ca"), "{reply:?}");
        assert!(connection.rest().await.is_empty());
    });
}

#[test]
fn replies_that_nobody_reads_stay_within_the_budget() {
    const BUDGET: usize = 256 << 10;
    const GETS: u32 = 200;
    let cluster = limited(NodeLimits {
        held_bytes_max: BUDGET,
        ..NodeLimits::default()
    });
    cluster.wait_for_leader();
    let member = &cluster.nodes[0].member;
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let value = vec![b'v'; 64 << 10];
        let put = cluster.client(0).put("k", value.clone()).await;
        put.expect("executed");

        let mut bytes = hello();
        for id in 2..GETS + 2 {
            bytes.extend_from_slice(&get(id, b"k"));
        }
        let mut connection = RawConnection::open(&member.client).await;
        connection.send(&bytes).await;
        let served = "kelp_client_requests_total{op=\"get\",status=\"ok\"}";
        let (mut before, mut quiet, mut held_max) = (0, 0, 0);
        eventually(async || {
            let now = metric(&member.http, served).await;
            quiet = if now > 0 && now == before {
                quiet + 1
            } else {
                0
            };
            before = now;
            held_max = held_max.max(metric(&member.http, "kelp_client_held_bytes").await);
            (quiet > 10).then_some(())
        })
        .await;
        assert!(before < GETS.into(), "the sockets took {before} replies");
        // A buffer at most doubles with the reply that goes over the budget.
        let bound = u64::try_from(2 * BUDGET + 2 * value.len()).expect("small");
        assert!(held_max <= bound, "{held_max} bytes held");

        for _ in 0..=GETS {
            let reply = connection.next().await.expect("every request is answered");
            assert_eq!(reply.status, Status::Ok);
        }
        eventually(async || {
            let held = metric(&member.http, "kelp_client_held_bytes").await;
            (held < 128 << 10).then_some(())
        })
        .await;
    });
}
