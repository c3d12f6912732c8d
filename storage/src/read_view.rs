//! A keyspace as it was right after one operation.
//!
//! A view holds its sources, so it outlives later writes and reads the same answer for as long as
//! it is kept. It costs memory and disk: what it holds cannot be freed.

mod range_iterator;

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::batch::Change;
use crate::error::StorageError;
use crate::keyspace::Sources;
use crate::sequence_number::SequenceNumber;
use crate::sstable::CachedLookup;
use crate::version::Version;

pub use range_iterator::RangeIterator;

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest key first.
    Forward,
    /// Largest key first.
    Reverse,
}

/// What memory alone knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cached {
    /// This is the value, or there is none.
    Hit(Option<Bytes>),
    /// [`ReadView::get`] finds out, and may read the disk.
    NeedsDisk,
}

/// An engine point-in-time view of one keyspace; clones share it.
#[derive(Clone)]
pub struct ReadView {
    sources: Arc<Sources>,
    sequence: SequenceNumber,
}

impl ReadView {
    /// The state of `sources` right after `sequence`, all of which they hold.
    pub(crate) fn new(sources: Arc<Sources>, sequence: SequenceNumber) -> Self {
        Self { sources, sequence }
    }

    /// The state of the tables of `version`.
    pub(crate) fn of_version(version: Arc<Version>) -> Self {
        let sequence = version.last_sequence();
        let sources = Sources::new(version, sequence, &Arc::default());
        Self::new(Arc::new(sources), sequence)
    }

    /// The last operation that it includes.
    pub fn sequence(&self) -> SequenceNumber {
        self.sequence
    }

    /// The value of `key`. Bytes are shared with the engine, not copied. May read the disk.
    ///
    /// # Errors
    /// [`StorageError::Corruption`], [`StorageError::Io`]: what the disk holds of the key could not
    /// be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        if let Some(change) = self.newest_in_memtables(key) {
            return Ok(change.into_value());
        }
        let found = self.sources.version().get(key, self.sequence)?;
        Ok(found.and_then(|found| found.into_change().into_value()))
    }

    /// The value of `key` as far as memory knows; never reads the disk.
    pub fn get_cached(&self, key: &[u8]) -> Cached {
        if let Some(change) = self.newest_in_memtables(key) {
            return Cached::Hit(change.into_value());
        }
        match self.sources.version().get_cached(key, self.sequence) {
            CachedLookup::Hit(found) => Cached::Hit(found.into_change().into_value()),
            CachedLookup::Absent => Cached::Hit(None),
            CachedLookup::NeedsDisk => Cached::NeedsDisk,
        }
    }

    /// Whether all of it is in memory, so that neither lookups nor scans read the disk.
    pub fn is_cached_only(&self) -> bool {
        self.sources.version().is_empty()
    }

    /// The entries between the two bounds, in the order of `direction`; none if the first bound
    /// lies behind the second. Reads ahead in small runs, so an iterator that is dropped early
    /// costs little. The iterator may read the disk.
    pub fn range(
        &self,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> RangeIterator {
        RangeIterator::new(&self.sources, self.sequence, &bounds, direction)
    }

    /// The change of `key` in the newest memtable that knows it.
    fn newest_in_memtables(&self, key: &[u8]) -> Option<Change> {
        let mut memtables = self.sources.memtables();
        memtables.find_map(|memtable| memtable.get(key, self.sequence))
    }
}

impl fmt::Debug for ReadView {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReadView")
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
