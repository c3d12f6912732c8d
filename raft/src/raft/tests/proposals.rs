//! Proposals: order, outcomes, and sub-batches that are sent twice.

use bytes::Bytes;

use super::*;
use crate::error::ProposeError;
use crate::model::SubBatchOutcome;
use crate::testing::{Cluster, ClusterOptions, Part, entry, eventually, put};

#[tokio::test(start_paused = true)]
async fn proposals_enter_the_log_in_call_order() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let raft = cluster.raft(cluster.leader().await).clone();
    let mut proposals = Vec::new();
    for number in 0..200 {
        let sub_batch = cluster.sub_batch(&[put("key", &number.to_string())]);
        proposals.push(raft.propose(entry(&raft, &sub_batch)).await.unwrap());
    }
    let mut last = None;
    for proposal in proposals {
        let outcome = proposal.await.unwrap();
        assert!(matches!(
            outcome.sub_batches[..],
            [SubBatchOutcome::Executed(_)]
        ));
        assert!(
            Some(outcome.index) > last,
            "entry {} came out of order",
            outcome.index
        );
        last = Some(outcome.index);
    }
    assert_eq!(
        cluster.read(raft.status().node, "key"),
        Some(Bytes::from_static(b"199"))
    );
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn proposals_are_committed_while_the_applier_stands_still() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("before", "1").await;
    cluster.settle().await;
    let leader = cluster.leader().await;
    let raft = cluster.raft(leader).clone();
    let before = raft.status();
    cluster.pause(leader, Part::Work, true);
    let mut proposals = Vec::new();
    for number in 0..100 {
        let sub_batch = cluster.sub_batch(&[put("key", &number.to_string())]);
        proposals.push(raft.propose(entry(&raft, &sub_batch)).await.unwrap());
    }
    let last = before.last_log.map(|last| last.get() + 100);
    eventually("all proposals are committed", || {
        (raft.status().committed.map(LogIndex::get) == last).then_some(())
    })
    .await;
    assert_eq!(raft.status().applied, before.applied);
    cluster.pause(leader, Part::Work, false);
    for proposal in proposals {
        proposal.await.unwrap();
    }
    assert_eq!(raft.status().applied.map(LogIndex::get), last);
}

#[tokio::test(start_paused = true)]
async fn a_follower_refuses_a_proposal_and_names_the_leader() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let follower = cluster
        .live()
        .into_iter()
        .find(|node| *node != leader)
        .unwrap();
    eventually("the follower knows the leader", || {
        cluster
            .raft(follower)
            .status()
            .leader
            .filter(|known| *known == leader)
    })
    .await;
    let sub_batch = cluster.sub_batch(&[put("key", "value")]);
    let raft = cluster.raft(follower);
    let error = raft
        .propose(entry(raft, &sub_batch))
        .await
        .unwrap()
        .await
        .unwrap_err();
    assert_eq!(
        error,
        ProposeError::NotLeader {
            leader: Some(leader)
        }
    );
    cluster.submit(&sub_batch).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_entry_are_refused_at_the_door() {
    let cluster = Cluster::start(ClusterOptions::new(1)).await;
    let raft = cluster.raft(NodeId::new(1));
    for bytes in [&b""[..], b"\x40", b"\x41", b"\x01", b"\x02rest"] {
        let result = raft.propose(Bytes::copy_from_slice(bytes)).await;
        assert!(
            matches!(result, Err(ProposeError::Invalid(_))),
            "{bytes:?} was proposed"
        );
    }
    assert_eq!(raft.status().role, Role::Leader);
}

#[tokio::test(start_paused = true)]
async fn a_sub_batch_sent_again_to_the_next_leader_is_applied_once() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let leader = cluster.leader().await;
    let sub_batch = cluster.sub_batch(&[put("key", "value")]);
    let first = cluster.submit(&sub_batch).await;
    assert!(matches!(
        first.sub_batches[..],
        [SubBatchOutcome::Executed(_)]
    ));
    cluster.crash(leader);
    let second = cluster.submit(&sub_batch).await;
    let SubBatchOutcome::Executed(replies) = &first.sub_batches[0] else {
        unreachable!()
    };
    assert_eq!(
        second.sub_batches[0],
        SubBatchOutcome::ExecutedEarlier(replies.clone())
    );
    cluster.restart(leader).await;
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn a_proposal_of_a_leader_that_was_cut_off_is_discarded_and_executed_elsewhere() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    cluster.put("before", "1").await;
    let former = cluster.leader().await;
    let old = cluster.raft(former).clone();
    cluster.network.isolate(&[former]);
    let sub_batch = cluster.sub_batch(&[put("key", "value")]);
    let lost = old.propose(entry(&old, &sub_batch)).await.unwrap();
    let leader = cluster.leader_other_than(Some(former)).await;
    let raft = cluster.raft(leader).clone();
    let outcome = raft
        .propose(entry(&raft, &sub_batch))
        .await
        .unwrap()
        .await
        .unwrap();
    assert!(matches!(
        outcome.sub_batches[..],
        [SubBatchOutcome::Executed(_)]
    ));
    cluster.network.heal();
    assert_eq!(lost.await.unwrap_err(), ProposeError::Discarded);
    cluster.put("after", "1").await;
    cluster.assert_agreement().await;
}

#[tokio::test(start_paused = true)]
async fn the_observer_hears_of_own_sub_batches_with_the_state_right_after_them() {
    let mut cluster = Cluster::start(ClusterOptions::new(3)).await;
    let mut outcomes = Vec::new();
    for number in 0..5 {
        outcomes.push(cluster.put(&format!("key-{number}"), "value").await);
    }
    cluster.settle().await;
    // The tests' client sends as node 1, wherever the leader is.
    let seen = cluster
        .node(NodeId::new(1))
        .observer
        .seen
        .lock()
        .unwrap()
        .clone();
    let expected: Vec<_> = (1..)
        .zip(&outcomes)
        .map(|(batch, outcome)| {
            let batch = crate::model::BatchNumber::new(batch);
            (
                outcome.index,
                batch,
                outcome.sub_batches[0].clone(),
                Some(outcome.index),
            )
        })
        .collect();
    assert_eq!(seen, expected);
    assert!(
        cluster
            .node(NodeId::new(2))
            .observer
            .seen
            .lock()
            .unwrap()
            .is_empty()
    );
}
