//! A node whose data directory was emptied forgets its votes: it is not let in again.

use crate::cluster::{TestCluster, patient};

/// A write and a read through each node; with them its announcement is applied everywhere.
fn use_all(cluster: &TestCluster, nodes: &[usize], round: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    runtime.block_on(async {
        for at in nodes {
            let key = format!("{round}-{at}");
            let written = cluster.client(*at).put_with(&key, "v", &patient()).await;
            written.expect("executed");
            for reader in nodes {
                let found = cluster.client(*reader).get_with(&key, &patient()).await;
                assert!(found.expect("served").is_some(), "{key} through {reader}");
            }
        }
    });
}

/// Empties the directory of the node at `at`, and returns why it does not start again.
fn emptied(at: usize) -> String {
    let mut cluster = TestCluster::start(3);
    use_all(&cluster, &[0, 1, 2], "before");
    cluster.stop(at);
    cluster.empty_directory(at);
    let reason = cluster.start_refused(at);

    let others: Vec<_> = (0..3).filter(|other| *other != at).collect();
    cluster.wait_for_leader();
    use_all(&cluster, &others, "after");
    reason
}

#[test]
fn emptied_follower_or_leader_is_refused_and_the_others_serve() {
    let reason = emptied(2);
    assert!(
        reason.contains("node 3 was emptied or replaced"),
        "{reason}"
    );
}

#[test]
fn emptied_node_with_the_lowest_id_founds_no_second_cluster() {
    let reason = emptied(0);
    assert!(
        reason.contains("node 1 was emptied or replaced"),
        "{reason}"
    );
}

#[test]
fn emptied_node_that_starts_before_the_others_is_refused_when_they_are_back() {
    let mut cluster = TestCluster::start(3);
    use_all(&cluster, &[0, 1, 2], "before");
    for at in 0..3 {
        cluster.stop(at);
    }
    cluster.empty_directory(0);
    cluster.start_node(0);
    cluster.start_node(1);
    cluster.start_node(2);
    let reason = cluster.wait_for_failure(0);
    assert!(
        reason.contains("node 1 was emptied or replaced"),
        "{reason}"
    );
    cluster.wait_for_leader();
    use_all(&cluster, &[1, 2], "after");
}

#[test]
fn restarted_nodes_are_let_in() {
    let mut cluster = TestCluster::start(3);
    use_all(&cluster, &[0, 1, 2], "before");
    for at in 0..3 {
        cluster.stop(at);
        cluster.start_node(at);
        cluster.wait_for_leader();
    }
    use_all(&cluster, &[0, 1, 2], "after");
}
