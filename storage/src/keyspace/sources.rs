//! Where the versions of a keyspace are, newest source first.
//!
//! The list is immutable; a change installs a new one, and a view keeps the one that it was made
//! of. Every version in a source is newer than all versions of the same key in the sources after
//! it, so the first source that knows a key decides.

use std::sync::Arc;

use super::MemtableUsage;
use crate::memtable::Memtable;
use crate::sequence_number::SequenceNumber;

/// An immutable list of sources.
pub(crate) struct Sources {
    active: Arc<Memtable>,
    /// Memtables that take no more writes, newest first.
    frozen: Vec<Arc<Memtable>>,
}

impl Sources {
    /// Those of a keyspace that was never written.
    pub(crate) fn empty() -> Self {
        Self {
            active: Arc::new(Memtable::new(SequenceNumber::ZERO)),
            frozen: Vec::new(),
        }
    }

    /// The memtable that takes the writes.
    pub(crate) fn active(&self) -> &Memtable {
        &self.active
    }

    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    pub(super) fn memtable_usage(&self) -> MemtableUsage {
        self.memtables()
            .fold(MemtableUsage::default(), |sum, memtable| MemtableUsage {
                bytes: sum.bytes + memtable.bytes(),
                entries: sum.entries + memtable.entries(),
            })
    }

    /// The same sources with a fresh active memtable.
    #[cfg(test)]
    pub(super) fn with_active_frozen(&self) -> Self {
        Self {
            active: Arc::new(Memtable::new(self.active.published())),
            frozen: self.memtables().cloned().collect(),
        }
    }
}
