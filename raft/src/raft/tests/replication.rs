//! Replication over links that are slow, silent or one-way.

use super::*;
use crate::bus::PeerClass;
use crate::testing::{Cluster, ClusterOptions, Part, Verdict, entry, eventually, put};

#[tokio::test(start_paused = true)]
async fn append_requests_do_not_wait_for_the_replies_before_them() {
    const ONE_WAY: Duration = Duration::from_millis(50);
    const INTERVAL: Duration = Duration::from_millis(5);
    const COUNT: u32 = 40;
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("before", "1").await;
    cluster.settle().await;
    let raft = cluster.raft(cluster.leader().await).clone();
    cluster.network.filter(|message| match message.class {
        PeerClass::Append => Verdict::Delay(ONE_WAY),
        _ => Verdict::Pass,
    });
    let start = tokio::time::Instant::now();
    let mut proposals = Vec::new();
    for number in 0..COUNT {
        let sub_batch = cluster.sub_batch(&[put("key", &number.to_string())]);
        proposals.push(raft.propose(entry(&raft, &sub_batch)).await.unwrap());
        tokio::time::sleep(INTERVAL).await;
    }
    for proposal in proposals {
        proposal.await.unwrap();
    }
    let elapsed = start.elapsed();
    // One after the other they would take a round trip each, four seconds together.
    let pipelined = INTERVAL * COUNT + ONE_WAY * 4;
    assert!(
        elapsed < pipelined,
        "{elapsed:?} for {COUNT} entries, at most {pipelined:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_follower_whose_append_link_fell_silent_catches_up_once_it_is_back() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let deaf = cluster
        .live()
        .into_iter()
        .find(|node| *node != leader)
        .unwrap();
    cluster.network.filter(move |message| {
        let lost = message.class == PeerClass::Append && message.to == deaf;
        if lost { Verdict::Lose } else { Verdict::Pass }
    });
    for number in 0..30 {
        cluster.put(&format!("key-{number}"), "value").await;
    }
    assert!(cluster.raft(deaf).status().applied < cluster.raft(leader).status().applied);
    assert_eq!(
        cluster.leader().await,
        leader,
        "heartbeats still came through"
    );
    cluster.network.heal();
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn a_connected_majority_elects_although_the_old_leader_still_reaches_one_of_it() {
    let mut cluster = Cluster::start(ClusterOptions::new(5)).await;
    cluster.put("before", "1").await;
    let former = cluster.leader().await;
    let others: Vec<NodeId> = cluster
        .live()
        .into_iter()
        .filter(|node| *node != former)
        .collect();
    let (bridge, lonely) = (others[0], others[1]);
    cluster.network.filter(move |message| {
        let ends = [message.from, message.to];
        let cut = ends.contains(&lonely) || (ends.contains(&former) && !ends.contains(&bridge));
        if cut { Verdict::Lose } else { Verdict::Pass }
    });
    let leader = cluster.leader_other_than(Some(former)).await;
    let raft = cluster.raft(leader).clone();
    let sub_batch = cluster.sub_batch(&[put("key", "value")]);
    let outcome = raft.propose(entry(&raft, &sub_batch)).await.unwrap().await;
    assert!(outcome.is_ok(), "{outcome:?}");
    cluster.network.heal();
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn a_large_backlog_is_sent_in_bounded_pieces() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let late = cluster
        .live()
        .into_iter()
        .find(|node| *node != leader)
        .unwrap();
    cluster.network.isolate(&[late]);
    let value = "v".repeat(700 << 10);
    for number in 0..12 {
        cluster.put(&format!("key-{number}"), &value).await;
    }
    let largest = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&largest);
    cluster.network.filter(move |message| {
        let bytes = u64::try_from(message.bytes.len()).unwrap();
        seen.fetch_max(bytes, Ordering::Relaxed);
        Verdict::Pass
    });
    let last = cluster.raft(leader).status().last_log;
    eventually("the late node catches up", || {
        (cluster.raft(late).status().applied >= last).then_some(())
    })
    .await;
    let largest = largest.load(Ordering::Relaxed);
    assert!(largest < 3 << 20, "a message of {largest} bytes");
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_cannot_apply_for_long_still_acknowledges_what_is_in_its_log() {
    // A few seconds of writes, each an entry of its own.
    const COUNT: u32 = 1_500;
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("before", "1").await;
    cluster.settle().await;
    let leader = cluster.leader().await;
    let nodes = cluster.live();
    let others: Vec<NodeId> = nodes.into_iter().filter(|node| *node != leader).collect();
    cluster.network.cut_off(others[0]);
    cluster.pause(others[1], Part::Work, true);
    for number in 0..COUNT {
        cluster.put("key", &number.to_string()).await;
    }
    assert_eq!(cluster.leader().await, leader, "heartbeats are answered");
    cluster.pause(others[1], Part::Work, false);
    cluster.network.heal();
    cluster.assert_agreement().await;
}
