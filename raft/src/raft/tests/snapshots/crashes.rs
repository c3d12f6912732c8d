//! Power cuts of everybody while a snapshot is taken and installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};

use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{Database, MemFs, Seams};

use super::*;
use crate::model::GroupId;
use crate::state::StateReader;
use crate::testing::entry;

type Disks = BTreeMap<NodeId, MemFs>;

/// Every how many moments one is tried; the first and the last are always.
const STRIDE: usize = 3;

/// Entries that a leader writes alone; more than the others write until they discard theirs.
const TAIL: u64 = 600;

/// Why the receiver needs a snapshot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// It was away.
    Away,
    /// It led, was cut off, and wrote much that nobody else has.
    FormerLeader,
}

/// Cuts the leader off, lets it fill its log, and writes elsewhere until its next entry is gone.
async fn overtaken(cluster: &mut Cluster) -> (NodeId, Vec<String>) {
    let mut keys = write(cluster, "before", 10).await;
    let former = cluster.leader().await;
    cluster.settle().await;
    let last = cluster.raft(former).status().last_log;
    cluster.network.cut_off(former);
    let raft = cluster.raft(former).clone();
    let vain = cluster.sub_batch(&[put("never", "committed")]);
    for _ in 0..TAIL {
        drop(raft.propose(entry(&raft, &vain)).await.unwrap());
    }
    eventually("a tail", || {
        let tail = raft.status().last_log.map(|tail| tail.get() + 1);
        (tail >= last.map(|last| last.get() + TAIL)).then_some(())
    })
    .await;
    cluster.submit(&vain).await;
    keys.push("never".to_owned());
    keys.extend(write_until_purged(cluster, "away", last).await);
    (former, keys)
}

/// All disks as a power cut at each sync of the receiver would leave them.
async fn disks_at_each_sync(seed: u64, receiver: Receiver) -> (Vec<Disks>, NodeId, Vec<String>) {
    let options = ClusterOptions {
        seed,
        ..forgetful(3)
    };
    let mut cluster = Cluster::start(options).await;
    let (victim, keys) = match receiver {
        Receiver::Away => left_behind(&mut cluster).await,
        Receiver::FormerLeader => overtaken(&mut cluster).await,
    };
    let moments = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&moments);
    let rng = SeededRng::new(seed);
    let nodes = cluster.members().into_keys();
    let others: Disks = nodes
        .filter(|node| *node != victim)
        .map(|node| (node, cluster.disk(node)))
        .collect();
    let take = move |disk: &MemFs| {
        let mut disks: Disks = others
            .iter()
            .map(|(node, disk)| (*node, disk.crash_clone(&rng)))
            .collect();
        disks.insert(victim, disk.crash_clone(&rng));
        taken.lock().unwrap().push(disks);
    };
    let take = Arc::new(take);
    let hook = Arc::clone(&take);
    cluster
        .disk(victim)
        .on_sync(Arc::new(move |_, disk| hook(disk)));
    match receiver {
        Receiver::Away => cluster.restart(victim).await,
        Receiver::FormerLeader => cluster.network.heal(),
    }
    eventually("an install", || {
        let installed = cluster.raft(victim).status().snapshots.installed;
        (installed > 0).then_some(())
    })
    .await;
    if receiver == Receiver::FormerLeader {
        let covered = cluster.raft(victim).status().snapshots.snapshot;
        assert!(
            covered.map(LogIndex::get) < Some(TAIL),
            "the tail is too short"
        );
    }
    cluster.settle().await;
    cluster.disk(victim).on_sync(Arc::new(|_, _| ()));
    take(&cluster.disk(victim));
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    (moments, victim, keys)
}

/// What the state on a disk has applied.
fn flushed_on(disk: &MemFs) -> Option<LogIndex> {
    let clock = Arc::new(ManualClock::new());
    let seams = Seams {
        vfs: Arc::new(disk.kill_clone()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(SteppedExecutor::new(clock)),
    };
    let options = DatabaseOptions::for_tests();
    let database = Database::open(Path::new("/data"), options, seams).unwrap();
    let state = StateReader::open(&database, GroupId::new(0)).unwrap();
    state.applied().unwrap()
}

async fn check(receiver: Receiver) {
    for seed in 0..3 {
        let (moments, victim, keys) = disks_at_each_sync(seed, receiver).await;
        let states: BTreeSet<_> = moments
            .iter()
            .map(|disks| flushed_on(&disks[&victim]))
            .collect();
        assert!(states.len() > 1, "no moment after the install: {states:?}");
        let last = moments.len() - 1;
        for (moment, disks) in moments.into_iter().enumerate() {
            if moment % STRIDE != usize::try_from(seed).unwrap() % STRIDE && moment != last {
                continue;
            }
            let mut cluster = Cluster::resume(forgetful(3), disks).await;
            cluster.skip_batches(keys.len());
            let mut keys = keys.clone();
            keys.extend(write(&mut cluster, "after", 2).await);
            assert_present(&cluster, &keys).await;
            for node in cluster.live() {
                cluster.crash(node);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_at_any_sync_of_an_install_leaves_a_group_that_recovers() {
    check(Receiver::Away).await;
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_while_a_divergent_tail_is_replaced_leaves_a_group_that_recovers() {
    check(Receiver::FormerLeader).await;
}
