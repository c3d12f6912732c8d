//! The set of tables of one keyspace at one moment, and how it is read.
//!
//! A version never changes: a flush or a compaction makes the next one, and whoever reads holds
//! the version that it began with. Level 0 holds whole flushes, newest first, which overlap; every
//! deeper level is one sorted run of tables that do not. Of two tables that know a key, the one
//! that comes first in this order has the newer version.

mod cursor;
mod levels;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::catalog::{KeyspaceId, KeyspaceOptions};
use crate::error::StorageError;
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;
use crate::sstable::{CachedLookup, Found};
use crate::table::Table;

pub(crate) use cursor::VersionCursor;
pub(crate) use levels::{Levels, LevelsFault, check_levels};

/// The count of levels. Seven levels of a factor of ten over 128 MiB hold more than any disk.
pub(crate) const LEVELS: usize = 7;

/// The tables of one keyspace.
pub(crate) struct Version {
    id: KeyspaceId,
    options: KeyspaceOptions,
    last_sequence: SequenceNumber,
    levels: Levels,
}

impl Version {
    /// A version of the keyspace `id`.
    pub(crate) fn new(
        id: KeyspaceId,
        options: KeyspaceOptions,
        last_sequence: SequenceNumber,
        levels: Levels,
    ) -> Self {
        Self {
            id,
            options,
            last_sequence,
            levels,
        }
    }

    /// The incarnation of the keyspace.
    pub(crate) fn id(&self) -> KeyspaceId {
        self.id
    }

    /// How its tables are written.
    pub(crate) fn options(&self) -> KeyspaceOptions {
        self.options
    }

    /// Everything up to this number is in the tables, or was when it was the newest.
    pub(crate) fn last_sequence(&self) -> SequenceNumber {
        self.last_sequence
    }

    /// The tables of a level: level 0 newest first, the others by key.
    pub(crate) fn level(&self, level: usize) -> &[Arc<Table>] {
        self.levels.level(level)
    }

    /// All levels.
    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Whether there are no tables.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables().next().is_none()
    }

    /// All tables with their levels, in the order in which they are asked for a key.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        self.levels.tables()
    }

    /// The newest version of `key` at or below `sequence`. May read.
    pub(crate) fn get(
        &self,
        key: &[u8],
        sequence: SequenceNumber,
    ) -> Result<Option<Found>, StorageError> {
        for table in self.levels.candidates(key) {
            if let Some(found) = table.reader().get(key, sequence)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The same as far as memory knows; never reads a file.
    pub(crate) fn get_cached(&self, key: &[u8], sequence: SequenceNumber) -> CachedLookup {
        for table in self.levels.candidates(key) {
            match table.reader().get_cached(key, sequence) {
                CachedLookup::Absent => {}
                decided => return decided,
            }
        }
        CachedLookup::Absent
    }

    /// Whether some table may have a version of `key`.
    pub(crate) fn may_hold(&self, key: &[u8]) -> bool {
        self.levels.candidates(key).next().is_some()
    }

    /// Cursors over everything within `bounds` as seen at `sequence`, newest source first. Opens
    /// and reads nothing yet.
    pub(crate) fn cursors(
        self: &Arc<Self>,
        sequence: SequenceNumber,
        bounds: &(Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> Vec<VersionCursor> {
        cursor::cursors(self, sequence, bounds, direction)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Version")
            .field("id", &self.id)
            .field("last_sequence", &self.last_sequence)
            .field("tables", &self.tables().count())
            .finish_non_exhaustive()
    }
}
