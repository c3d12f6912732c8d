//! Each rule of deduplication by itself.

use super::*;
use crate::state::{NodeProgress, StateKey};

fn one_put(node: u16, boot: u64, batch: u64, floor: u64) -> SubBatch {
    sub_batch(
        id(node, boot, batch),
        floor,
        &[put(b"key", &batch.to_be_bytes())],
    )
}

fn gap(expected: u64) -> SubBatchOutcome {
    SubBatchOutcome::Gap {
        expected: BatchNumber::new(expected),
    }
}

/// The batches of node 1 whose results are kept, with their boots.
fn kept_results(replica: &Replica) -> Vec<(u64, u64)> {
    replica
        .dump()
        .into_iter()
        .filter_map(|(key, _)| match StateKey::decode(&key).unwrap() {
            StateKey::SubBatchResult(id) if id.node.get() == 1 => {
                Some((id.boot.get(), id.batch.get()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn repeated_sub_batch_is_answered_with_its_first_replies_and_changes_nothing() {
    let mut replica = Replica::new();
    assert_eq!(
        replica.send(one_put(1, 1, 1, 0)),
        SubBatchOutcome::Executed(vec![done(0, 0)])
    );
    replica.send(one_put(1, 1, 2, 0));
    let repeated = replica.send(one_put(1, 1, 1, 0));
    assert_eq!(repeated, SubBatchOutcome::ExecutedEarlier(vec![done(0, 0)]));
    let record = replica.view().get(0, b"key").unwrap().unwrap();
    assert_eq!(record.value, 2_u64.to_be_bytes()[..]);
}

#[test]
fn sub_batch_repeated_within_one_entry_is_executed_once() {
    let mut replica = Replica::new();
    let twice = entry(
        1,
        vec![
            one_put(1, 1, 1, 0),
            one_put(1, 1, 1, 0),
            one_put(1, 1, 2, 0),
        ],
    );
    let outcomes = replica.apply(&twice).outcome.sub_batches;
    assert_eq!(
        outcomes,
        [
            SubBatchOutcome::Executed(vec![done(0, 0)]),
            SubBatchOutcome::ExecutedEarlier(vec![done(0, 0)]),
            SubBatchOutcome::Executed(vec![done(0, 2)]),
        ]
    );
}

#[test]
fn sub_batch_behind_a_gap_is_not_executed() {
    let mut replica = Replica::new();
    assert_eq!(replica.send(one_put(1, 1, 2, 0)), gap(1));
    assert_eq!(kept_results(&replica), []);
    replica.send(one_put(1, 1, 1, 0));
    assert_eq!(replica.send(one_put(1, 1, 3, 0)), gap(2));
    assert!(
        replica
            .view()
            .get(0, b"key")
            .unwrap()
            .unwrap()
            .value
            .ends_with(&[1])
    );
}

#[test]
fn results_below_the_floor_are_dropped_and_their_sub_batches_stay_executed() {
    let mut replica = Replica::new();
    for batch in 1..=4 {
        replica.send(one_put(1, 1, batch, 1));
    }
    assert_eq!(kept_results(&replica), [(1, 1), (1, 2), (1, 3), (1, 4)]);
    replica.send(one_put(1, 1, 5, 4));
    assert_eq!(kept_results(&replica), [(1, 4), (1, 5)]);
    assert_eq!(
        replica.send(one_put(1, 1, 3, 1)),
        SubBatchOutcome::ExecutedForgotten
    );
    let kept = replica.send(one_put(1, 1, 4, 1));
    assert_eq!(kept, SubBatchOutcome::ExecutedEarlier(vec![done(3, 0)]));
}

#[test]
fn floor_beyond_the_batch_keeps_the_batch_and_never_goes_back() {
    let mut replica = Replica::new();
    replica.send(one_put(1, 1, 1, 0));
    replica.send(one_put(1, 1, 2, u64::MAX));
    assert_eq!(kept_results(&replica), [(1, 2)]);
    replica.send(one_put(1, 1, 3, 1));
    assert_eq!(kept_results(&replica), [(1, 2), (1, 3)]);
}

#[test]
fn newer_boot_drops_the_results_of_the_older_one_and_fences_it() {
    let mut replica = Replica::new();
    for batch in 1..=3 {
        replica.send(one_put(1, 5, batch, 2));
    }
    replica.send(one_put(1, 9, 1, 0));
    assert_eq!(kept_results(&replica), [(9, 1)]);
    for batch in [1, 3, 4] {
        assert_eq!(
            replica.send(one_put(1, 5, batch, 0)),
            SubBatchOutcome::StaleBoot
        );
    }
    assert_eq!(
        replica.send(one_put(1, 9, 2, 0)),
        SubBatchOutcome::Executed(vec![done(7, 0)])
    );
}

#[test]
fn newer_boot_with_a_gap_leaves_the_older_one_as_it_is() {
    let mut replica = Replica::new();
    replica.send(one_put(1, 1, 1, 0));
    assert_eq!(replica.send(one_put(1, 2, 2, 0)), gap(1));
    assert_eq!(
        replica.send(one_put(1, 1, 2, 0)),
        SubBatchOutcome::Executed(vec![done(2, 0)])
    );
}

#[test]
fn nodes_are_counted_apart() {
    let mut replica = Replica::new();
    for node in [0, 1, 2, u16::MAX] {
        let outcome = replica.send(one_put(node, 1, 1, 0));
        assert!(
            matches!(outcome, SubBatchOutcome::Executed(_)),
            "node {node}: {outcome:?}"
        );
    }
    replica.restart();
    assert_eq!(replica.send(one_put(u16::MAX, 1, 3, 0)), gap(2));
}

#[test]
fn last_batch_number_is_its_own_end() {
    let progress = NodeProgress {
        boot: Boot::new(1),
        last: BatchNumber::new(u64::MAX),
        floor: BatchNumber::new(u64::MAX),
    };
    let admission = deduplicate::admit(Some(&progress), id(1, 1, u64::MAX));
    assert_eq!(admission, Admission::Stored);
}
