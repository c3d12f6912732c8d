//! Replies in the order of commands, and what a pipeline may rely on.

use super::*;
use crate::cluster::patient;

/// Commands in one pipeline; enough to span several entries.
const ROUNDS: usize = 300;

/// Writes and reads of one key in turn: each read sees the write before it and none after.
async fn alternate(wire: &mut Wire) {
    let mut bytes = Vec::new();
    for round in 0..ROUNDS {
        let value = round.to_string();
        bytes.extend_from_slice(&wire::encode(&[b"SET", b"k", value.as_bytes()]));
        bytes.extend_from_slice(&wire::encode(&[b"GET", b"k"]));
        bytes.extend_from_slice(&wire::encode(&[b"INCR", b"n"]));
        bytes.extend_from_slice(b"PING\r\n");
    }
    wire.send(&bytes).await;
    for round in 0..ROUNDS {
        let expected = [
            "OK",
            &format!("\"{round}\""),
            &format!(":{}", round + 1),
            "PONG",
        ];
        for expected in expected {
            assert_eq!(
                wire.next().await.as_deref(),
                Some(expected),
                "round {round}"
            );
        }
    }
}

#[test]
fn a_pipeline_is_answered_in_order_on_the_leader_and_on_a_follower() {
    let cluster = TestCluster::start(3);
    let leader = cluster.wait_for_leader();
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        for at in [leader, (leader + 1) % 3] {
            let mut wire = Wire::open(&cluster.nodes[at].resp).await;
            assert!(wire.ask("DEL n k").await.starts_with(':'));
            alternate(&mut wire).await;
        }
    });
}

#[test]
fn many_keys_are_set_and_deleted_all_at_once() {
    let cluster = TestCluster::start(3);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let writer = async {
            let mut wire = Wire::open(&cluster.nodes[0].resp).await;
            for round in 0..200 {
                let reply = wire
                    .ask(&format!("MSET a {round} b {round} c {round}"))
                    .await;
                assert_eq!(reply, "OK");
                if round % 10 == 9 {
                    assert_eq!(wire.ask("DEL a b c").await, ":3");
                }
            }
        };
        let reader = async {
            let mut wire = Wire::open(&cluster.nodes[1].resp).await;
            for _ in 0..200 {
                let reply = wire.ask("MGET a b c").await;
                let values: Vec<_> = reply.trim_matches(['[', ']']).split(' ').collect();
                assert!(values.iter().all(|value| *value == values[0]), "{reply}");
                let count = wire.ask("EXISTS a b c").await;
                assert!([":0", ":3"].contains(&count.as_str()), "{count}");
            }
        };
        tokio::join!(writer, reader);
    });
}

#[test]
fn the_binary_protocol_sees_the_same_keys() {
    let cluster = TestCluster::start(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let client = cluster.client(0);
        let mut wire = Wire::open(&cluster.nodes[0].resp).await;
        assert_eq!(wire.ask("SET from-redis 1").await, "OK");
        let found = client
            .get_with("from-redis", &patient())
            .await
            .expect("read");
        assert_eq!(found.map(|found| found.value.to_vec()), Some(b"1".to_vec()));
        client.put("from-binary", "2").await.expect("executed");
        assert_eq!(wire.ask("INCR from-binary").await, ":3");
        assert_eq!(wire.ask("SELECT 1").await, "OK");
        assert_eq!(wire.ask("GET from-binary").await, "nil");
    });
}

#[test]
fn clearing_a_large_database_is_done_before_what_stands_behind_it() {
    const KEYS: usize = 25_000;
    alone(async |mut wire| {
        let mut bytes = Vec::new();
        for start in (0..KEYS).step_by(1_000) {
            let mut words = vec![b"MSET".to_vec()];
            for key in start..start + 1_000 {
                words.push(format!("key:{key}").into_bytes());
                words.push(b"v".to_vec());
            }
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            bytes.extend_from_slice(&wire::encode(&words));
        }
        bytes.extend_from_slice(b"DBSIZE\r\nFLUSHDB\r\nDBSIZE\r\nSET k v\r\nDBSIZE\r\n");
        wire.send(&bytes).await;
        for _ in 0..KEYS / 1_000 {
            assert_eq!(wire.next().await.as_deref(), Some("OK"));
        }
        for expected in [&format!(":{KEYS}"), "OK", ":0", "OK", ":1"] {
            assert_eq!(wire.next().await.as_deref(), Some(expected));
        }
    });
}
