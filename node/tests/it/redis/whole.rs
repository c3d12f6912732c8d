//! Three nodes: any of them takes any command, and a majority is needed.

use super::*;
use crate::cluster::eventually;

#[test]
fn any_node_counts_and_no_increment_is_lost_or_done_twice() {
    const INCREMENTS: usize = 100;
    let cluster = TestCluster::start(3);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let counting = cluster.nodes.iter().map(async |node| {
            let mut wire = Wire::open(&node.resp).await;
            wire.send(&wire::encode(&[b"INCR", b"n"]).repeat(INCREMENTS))
                .await;
            let mut last = 0;
            for _ in 0..INCREMENTS {
                let reply = wire.next().await.expect("a reply");
                let number = reply[1..].parse::<usize>().expect("a number");
                assert!(number > last, "{number} after {last}");
                last = number;
            }
        });
        futures_util::future::join_all(counting).await;
        let expected = format!("\"{}\"", 3 * INCREMENTS);
        for node in &cluster.nodes {
            let mut wire = Wire::open(&node.resp).await;
            assert_eq!(wire.ask("GET n").await, expected);
        }
    });
}

#[test]
fn without_a_majority_commands_are_refused_and_info_says_that_it_is_loading() {
    let mut cluster = TestCluster::start(3);
    cluster.kill(1);
    cluster.kill(2);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let mut wire = Wire::open(&cluster.nodes[0].resp).await;
        for line in ["SET k v", "GET k", "FLUSHDB", "SCAN 0"] {
            let reply = eventually(async || {
                let reply = wire.ask(line).await;
                reply.starts_with("-CLUSTERDOWN").then_some(reply)
            })
            .await;
            assert!(reply.contains("2 of 3 voters do not answer"), "{reply}");
        }
        assert_eq!(wire.ask("PING").await, "PONG");
        let info = wire.ask("INFO").await;
        assert!(info.contains("\r\nloading:1\r\n"), "{info}");
    });
}
