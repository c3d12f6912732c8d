//! Merges the sources of a view into one ordered scan.
//!
//! Each source stops once per user key, at its newest version within the view. On equal keys the
//! newest source decides and the others step along. Sources are few, so the next key is found by
//! looking at all of them.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::Direction;
use crate::batch::Change;
use crate::error::StorageError;
use crate::keyspace::Sources;
use crate::memtable::MemtableCursor;
use crate::sequence_number::SequenceNumber;

/// An owned scan over a [`ReadView`](super::ReadView), which it keeps alive. Yields key and value;
/// ends for good at the first `None`.
pub struct RangeIterator {
    /// Newest source first.
    cursors: Vec<MemtableCursor>,
    direction: Direction,
}

impl RangeIterator {
    pub(super) fn new(
        sources: &Sources,
        sequence: SequenceNumber,
        bounds: &(Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> Self {
        let cursor = |memtable: &Arc<_>| {
            MemtableCursor::new(Arc::clone(memtable), sequence, bounds.clone(), direction)
        };
        Self {
            cursors: sources.memtables().map(cursor).collect(),
            direction,
        }
    }

    /// The next key of any source with the change that decides it, tombstones included.
    fn next_change(&mut self) -> Option<(Bytes, Change)> {
        if let [only] = self.cursors.as_mut_slice() {
            return only.next();
        }
        let keys = self.cursors.iter_mut().filter_map(MemtableCursor::peek);
        let key = match self.direction {
            Direction::Forward => keys.min(),
            Direction::Reverse => keys.max(),
        };
        let key = key?.clone();
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

impl Iterator for RangeIterator {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, change) = self.next_change()?;
            if let Some(value) = change.into_value() {
                return Some(Ok((key, value)));
            }
        }
    }
}

impl FusedIterator for RangeIterator {}

impl fmt::Debug for RangeIterator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RangeIterator")
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}
