//! Where the versions of a keyspace are, newest source first: memtables, then tables.
//!
//! The list is immutable; a change installs a new one, and a view keeps the one that it was made
//! of. Every version in a source is newer than all versions of the same key in the sources after
//! it, so the first source that knows a key decides. Tables keep the newest version of a key
//! alone; what a view saw before a flush, it still sees, since its sources have the memtables.

use std::sync::Arc;

use super::{Limits, MemtableUsage};
use crate::memtable::{Memtable, Reclaimer};
use crate::sequence_number::SequenceNumber;
use crate::version::Version;

/// An immutable list of sources.
///
/// Invariants: no frozen memtable is empty; everything that `version` holds was written before
/// everything in the memtables.
pub(crate) struct Sources {
    active: Arc<Memtable>,
    /// Memtables that take no more writes, newest first.
    frozen: Vec<Arc<Memtable>>,
    version: Arc<Version>,
}

impl Sources {
    /// What is in tables, and an empty memtable for the writes after `start`.
    pub(crate) fn new(
        version: Arc<Version>,
        start: SequenceNumber,
        reclaimer: &Arc<Reclaimer>,
    ) -> Self {
        Self {
            active: Arc::new(Memtable::new(start, Arc::clone(reclaimer))),
            frozen: Vec::new(),
            version,
        }
    }

    /// The memtable that takes the writes.
    pub(crate) fn active(&self) -> &Memtable {
        &self.active
    }

    /// What is in tables.
    pub(crate) fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// The count of memtables that take no more writes.
    pub(crate) fn frozen_count(&self) -> usize {
        self.frozen.len()
    }

    /// At most `count` of the oldest frozen memtables, newest first.
    pub(crate) fn oldest_frozen(&self, count: usize) -> Vec<Arc<Memtable>> {
        let newer = self.frozen.len().saturating_sub(count);
        self.frozen[newer..].to_vec()
    }

    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// Whether the writer should go on.
    pub(super) fn have_room(&self, limits: &Limits) -> bool {
        self.frozen.len() < limits.memtables_max
            && self.version.level(0).len() < limits.level_0_stop_tables
    }

    pub(super) fn memtable_usage(&self) -> MemtableUsage {
        self.memtables()
            .fold(MemtableUsage::default(), |sum, memtable| MemtableUsage {
                bytes: sum.bytes + memtable.bytes(),
                entries: sum.entries + memtable.entries(),
            })
    }

    /// The same sources with a fresh active memtable.
    pub(super) fn with_active_frozen(&self, reclaimer: &Arc<Reclaimer>) -> Self {
        let start = self.active.published();
        Self {
            frozen: self.memtables().cloned().collect(),
            ..Self::new(Arc::clone(&self.version), start, reclaimer)
        }
    }

    /// The same sources with another version, which holds the memtables `flushed` too.
    pub(super) fn with_version(&self, version: &Arc<Version>, flushed: &[Arc<Memtable>]) -> Self {
        let waits = |memtable: &&Arc<Memtable>| {
            let mut flushed = flushed.iter();
            !flushed.any(|flushed| Arc::ptr_eq(flushed, memtable))
        };
        Self {
            active: Arc::clone(&self.active),
            frozen: self.frozen.iter().filter(waits).cloned().collect(),
            version: Arc::clone(version),
        }
    }
}
