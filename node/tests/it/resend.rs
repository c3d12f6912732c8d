//! A sub-batch that is sent again is applied once.

use crate::cluster::{TestCluster, eventually, patient};

/// Deletes a key through a follower, breaks what `disturb` breaks after the leader has executed the
/// delete but before its answer arrived, and returns whether the delete says that the key existed:
/// a second execution would find it gone.
fn delete_across(disturb: impl FnOnce(&mut TestCluster, usize, usize)) -> bool {
    let mut cluster = TestCluster::start(3);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let leader = cluster.wait_for_leader();
    let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
    runtime.block_on(async {
        cluster
            .client(follower)
            .put("k", "v")
            .await
            .expect("executed");
    });

    let leader_address = cluster.nodes[leader].member.peer.clone();
    cluster.nodes[follower]
        .transport
        .hold_replies(&leader_address);
    let client = cluster.client(follower);
    let deleted = runtime.spawn(async move { client.delete_with("k", &patient()).await });
    runtime.block_on(eventually(async || {
        let found = cluster.client(other).get("k").await.ok()?;
        found.is_none().then_some(())
    }));
    assert!(!deleted.is_finished(), "the answer is held back");

    disturb(&mut cluster, leader, follower);
    runtime
        .block_on(deleted)
        .expect("no panic")
        .expect("the outcome is known")
        .existed
}

#[test]
fn a_sub_batch_sent_again_after_a_broken_link_is_applied_once() {
    let existed = delete_across(|cluster, leader, follower| {
        let address = cluster.nodes[leader].member.peer.clone();
        cluster.nodes[follower]
            .transport
            .break_connections(&address);
    });
    assert!(existed);
}

#[test]
fn a_sub_batch_sent_again_after_a_leader_change_is_applied_once() {
    let existed = delete_across(|cluster, leader, _| cluster.kill(leader));
    assert!(existed);
}
