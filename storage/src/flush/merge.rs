//! Merges memtables into the newest version of every key.

use std::ops::Bound;
use std::sync::Arc;

use crate::memtable::{Memtable, MemtableCursor, Stop};
use crate::read_view::Direction;

/// Walks memtables in key order and stops once per key, at the newest version of it in any of them.
/// They are few, so the next key is found by looking at all.
pub(super) struct MemtableMerge {
    /// Newest memtable first.
    cursors: Vec<MemtableCursor>,
}

impl MemtableMerge {
    /// Stands before the first key of `memtables`, which take no more writes; newest first.
    pub(super) fn new(memtables: &[Arc<Memtable>]) -> Self {
        let cursor = |memtable: &Arc<Memtable>| {
            let everything = (Bound::Unbounded, Bound::Unbounded);
            let last = memtable.published();
            MemtableCursor::new(Arc::clone(memtable), last, everything, Direction::Forward)
        };
        Self {
            cursors: memtables.iter().map(cursor).collect(),
        }
    }

    /// The newest version of the next key.
    pub(super) fn next(&mut self) -> Option<Stop> {
        if let [only] = self.cursors.as_mut_slice() {
            return only.next();
        }
        let keys = self.cursors.iter_mut().filter_map(MemtableCursor::peek);
        let key = keys.min()?.clone();
        let mut newest = None;
        for cursor in &mut self.cursors {
            if cursor.peek() == Some(&key) {
                let stop = cursor.next();
                newest = newest.or(stop);
            }
        }
        newest
    }
}
