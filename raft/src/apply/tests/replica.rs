//! One replica's state, without a log and without a network.

use std::ops::Bound;

use kelp_storage::{EntryTerm, Keyspace};

use super::*;
use crate::state::{StateReader, StateView};
use crate::testing_state::keyspace;

/// A position of term 1.
pub(super) fn position(index: u64) -> LogPosition {
    LogPosition {
        index: LogIndex::new(index),
        term: EntryTerm { term: 1, leader: 2 },
    }
}

/// What an entry did, and the state right after each of its sub-batches.
pub(super) struct Applied {
    pub(super) outcome: EntryOutcome,
    pub(super) views: Vec<StateView>,
}

/// A keyspace and the applier that fills it.
pub(super) struct Replica {
    pub(super) keyspace: Keyspace,
    pub(super) applier: EntryApplier,
}

impl Replica {
    pub(super) fn new() -> Self {
        let keyspace = keyspace();
        let applier = EntryApplier::load(&keyspace.view()).unwrap();
        Self { keyspace, applier }
    }

    /// Applies `payloads` as the next entries in one batch.
    pub(super) fn apply_together(&mut self, payloads: &[Bytes]) -> Vec<Applied> {
        let view = self.keyspace.view();
        let mut batch = IndexedBatch::new();
        let entries: Vec<_> = payloads
            .iter()
            .map(|payload| {
                let position = position(self.next_index());
                self.applier
                    .apply(position, payload, &view, &mut batch)
                    .unwrap()
            })
            .collect();
        let written = self.keyspace.write(batch.into_batch()).unwrap();
        let view_after = |sub_batch: &AppliedSubBatch| {
            let steps = u64::try_from(sub_batch.operation_count - 1).unwrap();
            StateView::new(written.view_at(written.first.advanced_by(steps)))
        };
        entries
            .into_iter()
            .map(|entry| Applied {
                views: entry.sub_batches.iter().map(view_after).collect(),
                outcome: entry.outcome,
            })
            .collect()
    }

    /// Applies one payload as the next entry.
    pub(super) fn apply(&mut self, payload: &Bytes) -> Applied {
        self.apply_together(std::slice::from_ref(payload)).remove(0)
    }

    /// Applies an entry with one sub-batch and returns what became of it.
    pub(super) fn send(&mut self, sub_batch: SubBatch) -> SubBatchOutcome {
        self.apply(&entry(1, vec![sub_batch]))
            .outcome
            .sub_batches
            .remove(0)
    }

    /// Forgets everything but the keyspace.
    pub(super) fn restart(&mut self) {
        let loaded = EntryApplier::load(&self.keyspace.view()).unwrap();
        assert_eq!(loaded, self.applier, "the applier is what the state says");
        self.applier = loaded;
    }

    pub(super) fn next_index(&self) -> u64 {
        self.applier
            .applied()
            .map_or(0, |position| position.index.get() + 1)
    }

    pub(super) fn view(&self) -> StateView {
        StateReader::new(self.keyspace.clone()).view()
    }

    /// Every key and value.
    pub(super) fn dump(&self) -> Vec<(Bytes, Bytes)> {
        let everything = (Bound::Unbounded, Bound::Unbounded);
        self.keyspace
            .view()
            .range(everything, Direction::Forward)
            .map(|entry| entry.unwrap())
            .collect()
    }
}
