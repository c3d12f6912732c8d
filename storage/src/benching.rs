//! Doors for benchmarks of parts that are not public. Not part of the promised interface.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::internal_key::{Kind, Trailer};
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;
use crate::sstable::{
    Birth, BlockCache, CachedLookup, Compression, SstableCursor, SstableFile, SstableOptions,
    SstableReader, SstableWriter,
};
use crate::vfs::Vfs;

/// How a table is written and read.
#[derive(Clone, Copy, Debug)]
pub struct BenchOptions {
    /// Whether blocks are compressed.
    pub compressed: bool,
    /// Bytes of the block cache.
    pub cache_bytes: u64,
    /// Whether there is a filter, of the usual size.
    pub filtered: bool,
}

/// One sstable.
pub struct BenchTable(Arc<SstableReader>);

impl BenchTable {
    /// Writes `entries`, in the order of their keys, to a new file in `directory`, and opens it
    /// with a cache of its own.
    pub fn build(
        vfs: &dyn Vfs,
        directory: &Path,
        number: u64,
        entries: &[(Bytes, Bytes)],
        how: BenchOptions,
    ) -> Result<Self, StorageError> {
        let birth = Birth {
            database: DatabaseId::from_bytes([7; 16]),
            number: FileNumber::new(number),
        };
        let compression = if how.compressed {
            Compression::Lz4
        } else {
            Compression::None
        };
        let usual = SstableOptions::default();
        let filter_bits_per_key = if how.filtered {
            usual.filter_bits_per_key
        } else {
            0
        };
        let options = SstableOptions {
            compression,
            filter_bits_per_key,
            ..usual
        };
        let mut writer = SstableWriter::create(vfs, directory, birth, options)?;
        for ((key, value), sequence) in entries.iter().zip(1..) {
            let trailer = Trailer::new(SequenceNumber::new(sequence), Kind::Put);
            writer.add(key, trailer, value)?;
        }
        let file = SstableFile::from(&writer.finish()?);
        let cache = Arc::new(BlockCache::new(how.cache_bytes));
        let reader = SstableReader::open(vfs, directory, file, cache)?;
        Ok(Self(Arc::new(reader)))
    }

    /// The value of `key`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        let found = self.0.get(key, SequenceNumber::MAX)?;
        Ok(found.and_then(|found| found.into_change().into_value()))
    }

    /// The value of `key` as far as memory knows; `Err` when the disk must be asked.
    #[expect(clippy::result_unit_err, reason = "there is nothing to say")]
    pub fn get_cached(&self, key: &[u8]) -> Result<Option<Bytes>, ()> {
        match self.0.get_cached(key, SequenceNumber::MAX) {
            CachedLookup::Hit(found) => Ok(found.into_change().into_value()),
            CachedLookup::Absent => Ok(None),
            CachedLookup::NeedsDisk => Err(()),
        }
    }

    /// Walks at most `count` entries from `start` on; answers how many there were.
    pub fn scan(
        &self,
        start: &Bytes,
        count: usize,
        direction: Direction,
    ) -> Result<usize, StorageError> {
        let start = Bound::Included(start.clone());
        let bounds = match direction {
            Direction::Forward => (start, Bound::Unbounded),
            Direction::Reverse => (Bound::Unbounded, start),
        };
        let reader = Arc::clone(&self.0);
        let mut cursor = SstableCursor::new(reader, SequenceNumber::MAX, bounds, direction);
        let mut walked = 0;
        while walked < count && cursor.next()?.is_some() {
            walked += 1;
        }
        Ok(walked)
    }

    /// The length of the file.
    pub fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    /// The memory of index and filter.
    pub fn pinned_bytes(&self) -> usize {
        self.0.pinned_bytes()
    }
}
