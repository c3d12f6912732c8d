//! Who gets in, and what ends a connection.

use kelp_node::node::NodeLimits;

use super::*;
use crate::cluster::{ClusterOptions, eventually};
use crate::raw::metric;

async fn until_close(address: &str, bytes: &[u8]) -> Vec<String> {
    let mut wire = Wire::open(address).await;
    wire.send(bytes).await;
    wire.rest().await
}

#[test]
fn malformed_streams_get_their_replies_then_one_error_then_the_end() {
    let cluster = TestCluster::start(1);
    let address = &cluster.nodes[0].resp;
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let invalid = "-ERR Protocol error: invalid multibulk length";
        let set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
        let cases = [
            ("*x\r\n", invalid),
            ("*99999999\r\n", invalid),
            ("*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'"),
            (
                "*1\r\n$99999999\r\n",
                "-ERR Protocol error: invalid bulk length",
            ),
            (
                "\"GET k\r\n",
                "-ERR Protocol error: unbalanced quotes in request",
            ),
            (
                "*2\r\n$3\r\nGET\r\n",
                "-ERR Protocol error: the command was not complete within 10 s",
            ),
        ];
        let ends = cases.map(async |(bytes, expected)| {
            let stream = [set, bytes].concat();
            let replies = until_close(address, stream.as_bytes()).await;
            assert_eq!(replies, ["OK", expected], "{bytes}");
        });
        futures_util::future::join_all(ends).await;
        let mut wire = Wire::open(address).await;
        assert_eq!(wire.ask("GET k").await, "\"v\"");
    });
}

#[test]
fn a_client_over_the_limit_is_told_and_gets_in_when_another_leaves() {
    let options = ClusterOptions {
        limits: NodeLimits {
            connection_count_max: 2,
            ..NodeLimits::default()
        },
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(1, options);
    let node = &cluster.nodes[0];
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let mut first = Wire::open(&node.resp).await;
        assert_eq!(first.ask("PING").await, "PONG");
        let mut second = Wire::open(&node.resp).await;
        assert_eq!(second.ask("PING").await, "PONG");
        let refused = Wire::open(&node.resp).await.rest().await;
        assert_eq!(refused, ["-ERR max number of clients reached"]);
        assert_eq!(metric(&node.member.http, "kelp_resp_connections").await, 2);
        let pings = "kelp_resp_commands_total{command=\"ping\"}";
        assert_eq!(metric(&node.member.http, pings).await, 2);
        drop(second);
        eventually(async || {
            let mut wire = Wire::open(&node.resp).await;
            wire.send(b"PING\r\n").await;
            (wire.next().await.as_deref() == Some("PONG")).then_some(())
        })
        .await;
        assert!(first.ask("NOSUCH").await.starts_with("-ERR"));
        assert_eq!(metric(&node.member.http, "kelp_resp_errors_total").await, 1);
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
        let replies = until_close(&cluster.nodes[0].resp, b"PING\r\n").await;
        assert_eq!(replies.len(), 1, "{replies:?}");
        assert!(replies[0].contains("speaks TLS only"), "{replies:?}");
    });
}

#[test]
fn a_client_that_reads_no_replies_is_not_buffered_without_end() {
    const BUDGET: usize = 1 << 20;
    let options = ClusterOptions {
        limits: NodeLimits {
            held_bytes_max: BUDGET,
            ..NodeLimits::default()
        },
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(1, options);
    cluster.wait_for_leader();
    let node = &cluster.nodes[0];
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let mut wire = Wire::open(&node.resp).await;
        let value = vec![b'v'; 100_000];
        wire.send(&wire::encode(&[b"SET", b"k", &value])).await;
        assert_eq!(wire.next().await.as_deref(), Some("OK"));
        let gets = 1_000;
        wire.send(&wire::encode(&[b"GET", b"k"]).repeat(gets)).await;
        let served = "kelp_resp_commands_total{command=\"get\"}";
        let (mut before, mut quiet, mut held_max) = (0, 0, 0);
        eventually(async || {
            let now = metric(&node.member.http, served).await;
            quiet = if now > 0 && now == before {
                quiet + 1
            } else {
                0
            };
            before = now;
            held_max = held_max.max(metric(&node.member.http, "kelp_client_held_bytes").await);
            (quiet > 10).then_some(())
        })
        .await;
        assert!(
            before < u64::try_from(gets).expect("small"),
            "{before} served"
        );
        assert!(
            held_max < 4 * u64::try_from(BUDGET).expect("small"),
            "{held_max} held"
        );
        let mut answered = 0;
        for _ in 0..gets {
            let reply = wire.next().await.expect("every command has a reply");
            answered += usize::from(reply.len() > value.len());
        }
        assert!(answered > 0);
    });
}

#[test]
fn half_sent_commands_do_not_keep_the_room_of_others() {
    let options = ClusterOptions {
        limits: NodeLimits {
            held_bytes_max: 1 << 20,
            ..NodeLimits::default()
        },
        ..ClusterOptions::default()
    };
    let cluster = TestCluster::start_with(1, options);
    cluster.wait_for_leader();
    let node = &cluster.nodes[0];
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let mut half = b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1000000\r\n".to_vec();
        half.resize(400_000, b'v');
        let mut stuck = Vec::new();
        for _ in 0..8 {
            let mut wire = Wire::open(&node.resp).await;
            wire.send(&half).await;
            stuck.push(wire);
        }
        let held = "kelp_client_held_bytes";
        eventually(async || (metric(&node.member.http, held).await >= 1 << 20).then_some(())).await;
        // Some are open still, some are gone, and the node sees neither while it does not read.
        stuck.truncate(4);
        let mut wire = Wire::open(&node.resp).await;
        assert!(wire.ask("GET k").await.starts_with("-TRYAGAIN"));
        eventually(async || (wire.ask("SET k v").await == "OK").then_some(())).await;
        for mut wire in stuck {
            assert!(wire.rest().await[0].contains("not complete within 10 s"));
        }
    });
}

#[test]
fn a_web_page_cannot_have_a_browser_write() {
    let cluster = TestCluster::start(1);
    let address = &cluster.nodes[0].resp;
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        for first in ["POST / HTTP/1.1\r\n", "Host: localhost:6379\r\n"] {
            let request = format!("{first}content-length: 20\r\n\r\nSET page 1\r\n");
            let replies = until_close(address, request.as_bytes()).await;
            assert_eq!(replies, [""; 0]);
        }
        let mut wire = Wire::open(address).await;
        assert_eq!(wire.ask("EXISTS page").await, ":0");
    });
}
