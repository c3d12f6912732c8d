//! Reads, stamps, roles and identity.

use std::sync::atomic::{AtomicUsize, Ordering as AtomicOrdering};

use futures_util::future::join_all;

use super::*;
use crate::message::RaftKind;
use crate::testing::{Cluster, ClusterOptions, Verdict, VirtualClock};

const DEADLINE: Duration = Duration::from_secs(5);

fn other(cluster: &Cluster, leader: NodeId) -> NodeId {
    cluster
        .live()
        .into_iter()
        .find(|node| *node != leader)
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_linearizable_read_on_any_node_sees_every_acknowledged_write() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    for number in 0..20 {
        let value = number.to_string();
        cluster.put("key", &value).await;
        for node in cluster.live() {
            let raft = cluster.raft(node);
            let point = raft.read_index(DEADLINE).await.unwrap();
            raft.wait_applied(point.index, DEADLINE).await.unwrap();
            let read = cluster.read(node, "key");
            assert_eq!(read.as_deref(), Some(value.as_bytes()), "on node {node}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_was_cut_off_gives_no_read_point() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("key", "old").await;
    let former = cluster.leader().await;
    cluster.network.isolate(&[former]);
    let stale = cluster.raft(former).clone();
    let read = stale.read_index(DEADLINE);
    let error = read.await.unwrap_err();
    assert!(
        matches!(error, ReadError::NoQuorum | ReadError::NoLeader { .. }),
        "{error:?}"
    );
    let leader = cluster.leader_other_than(Some(former)).await;
    cluster.raft(leader).read_index(DEADLINE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reads_that_wait_on_a_follower_share_a_question() {
    let cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let follower = other(&cluster, leader);
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    cluster.network.filter(move |message| {
        let kind = RaftKind::ReadIndex as u8;
        if message.from == follower && message.bytes.get(1) == Some(&kind) {
            counted.fetch_add(1, AtomicOrdering::Relaxed);
        }
        Verdict::Pass
    });
    let raft = cluster.raft(follower);
    let reads = join_all((0..100).map(|_| raft.read_index(DEADLINE))).await;
    assert!(reads.iter().all(Result::is_ok));
    let count = questions.load(AtomicOrdering::Relaxed);
    assert!(
        (1..=2).contains(&count),
        "{count} questions for 100 reads at once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_waits_no_longer_than_its_deadline() {
    let cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let follower = other(&cluster, leader);
    cluster.network.isolate(&[follower]);
    let raft = cluster.raft(follower);
    let start = tokio::time::Instant::now();
    let deadline = Duration::from_millis(30);
    assert_eq!(raft.read_index(deadline).await, Err(ReadError::Timeout));
    assert!(start.elapsed() < deadline + Duration::from_millis(5));
    let far = LogIndex::new(1_000_000);
    assert_eq!(
        raft.wait_applied(far, deadline).await,
        Err(ReadError::Timeout)
    );
}

#[tokio::test(start_paused = true)]
async fn a_single_voter_leads_reads_and_writes_alone() {
    let mut cluster = Cluster::start(ClusterOptions::new(1)).await;
    let outcome = cluster.put("key", "value").await;
    let raft = cluster.raft(NodeId::new(1));
    let point = raft.read_index(DEADLINE).await.unwrap();
    assert!(point.index >= outcome.index);
    assert!(raft.now_stamp() > StampMillis::new(0));
}

#[tokio::test(start_paused = true)]
async fn a_stamp_is_a_time_that_most_clocks_have_passed() {
    const HOUR: i64 = 3_600_000;
    /// Clocks are as old as the last heartbeat, and a little.
    const LAG_MILLIS: u64 = 250;
    let cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let raft = cluster.raft(leader);
    let truth = || VirtualClock::new(cluster.origin()).wall().get();
    let heartbeats = || tokio::time::sleep(Duration::from_millis(300));
    let close = |stamp: StampMillis| {
        let stamp = stamp.get();
        assert!(stamp <= truth(), "{} ms ahead", stamp - truth());
        assert!(
            truth() - stamp <= LAG_MILLIS,
            "{} ms behind",
            truth() - stamp
        );
    };
    heartbeats().await;
    close(raft.now_stamp());
    cluster.node(leader).clock.skew(HOUR);
    heartbeats().await;
    close(raft.now_stamp());
    cluster.node(leader).clock.skew(-HOUR);
    cluster.node(other(&cluster, leader)).clock.skew(HOUR);
    heartbeats().await;
    close(raft.now_stamp());
}

#[tokio::test(start_paused = true)]
async fn a_stamp_never_goes_back() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("key", "value").await;
    let leader = cluster.leader().await;
    let raft = cluster.raft(leader).clone();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = raft.now_stamp();
    for node in cluster.live() {
        cluster.node(node).clock.skew(-1_000_000);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(raft.now_stamp() >= before);
    let next = raft.status().node;
    let to = other(&cluster, next);
    raft.transfer_leader(to).await.unwrap();
    let applied = cluster.raft(to).state().view().clock().unwrap();
    assert!(cluster.raft(to).now_stamp() >= applied);
}

#[tokio::test(start_paused = true)]
async fn leadership_moves_where_it_is_told_to() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("key", "value").await;
    let leader = cluster.leader().await;
    let target = other(&cluster, leader);
    let mut epoch = cluster.raft(target).status_watch();
    epoch.mark_unchanged();
    assert_eq!(
        cluster.raft(target).transfer_leader(leader).await,
        Err(RaftError::NotLeader {
            leader: Some(leader)
        })
    );
    cluster.raft(leader).transfer_leader(target).await.unwrap();
    assert_eq!(cluster.leader_other_than(Some(leader)).await, target);
    assert!(epoch.has_changed().unwrap());
    cluster.put("key", "other").await;
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn contact_with_the_leader_is_measured() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("key", "value").await;
    let leader = cluster.leader().await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for status in cluster.statuses() {
        let contact = status.leader_contact.unwrap();
        assert!(
            contact < Duration::from_millis(200),
            "node {}: {contact:?}",
            status.node
        );
    }
    let replication = cluster.raft(leader).status().replication;
    assert_eq!(replication.len(), 2);
    let last = cluster.raft(leader).status().last_log;
    assert!(replication.values().all(|matched| *matched == last));
}

#[tokio::test(start_paused = true)]
async fn a_group_is_initialized_once() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let members = cluster.members();
    for node in cluster.live() {
        let again = cluster.raft(node).initialize(members.clone()).await;
        assert_eq!(again, Err(RaftError::AlreadyInitialized));
    }
    let node = NodeId::new(2);
    cluster.crash(node);
    cluster.restart(node).await;
    let again = cluster.raft(node).initialize(members).await;
    assert_eq!(again, Err(RaftError::AlreadyInitialized));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_cut_off_does_not_raise_the_term() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let term = cluster.raft(leader).status().term;
    let lonely = other(&cluster, leader);
    cluster.network.isolate(&[lonely]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.network.heal();
    cluster.put("key", "value").await;
    cluster.settle().await;
    assert_eq!(cluster.leader().await, leader);
    assert_eq!(cluster.raft(leader).status().term, term);
}
