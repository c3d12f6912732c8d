//! A restarted leader that lost entries which its followers hold.
//!
//! The leader sends entries before its own disk has them. When followers commit such an entry and
//! the leader then loses it with its power, the leader must not go on in its old term: it would
//! write another entry at the same position under the same leader id, and nobody would notice.

use bytes::Bytes;

use crate::model::{BatchNumber, Boot, NodeId, SubBatchId};
use crate::options::LeaderRestore;
use crate::testing::{Cluster, ClusterOptions, Part, put, sub_batch};

/// Commits OLD without the leader's disk, cuts the leader's power, restarts it before anybody
/// misses it, and commits NEW.
async fn lose_the_tail_of_the_leader(restore: LeaderRestore) -> Cluster {
    let options = ClusterOptions {
        restore,
        ..ClusterOptions::new(3)
    };
    let mut cluster = Cluster::start(options).await;
    cluster.put("before", "1").await;
    cluster.settle().await;
    let leader = cluster.leader().await;
    cluster.pause(leader, Part::Disk, true);
    cluster.put("key", "OLD").await;
    cluster.crash(leader);
    cluster.restart(leader).await;
    // Of another sender: the numbers of one sender's sub-batches would reveal the lost entry.
    let id = SubBatchId {
        node: NodeId::new(9),
        boot: Boot::new(1),
        batch: BatchNumber::FIRST,
    };
    cluster.submit(&sub_batch(id, &[put("key", "NEW")])).await;
    cluster
}

fn values_of(cluster: &Cluster, key: &str) -> Vec<(NodeId, Option<Bytes>)> {
    cluster
        .live()
        .into_iter()
        .map(|node| (node, cluster.read(node, key)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_restarted_leader_that_lost_its_tail_does_not_rewrite_it() {
    let cluster = lose_the_tail_of_the_leader(LeaderRestore::Never).await;
    cluster.assert_agreement().await;
    for (node, value) in values_of(&cluster, "key") {
        assert_eq!(value.as_deref(), Some(&b"NEW"[..]), "on node {node}");
    }
}

#[tokio::test(start_paused = true)]
async fn leader_restore_would_make_replicas_diverge_and_the_chain_hash_tells() {
    let cluster = lose_the_tail_of_the_leader(LeaderRestore::Allowed).await;
    let histories = cluster.settle().await;
    let first = histories[0].1;
    assert!(
        histories.iter().any(|(_, history)| *history != first),
        "expected divergence, found agreement: {histories:?}"
    );
}
