//! Nodes whose next entry was discarded: they get the flushed state, whole or not at all.

mod broken;
mod crashes;

use kelp_storage::{DatabaseOptions, Fault, FaultOperation, FaultRule};

use super::*;
use crate::bus::PeerClass;
use crate::message::{self, PeerRequest, Position, RaftKind};
use crate::retention::LogRetention;
use crate::state::ScanRange;
use crate::testing::{Cluster, ClusterOptions, Verdict, attempt, eventually, put};

/// Values that fill a memtable of the tests in a few hundred writes.
const VALUE: &str = "a value of some length, so that a few hundred of them are many tables";

/// The error of a full disk.
const ENOSPC: i32 = 28;

/// A group that keeps next to nothing of its log.
fn forgetful(node_count: u16) -> ClusterOptions {
    ClusterOptions {
        retention: LogRetention {
            kept_bytes: 2 << 10,
            flush_bytes: 4 << 10,
            ..LogRetention::default()
        },
        database: DatabaseOptions::for_tests(),
        ..ClusterOptions::new(node_count)
    }
}

async fn write(cluster: &mut Cluster, prefix: &str, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for number in 0..count {
        let key = format!("{prefix}-{number}");
        cluster.put(&key, VALUE).await;
        keys.push(key);
    }
    keys
}

/// Writes until the leader has discarded the entry after `last`, and names what was written.
async fn write_until_purged(
    cluster: &mut Cluster,
    prefix: &str,
    last: Option<LogIndex>,
) -> Vec<String> {
    let mut keys = Vec::new();
    for round in 0..200 {
        keys.extend(write(cluster, &format!("{prefix}{round}"), 20).await);
        let leader = cluster.leader().await;
        let purged = cluster.raft(leader).status().snapshots.purged;
        if purged > last.map(LogIndex::next) {
            return keys;
        }
    }
    panic!("the log was never purged: {:#?}", cluster.statuses());
}

async fn assert_present(cluster: &Cluster, keys: &[String]) {
    cluster.assert_agreement().await;
    for node in cluster.live() {
        for key in keys {
            assert!(cluster.read(node, key).is_some(), "node {node} lost {key}");
        }
    }
}

fn follower(cluster: &Cluster, leader: NodeId) -> NodeId {
    let live = cluster.live();
    live.into_iter().find(|node| *node != leader).unwrap()
}

/// Takes a follower away until its next entry is gone everywhere.
async fn left_behind(cluster: &mut Cluster) -> (NodeId, Vec<String>) {
    let mut keys = write(cluster, "before", 10).await;
    let leader = cluster.leader().await;
    let victim = follower(cluster, leader);
    let last = cluster.raft(victim).status().last_log;
    cluster.crash(victim);
    keys.extend(write_until_purged(cluster, "away", last).await);
    (victim, keys)
}

#[tokio::test(start_paused = true)]
async fn the_log_is_discarded_behind_the_flushes_and_a_restart_still_knows_all() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let mut keys = write_until_purged(&mut cluster, "key", None).await;
    keys.extend(write(&mut cluster, "more", 200).await);
    for status in cluster.statuses() {
        let snapshots = status.snapshots;
        assert!(snapshots.purged <= snapshots.snapshot && snapshots.snapshot <= status.applied);
        assert!(snapshots.log_bytes < 100 << 10, "{snapshots:?}");
    }
    for node in cluster.live() {
        cluster.crash(node);
    }
    for node in cluster.down() {
        cluster.restart(node).await;
    }
    keys.extend(write(&mut cluster, "after", 3).await);
    assert_present(&cluster, &keys).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_away_while_the_log_was_purged_catches_up_under_load() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let (victim, mut keys) = left_behind(&mut cluster).await;
    cluster.restart(victim).await;
    keys.extend(write(&mut cluster, "load", 100).await);
    assert_present(&cluster, &keys).await;
    let status = cluster.raft(victim).status();
    assert_eq!(status.snapshots.installed, 1, "{:?}", status.snapshots);
    assert!(status.snapshots.received_bytes > 0);
    let leader = cluster.raft(cluster.leader().await).status();
    assert!(leader.snapshots.sent >= 1 && leader.snapshots.sent_bytes > 0);
    assert_eq!(
        cluster
            .node(victim)
            .observer
            .installed
            .lock()
            .unwrap()
            .len(),
        1
    );
    // It goes on as a full member, also after a power cut.
    cluster.crash(victim);
    cluster.restart(victim).await;
    keys.extend(write(&mut cluster, "after", 10).await);
    assert_present(&cluster, &keys).await;
}

