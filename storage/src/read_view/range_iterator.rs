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
use crate::memtable::{Memtable, MemtableCursor};
use crate::sequence_number::SequenceNumber;
use crate::version::VersionCursor;

/// An owned scan over a [`ReadView`](super::ReadView), which it keeps alive. Yields key and value;
/// ends for good at the first `None`, which also follows the first error.
pub struct RangeIterator {
    /// Newest source first; none once the scan has ended.
    cursors: Vec<Cursor>,
    direction: Direction,
}

/// A scan of one source. Memory cannot fail, so errors are those of a table.
enum Cursor {
    Memtable(MemtableCursor),
    Tables(VersionCursor),
}

impl Cursor {
    fn peek(&mut self) -> Result<Option<&Bytes>, StorageError> {
        match self {
            Self::Memtable(cursor) => Ok(cursor.peek()),
            Self::Tables(cursor) => Ok(cursor.peek()?),
        }
    }

    fn next(&mut self) -> Result<Option<(Bytes, Change)>, StorageError> {
        match self {
            Self::Memtable(cursor) => Ok(cursor.next().map(|stop| (stop.key, stop.change))),
            Self::Tables(cursor) => Ok(cursor.next()?),
        }
    }
}

impl RangeIterator {
    pub(super) fn new(
        sources: &Sources,
        sequence: SequenceNumber,
        bounds: &(Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> Self {
        let memtable = |memtable: &Arc<Memtable>| {
            let memtable = Arc::clone(memtable);
            MemtableCursor::new(memtable, sequence, bounds.clone(), direction)
        };
        let memtables = sources.memtables().map(memtable).map(Cursor::Memtable);
        let tables = sources.version().cursors(sequence, bounds, direction);
        let tables = tables.into_iter().map(Cursor::Tables);
        Self {
            cursors: memtables.chain(tables).collect(),
            direction,
        }
    }

    /// The next key of any source with the change that decides it, tombstones included.
    fn next_change(&mut self) -> Result<Option<(Bytes, Change)>, StorageError> {
        if let [only] = self.cursors.as_mut_slice() {
            return only.next();
        }
        let Some(key) = self.next_key()? else {
            return Ok(None);
        };
        let mut newest = None;
        for cursor in &mut self.cursors {
            if cursor.peek()? == Some(&key) {
                let stop = cursor.next()?;
                newest = newest.or(stop);
            }
        }
        Ok(newest)
    }

    fn next_key(&mut self) -> Result<Option<Bytes>, StorageError> {
        let mut next: Option<&Bytes> = None;
        for cursor in &mut self.cursors {
            let Some(key) = cursor.peek()? else {
                continue;
            };
            let comes_first = next.is_none_or(|next| match self.direction {
                Direction::Forward => key < next,
                Direction::Reverse => key > next,
            });
            if comes_first {
                next = Some(key);
            }
        }
        Ok(next.cloned())
    }
}

impl Iterator for RangeIterator {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_change() {
                Ok(Some((key, Change::Put(value)))) => return Some(Ok((key, value))),
                Ok(Some((_, Change::Delete))) => {}
                Ok(None) => {
                    self.cursors.clear();
                    return None;
                }
                Err(error) => {
                    self.cursors.clear();
                    return Some(Err(error));
                }
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
