//! Any node serves, whatever happens to the others.

use kelp_client::{Executed, ScanOptions, ScanRange};

use crate::cluster::{TestCluster, eventually, patient};

#[test]
fn a_write_through_any_node_is_read_through_every_node() {
    let cluster = TestCluster::start(3);
    runtime().block_on(async {
        for writer in 0..3 {
            let key = format!("from-{writer}");
            cluster
                .client(writer)
                .put(&key, b"value")
                .await
                .expect("the write is executed");
            for reader in 0..3 {
                let found = cluster
                    .client(reader)
                    .get(&key)
                    .await
                    .expect("the read is served");
                assert_eq!(
                    found.expect("the key is there").value,
                    "value",
                    "{key} through node {reader}"
                );
            }
        }
        assert!(
            cluster
                .client(0)
                .delete("from-1")
                .await
                .expect("executed")
                .existed
        );
        assert!(
            !cluster
                .client(1)
                .delete("from-1")
                .await
                .expect("executed")
                .existed
        );
        assert_eq!(cluster.client(2).get("from-1").await.expect("served"), None);
    });
}

#[test]
fn a_scan_pages_through_a_range_in_both_directions() {
    let cluster = TestCluster::start(3);
    runtime().block_on(async {
        let client = cluster.client(1);
        let keys: Vec<String> = (0..50).map(|number| format!("p/{number:03}")).collect();
        for key in &keys {
            client.put(key, key).await.expect("executed");
        }
        client.put("a", "before").await.expect("executed");
        client.put("q", "behind").await.expect("executed");
        let ranges = [
            ScanRange::Prefix(b"p/".to_vec().into()),
            ScanRange::Between {
                start: b"p/".to_vec().into(),
                end: Some(b"p0".to_vec().into()),
            },
        ];
        for (range, reverse) in ranges
            .into_iter()
            .flat_map(|range| [(range.clone(), false), (range, true)])
        {
            let options = ScanOptions {
                range,
                reverse,
                page_records_max: Some(7),
                ..ScanOptions::default()
            };
            let mut scan = cluster.client(2).scan(options);
            let mut found = Vec::new();
            while let Some(page) = scan.next_page().await.expect("served") {
                assert!(page.records.len() <= 7);
                found.extend(
                    page.records
                        .into_iter()
                        .map(|record| String::from_utf8_lossy(&record.key).into_owned()),
                );
            }
            if reverse {
                found.reverse();
            }
            assert_eq!(found, keys, "reverse: {reverse}");
        }
    });
}

#[test]
fn writes_are_refused_without_a_majority_and_resume_with_it() {
    let mut cluster = TestCluster::start(3);
    let runtime = runtime();
    cluster.stop(0);
    cluster.stop(1);
    let refused = runtime.block_on(eventually(async || {
        let error = cluster.client(2).put("k", "v").await.err()?;
        (error.executed() == Executed::No).then(|| error.to_string())
    }));
    assert!(
        refused.contains("n1") && refused.contains("n2"),
        "the missing voters are named: {refused}"
    );

    cluster.start_node(1);
    runtime.block_on(async {
        cluster
            .client(2)
            .put_with("k", "after", &patient())
            .await
            .expect("two of three suffice");
        let found = cluster
            .client(1)
            .get_with("k", &patient())
            .await
            .expect("served");
        assert_eq!(found.expect("there").value, "after");
    });
}

#[test]
fn a_stopped_leader_hands_over_and_everything_survives_a_restart_of_all() {
    let mut cluster = TestCluster::start(3);
    let runtime = runtime();
    let leader = cluster.wait_for_leader();
    runtime.block_on(async {
        cluster
            .client(leader)
            .put("k", "v")
            .await
            .expect("executed");
    });
    cluster.stop(leader);
    let next = cluster.wait_for_leader();
    assert_ne!(leader, next);
    for at in (0..3).filter(|at| *at != leader) {
        cluster.stop(at);
    }
    for at in 0..3 {
        cluster.start_node(at);
    }
    cluster.wait_for_leader();
    runtime.block_on(async {
        for at in 0..3 {
            let found = cluster
                .client(at)
                .get_with("k", &patient())
                .await
                .expect("served");
            assert_eq!(found.expect("there").value, "v");
        }
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime can be made")
}