#[tokio::test(start_paused = true)]
async fn an_install_drops_a_divergent_tail_and_leaves_open_scans_alone() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let mut keys = write(&mut cluster, "before", 150).await;
    let former = cluster.leader().await;
    cluster.settle().await;
    let raft = cluster.raft(former).clone();
    cluster.network.cut_off(former);
    let lost = cluster.sub_batch(&[put("never", "committed")]);
    for _ in 0..5 {
        assert!(attempt(&raft, &lost).await.is_none());
    }
    let tail = raft.status().last_log;
    assert!(tail > raft.status().committed, "nothing diverges");
    let everything = || raft.state().view().scan(ScanRange::all(0));
    let expected: Vec<_> = everything().map(Result::unwrap).collect();
    let mut scan = everything();
    let mut seen: Vec<_> = scan.by_ref().take(3).map(Result::unwrap).collect();
    // The client's number was used up by the write that nobody executed.
    cluster.submit(&lost).await;
    keys.extend(write_until_purged(&mut cluster, "away", tail).await);
    cluster.network.heal();
    eventually("an install", || {
        (raft.status().snapshots.installed > 0).then_some(())
    })
    .await;
    seen.extend(scan.map(Result::unwrap));
    assert_eq!(seen, expected, "an open scan saw another state");
    keys.extend(write(&mut cluster, "after", 10).await);
    assert_present(&cluster, &keys).await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_for_an_entry_is_woken_by_the_install_that_skips_it() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let (victim, keys) = left_behind(&mut cluster).await;
    // No entry comes behind the snapshot.
    cluster.network.filter(move |message| {
        if message.to == victim && message.class == PeerClass::Append {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    });
    cluster.restart(victim).await;
    let leader = cluster.leader().await;
    let point = cluster.raft(leader).status().snapshots.purged.unwrap();
    let waited = cluster
        .raft(victim)
        .wait_applied(point, Duration::from_secs(30));
    waited.await.unwrap();
    cluster.network.heal();
    assert_present(&cluster, &keys).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_transfer_held_of_the_log_goes_also_when_nothing_is_written() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let (victim, keys) = left_behind(&mut cluster).await;
    let leader = cluster.leader().await;
    cluster.restart(victim).await;
    // What is written now lies behind the snapshot.
    let written = write(&mut cluster, "held", 100).await;
    cluster.settle().await;
    assert!(cluster.raft(victim).status().snapshots.installed > 0);
    let log_bytes = || cluster.raft(leader).status().snapshots.log_bytes;
    assert!(log_bytes() > 8 << 10, "nothing is held: {}", log_bytes());
    tokio::time::sleep(Duration::from_secs(75)).await;
    assert!(log_bytes() < 3 << 10, "still held: {}", log_bytes());
    assert_present(&cluster, &[keys, written].concat()).await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_whose_disk_was_full_is_sent_the_snapshot_again() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let (victim, keys) = left_behind(&mut cluster).await;
    cluster.restart(victim).await;
    cluster.node(victim).faults.add(FaultRule {
        name: Some("*.sst".to_owned()),
        count: 3,
        ..FaultRule::once(Some(FaultOperation::Write), 1, Fault::Errno(ENOSPC))
    });
    eventually("an install", || {
        let status = cluster.raft(victim).status();
        (status.snapshots.installed > 0).then_some(())
    })
    .await;
    assert_present(&cluster, &keys).await;
    let status = cluster.raft(victim).status();
    let leader = cluster.raft(cluster.leader().await).status();
    assert!(
        leader.snapshots.sent_bytes > status.snapshots.received_bytes,
        "nothing was sent in vain"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_and_entries_go_on_while_a_snapshot_is_on_its_way() {
    let mut cluster = Cluster::start(forgetful(3)).await;
    let (victim, mut keys) = left_behind(&mut cluster).await;
    let leader = cluster.leader().await;
    let term = cluster.raft(leader).status().term;
    // Every message of the transfer takes longer than an election.
    cluster.network.filter(|message| match message.class {
        PeerClass::Snapshot => Verdict::Delay(Duration::from_millis(700)),
        _ => Verdict::Pass,
    });
    cluster.restart(victim).await;
    keys.extend(write(&mut cluster, "load", 100).await);
    let installed = eventually("an install", || {
        let status = cluster.raft(victim).status();
        (status.snapshots.installed > 0).then_some(status)
    });
    assert_eq!(
        installed.await.term,
        term,
        "the transfer cost the leader its office"
    );
    cluster.network.heal();
    assert_present(&cluster, &keys).await;
}
