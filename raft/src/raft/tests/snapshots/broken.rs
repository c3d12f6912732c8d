//! Transfers that break, are damaged or lie.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use kelp_seams::{Rng, SeededRng};

use super::*;
use crate::message::{CHUNK_BYTES_MAX, PeerReply, SnapshotReply};
use crate::testing::eventually;
use crate::type_config::LogId;

/// A state of several files, some of which take several chunks.
fn bulky() -> ClusterOptions {
    let database = DatabaseOptions {
        memtable_bytes: 3 << 20,
        table_bytes: 5 << 20,
        hot_tail_bytes: 1 << 20,
        wal_file_bytes: 4 << 20,
        ..DatabaseOptions::for_tests()
    };
    ClusterOptions {
        database,
        retention: LogRetention {
            kept_bytes: 1 << 20,
            flush_bytes: 3 << 20,
            ..LogRetention::default()
        },
        ..ClusterOptions::new(3)
    }
}

/// A value of 64 KiB, different for each seed.
fn incompressible(seed: u64) -> String {
    let rng = SeededRng::new(seed);
    let mut value = String::new();
    while value.len() < 64 << 10 {
        write!(value, "{:016x}", rng.next_u64()).unwrap();
    }
    value
}

/// A follower that misses a bulky state.
async fn bulky_left_behind(cluster: &mut Cluster) -> NodeId {
    let leader = cluster.leader().await;
    let victim = follower(cluster, leader);
    let last = cluster.raft(victim).status().last_log;
    cluster.crash(victim);
    let mut number = 0;
    loop {
        // Not compressible, and different for each key.
        let value = incompressible(number);
        cluster.put(&format!("key-{number}"), &value).await;
        number += 1;
        let leader = cluster.leader().await;
        let purged = cluster.raft(leader).status().snapshots.purged;
        if number > 150 && purged > last.map(LogIndex::next) {
            return victim;
        }
        assert!(number < 1_000, "the log was never purged");
    }
}

/// Where the chunk in a request starts, if it is one.
fn chunk_at(request: &Bytes) -> Option<Position> {
    let request = PeerRequest::decode(request.clone()).ok()?;
    let is_chunk = RaftKind::from_u8(request.kind) == Some(RaftKind::SnapshotChunk);
    let chunk = message::decode_chunk(request.body);
    chunk.ok().filter(|_| is_chunk).map(|chunk| chunk.at)
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_breaks_in_the_middle_of_a_file_goes_on_there() {
    let mut cluster = Cluster::start(bulky()).await;
    let victim = bulky_left_behind(&mut cluster).await;
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&arrived);
    // The fifth, tenth and so on chunk is lost, with all that follows for a while.
    let mut count = 0;
    let mut silent_until = tokio::time::Instant::now();
    cluster.network.filter(move |message| {
        if message.class != PeerClass::Snapshot {
            return Verdict::Pass;
        }
        let now = tokio::time::Instant::now();
        if now < silent_until {
            return Verdict::Lose;
        }
        if message.to == victim
            && let Some(at) = chunk_at(message.bytes)
        {
            count += 1;
            if count % 3 == 0 {
                silent_until = now + Duration::from_secs(20);
                return Verdict::Lose;
            }
            seen.lock().unwrap().push(at);
        }
        Verdict::Pass
    });
    cluster.restart(victim).await;
    let mut waited = 0;
    while cluster.raft(victim).status().snapshots.installed == 0 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        waited += 1;
        assert!(waited < 1_000, "never installed");
    }
    cluster.network.heal();
    cluster.assert_agreement().await;
    let arrived = arrived.lock().unwrap().clone();
    let distinct: BTreeSet<Position> = arrived.iter().copied().collect();
    assert_eq!(
        distinct.len(),
        arrived.len(),
        "something was sent twice: {arrived:?}"
    );
    let inside = arrived.iter().filter(|at| at.offset > 0).count();
    assert!(inside > 0, "no file takes more than one chunk");
    let files: BTreeSet<u32> = arrived.iter().map(|at| at.file).collect();
    assert!(files.len() > 1, "there is one file only");
    let largest = u64::try_from(CHUNK_BYTES_MAX).unwrap();
    assert!(arrived.iter().all(|at| at.offset % largest == 0));
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_takes_the_place_of_the_one_that_died_while_sending() {
    let mut cluster = Cluster::start(bulky()).await;
    let victim = bulky_left_behind(&mut cluster).await;
    let leader = cluster.leader().await;
    let chunks = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&chunks);
    cluster.network.filter(move |message| {
        let stuck = message.from == leader && message.to == victim;
        if stuck && chunk_at(message.bytes).is_some() {
            *seen.lock().unwrap() += 1;
            if *seen.lock().unwrap() > 3 {
                return Verdict::Lose;
            }
        }
        Verdict::Pass
    });
    cluster.restart(victim).await;
    eventually("a transfer", || (*chunks.lock().unwrap() > 3).then_some(())).await;
    cluster.crash(leader);
    cluster.network.heal();
    let next = cluster.leader_other_than(Some(leader)).await;
    assert_ne!(next, victim, "a node without the log cannot lead");
    eventually("an install", || {
        (cluster.raft(victim).status().snapshots.installed > 0).then_some(())
    })
    .await;
    cluster.restart(leader).await;
    cluster.put("after", "value").await;
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_last_reply_installs_nothing_twice() {
    let mut cluster = Cluster::start(bulky()).await;
    let victim = bulky_left_behind(&mut cluster).await;
    let (lost, begun) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (losing, counting) = (Arc::clone(&lost), Arc::clone(&begun));
    cluster.network.filter(move |message| {
        if message.class != PeerClass::Snapshot {
            return Verdict::Pass;
        }
        if message.from == victim {
            let reply = PeerReply::decode(message.bytes.clone()).unwrap();
            let is_finish = RaftKind::from_u8(reply.kind) == Some(RaftKind::SnapshotFinish);
            let answer = message::decode_snapshot_reply(reply.body);
            if is_finish && matches!(answer, Ok(SnapshotReply::Vote(_))) {
                *losing.lock().unwrap() += 1;
                return Verdict::Lose;
            }
        } else {
            let request = PeerRequest::decode(message.bytes.clone()).unwrap();
            if RaftKind::from_u8(request.kind) == Some(RaftKind::SnapshotBegin) {
                *counting.lock().unwrap() += 1;
            }
        }
        Verdict::Pass
    });
    cluster.restart(victim).await;
    cluster.settle().await;
    let status = cluster.raft(victim).status();
    assert_eq!(status.snapshots.installed, 1);
    assert_eq!((*lost.lock().unwrap(), *begun.lock().unwrap()), (1, 2));
    cluster.assert_agreement().await;
}

