//! Power cuts: nothing acknowledged is lost and no replica differs.

use crate::testing::{Cluster, ClusterOptions, entry, put};

/// Seeds of the crash tests; each draws other survivors among the un-synced writes.
const SEEDS: std::ops::Range<u64> = 0..6;

/// Writes `count` keys, one after the other; all of them are acknowledged.
async fn write(cluster: &mut Cluster, prefix: &str, count: usize) -> Vec<String> {
    let mut keys = Vec::new();
    for number in 0..count {
        let key = format!("{prefix}-{number}");
        cluster.put(&key, "value").await;
        keys.push(key);
    }
    keys
}

async fn assert_present(cluster: &Cluster, keys: &[String]) {
    cluster.assert_agreement().await;
    for node in cluster.live() {
        for key in keys {
            assert!(cluster.read(node, key).is_some(), "node {node} lost {key}");
        }
    }
}

fn cluster(seed: u64) -> ClusterOptions {
    ClusterOptions {
        seed,
        ..ClusterOptions::new(3)
    }
}

#[tokio::test(start_paused = true)]
async fn three_nodes_elect_a_leader_and_hold_the_same() {
    let mut cluster = Cluster::start(cluster(1)).await;
    let keys = write(&mut cluster, "key", 30).await;
    assert_present(&cluster, &keys).await;
    let members = cluster.members();
    for status in cluster.statuses() {
        assert_eq!(status.members, members);
        assert_eq!(status.committed, status.applied);
    }
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_of_any_one_node_loses_nothing() {
    for seed in SEEDS {
        let mut cluster = Cluster::start(cluster(seed)).await;
        let mut keys = write(&mut cluster, "before", 10).await;
        let leader = cluster.leader().await;
        let victim = if seed % 2 == 0 {
            leader
        } else {
            cluster
                .live()
                .into_iter()
                .find(|node| *node != leader)
                .unwrap()
        };
        cluster.crash(victim);
        keys.extend(write(&mut cluster, "during", 10).await);
        cluster.restart(victim).await;
        keys.extend(write(&mut cluster, "after", 10).await);
        assert_present(&cluster, &keys).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_of_all_nodes_loses_nothing() {
    for seed in SEEDS {
        let mut cluster = Cluster::start(cluster(seed)).await;
        let mut keys = Vec::new();
        for round in 0..3 {
            keys.extend(write(&mut cluster, &format!("round{round}"), 10).await);
            let nodes = cluster.live();
            for node in &nodes {
                cluster.crash(*node);
            }
            for node in nodes {
                cluster.restart(node).await;
            }
        }
        keys.extend(write(&mut cluster, "after", 3).await);
        assert_present(&cluster, &keys).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_while_proposals_are_in_flight_keeps_what_was_acknowledged() {
    for seed in SEEDS {
        let mut cluster = Cluster::start(cluster(seed)).await;
        let leader = cluster.leader().await;
        let raft = cluster.raft(leader).clone();
        let mut proposals = Vec::new();
        for number in 0..50 {
            let key = format!("key-{number}");
            let sub_batch = cluster.sub_batch(&[put(&key, "value")]);
            let entry = entry(&raft, &sub_batch);
            proposals.push((key, sub_batch, raft.propose(entry).await.unwrap()));
        }
        // Wait for some of them only, then cut the power of everybody.
        let mut acknowledged = Vec::new();
        let mut unknown = Vec::new();
        let answered = usize::try_from(seed).unwrap() * 8;
        for (position, (key, sub_batch, proposal)) in proposals.into_iter().enumerate() {
            if position < answered {
                proposal.await.unwrap();
                acknowledged.push(key);
            } else {
                unknown.push((key, sub_batch));
            }
        }
        for node in cluster.live() {
            cluster.crash(node);
            cluster.restart(node).await;
        }
        // Those without an answer are sent again, unchanged: each is executed once.
        for (key, sub_batch) in unknown {
            cluster.submit(&sub_batch).await;
            acknowledged.push(key);
        }
        assert_present(&cluster, &acknowledged).await;
    }
}
