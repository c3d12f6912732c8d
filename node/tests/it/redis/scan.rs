//! SCAN returns every key that was there all the time, whatever else is written, and through
//! whichever nodes it goes.

use std::collections::BTreeSet;

use super::*;

/// Cursor and keys of a page.
async fn page(wire: &mut Wire, line: &str) -> (String, Vec<String>) {
    let reply = wire.ask(line).await;
    let (cursor, keys) = reply
        .strip_prefix("[\"")
        .and_then(|rest| rest.split_once("\" ["))
        .expect("a cursor and keys");
    let keys = keys.trim_end_matches(']');
    let keys = keys.split_whitespace();
    (
        cursor.to_owned(),
        keys.map(|key| key.trim_matches('"').to_owned()).collect(),
    )
}

async fn fill(wire: &mut Wire, prefix: &str, count: usize) {
    let mut bytes = Vec::new();
    for number in 0..count {
        let key = format!("{prefix}{number:04}");
        bytes.extend_from_slice(&wire::encode(&[b"SET", key.as_bytes(), b"v"]));
    }
    wire.send(&bytes).await;
    for _ in 0..count {
        assert_eq!(wire.next().await.as_deref(), Some("OK"));
    }
}

#[test]
fn every_key_is_found_once_through_changing_nodes_while_others_come_and_go() {
    const KEYS: usize = 500;
    let cluster = TestCluster::start(3);
    let runtime = Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        let mut wires = Vec::new();
        for node in &cluster.nodes {
            wires.push(Wire::open(&node.resp).await);
        }
        fill(&mut wires[0], "stays:", KEYS).await;
        fill(&mut wires[0], "goes:", KEYS).await;
        let mut cursor = "0".to_owned();
        let mut found = Vec::new();
        for round in 0.. {
            let wire = &mut wires[round % 3];
            let line = format!("SCAN {cursor} COUNT 50");
            let (next, keys) = page(wire, &line).await;
            found.extend(keys.into_iter().filter(|key| key.starts_with("stays:")));
            assert!(wire.ask(&format!("DEL goes:{round:04}")).await == ":1");
            assert_eq!(wire.ask(&format!("SET comes:{round} v")).await, "OK");
            cursor = next;
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(found.len(), KEYS);
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), KEYS);
    });
}

#[test]
fn a_scan_whose_node_is_gone_begins_again_and_misses_nothing() {
    const KEYS: usize = 100;
    let mut cluster = TestCluster::start(3);
    let leader = cluster.wait_for_leader();
    let (gone, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let runtime = Runtime::new().expect("a runtime can be made");
    let cursor = runtime.block_on(async {
        let mut wire = Wire::open(&cluster.nodes[gone].resp).await;
        fill(&mut wire, "key:", KEYS).await;
        let (cursor, keys) = page(&mut wire, "SCAN 0 COUNT 60").await;
        assert_eq!(keys.len(), 60);
        cursor
    });
    cluster.kill(gone);
    runtime.block_on(async {
        let mut wire = Wire::open(&cluster.nodes[other].resp).await;
        let (cursor, keys) = page(&mut wire, &format!("SCAN {cursor} COUNT 60")).await;
        assert_eq!(keys.first().map(String::as_str), Some("key:0000"));
        let (cursor, rest) = page(&mut wire, &format!("SCAN {cursor} COUNT 60")).await;
        assert_eq!((cursor.as_str(), keys.len() + rest.len()), ("0", KEYS));
        // A cursor that never was is one that is gone.
        let (_, keys) = page(&mut wire, "SCAN 12345 COUNT 60").await;
        assert_eq!(keys.first().map(String::as_str), Some("key:0000"));
    });
}

#[test]
fn patterns_types_and_databases_narrow_a_scan() {
    alone(async |mut wire| {
        fill(&mut wire, "a:", 20).await;
        fill(&mut wire, "b:", 20).await;
        let count = async |wire: &mut Wire, options: &str| {
            let (cursor, keys) = page(wire, &format!("SCAN 0 COUNT 1000 {options}")).await;
            assert_eq!(cursor, "0");
            keys.len()
        };
        assert_eq!(count(&mut wire, "MATCH a:*").await, 20);
        assert_eq!(count(&mut wire, "MATCH *5").await, 4);
        assert_eq!(count(&mut wire, "MATCH a:001[0-4]").await, 5);
        assert_eq!(count(&mut wire, "MATCH a:* TYPE string").await, 20);
        assert_eq!(count(&mut wire, "TYPE list").await, 0);
        let long = format!("SCAN 0 MATCH {}", "a".repeat(2_000));
        assert!(
            wire.ask(&long)
                .await
                .starts_with("-ERR a pattern has at most")
        );
        let (cursor, keys) = page(&mut wire, "SCAN 0").await;
        assert_eq!(keys.len(), 10);
        // A place in another database is none in this one.
        assert_eq!(wire.ask("SELECT 1").await, "OK");
        assert_eq!(wire.ask("SET only v").await, "OK");
        let (cursor, keys) = page(&mut wire, &format!("SCAN {cursor}")).await;
        assert_eq!(
            (cursor.as_str(), &keys[..]),
            ("0", &["only".to_owned()][..])
        );
    });
}