/// Lets `change` alter the first message of `kind` to `victim`, then waits until it is caught up.
async fn change_once(kind: RaftKind, change: fn(&Bytes) -> Bytes) {
    let mut cluster = Cluster::start(bulky()).await;
    let victim = bulky_left_behind(&mut cluster).await;
    let changed = Arc::new(Mutex::new(false));
    let done = Arc::clone(&changed);
    cluster.network.filter(move |message| {
        let request = PeerRequest::decode(message.bytes.clone());
        let wanted = message.class == PeerClass::Snapshot
            && message.to == victim
            && request.is_ok_and(|request| RaftKind::from_u8(request.kind) == Some(kind));
        if wanted && !std::mem::replace(&mut *done.lock().unwrap(), true) {
            return Verdict::Change(change);
        }
        Verdict::Pass
    });
    cluster.restart(victim).await;
    let before = cluster.raft(victim).status().applied;
    let mut waited = 0;
    while cluster.raft(victim).status().snapshots.installed == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        waited += 1;
        assert!(waited < 10_000, "never installed after a damaged transfer");
    }
    assert!(*changed.lock().unwrap());
    assert!(cluster.raft(victim).status().applied > before);
    let received = cluster.raft(victim).status().snapshots.received_bytes;
    let leader = cluster.leader().await;
    let sent = cluster.raft(leader).status().snapshots.sent_bytes;
    cluster.assert_agreement().await;
    assert!(sent > received / 2, "{sent} {received}");
}

#[tokio::test(start_paused = true)]
async fn a_chunk_with_a_flipped_bit_is_never_installed() {
    change_once(RaftKind::SnapshotChunk, |request| {
        let mut bytes = request.to_vec();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        Bytes::from(bytes)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_errs_about_the_place_of_its_snapshot_is_refused() {
    change_once(RaftKind::SnapshotBegin, |request| {
        let envelope = PeerRequest::decode(request.clone()).unwrap();
        let mut begin = message::decode_begin(envelope.body).unwrap();
        let last = begin.meta.last_log_id.unwrap();
        begin.meta.last_log_id = Some(LogId::new(last.leader_id, last.index + 1));
        message::encode_begin(envelope.group, &begin)
    })
    .await;
}
