//! Scans over a version: one cursor per table of level 0 and one per deeper level.

use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;

use super::{LEVELS, Version};
use crate::batch::Change;
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;
use crate::sstable::{SstableCursor, SstableError};
use crate::table::{Table, TableMeta};

/// An owned scan over tables of which no two share a key, in either direction. It stops once per
/// user key, at the newest version that the view may see, as the cursor of one table does.
pub(crate) struct VersionCursor {
    version: Arc<Version>,
    level: usize,
    /// The tables of the level that are still to be opened; the scan takes them from one end.
    left: Range<usize>,
    sequence: SequenceNumber,
    bounds: (Bound<Bytes>, Bound<Bytes>),
    direction: Direction,
    open: Option<SstableCursor>,
}

/// See [`Version::cursors`].
pub(super) fn cursors(
    version: &Arc<Version>,
    sequence: SequenceNumber,
    bounds: &(Bound<Bytes>, Bound<Bytes>),
    direction: Direction,
) -> Vec<VersionCursor> {
    let cursor = |level, left| VersionCursor {
        version: Arc::clone(version),
        level,
        left,
        sequence,
        bounds: bounds.clone(),
        direction,
        open: None,
    };
    let newest = version.level(0).iter().enumerate();
    let newest = newest
        .filter(|(_, table)| !ends_before(table.meta(), &bounds.0))
        .filter(|(_, table)| !starts_behind(table.meta(), &bounds.1))
        .map(|(place, _)| cursor(0, place..place + 1));
    let deeper = (1..LEVELS)
        .map(|level| (level, within(version.level(level), bounds)))
        .filter(|(_, left)| !left.is_empty())
        .map(|(level, left)| cursor(level, left));
    newest.chain(deeper).collect()
}

impl VersionCursor {
    /// The key of the next stop. May read; an error ends the scan and is repeated by every later
    /// call.
    pub(crate) fn peek(&mut self) -> Result<Option<&Bytes>, SstableError> {
        loop {
            if let Some(cursor) = &mut self.open {
                // Asked twice, as a borrow that is returned cannot be let go of in another branch;
                // the second time the cursor only looks at what it found.
                if cursor.peek()?.is_some() {
                    break;
                }
            }
            if !self.open_next() {
                return Ok(None);
            }
        }
        self.open.as_mut().map_or(Ok(None), SstableCursor::peek)
    }

    /// Moves over the next stop. Tombstones are stops, as they hide what older sources hold.
    pub(crate) fn next(&mut self) -> Result<Option<(Bytes, Change)>, SstableError> {
        self.peek()?;
        self.open.as_mut().map_or(Ok(None), SstableCursor::next)
    }

    /// Goes on with the next table; false when there is none.
    fn open_next(&mut self) -> bool {
        let next = match self.direction {
            Direction::Forward => self.left.next(),
            Direction::Reverse => self.left.next_back(),
        };
        let Some(place) = next else {
            return false;
        };
        let table = &self.version.level(self.level)[place];
        self.open = Some(SstableCursor::new(
            Arc::clone(table.reader()),
            self.sequence,
            self.bounds.clone(),
            self.direction,
        ));
        true
    }
}

/// The tables of a deeper level that may hold a key within `bounds`.
fn within(tables: &[Arc<Table>], bounds: &(Bound<Bytes>, Bound<Bytes>)) -> Range<usize> {
    let start = tables.partition_point(|table| ends_before(table.meta(), &bounds.0));
    let end = tables.partition_point(|table| !starts_behind(table.meta(), &bounds.1));
    start..end.max(start)
}

/// Whether the table has no key at or behind the first bound.
fn ends_before(table: &TableMeta, bound: &Bound<Bytes>) -> bool {
    match bound {
        Bound::Included(key) => table.largest < key,
        Bound::Excluded(key) => table.largest <= key,
        Bound::Unbounded => false,
    }
}

/// Whether the table has no key at or before the second bound.
fn starts_behind(table: &TableMeta, bound: &Bound<Bytes>) -> bool {
    match bound {
        Bound::Included(key) => table.smallest > key,
        Bound::Excluded(key) => table.smallest >= key,
        Bound::Unbounded => false,
    }
}
