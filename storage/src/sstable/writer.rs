//! Writes a table in one pass.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

use super::block::BlockBuilder;
use super::error::SstableError;
use super::filter;
use super::format::{Compression, FOOTER_BYTES, Footer, Handle, append_block};
use super::index::{IndexBuilder, IndexLimits};
use super::properties::{Birth, Properties};
use super::reader::SstableFile;
use crate::codec::long;
use crate::file_number::FileNumber;
use crate::internal_key::{Kind, Trailer, compare};
use crate::keyspace::{BATCH_BYTES_MAX, KEY_BYTES_MAX};
use crate::salt::Salt;
use crate::sequence_number::SequenceNumber;
use crate::vfs::{Vfs, VfsFile};

/// One user key may grow its block to this many times the target before it goes on in another.
const SPLIT_KEY_FACTOR: usize = 4;

/// Blocks gathered for one write: large enough that the call does not show.
const WRITE_BYTES: usize = 256 * 1024;

/// Written bytes are synced in steps, so that no sync of a whole table meets one of the log.
const SYNC_BYTES: u64 = 8 << 20;

/// Readers keep an index up to this length whole; it is about one table of 20 MiB in blocks of
/// 4 KiB.
const INDEX_BYTES_MAX: usize = 128 * 1024;

/// A longer index is cut into partitions of this length.
const INDEX_PARTITION_BYTES: usize = 16 * 1024;

/// How tables are written. Readers need none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SstableOptions {
    /// The length of data blocks before compression, in bytes; from 1 on. Smaller ones favour
    /// single lookups, larger ones scans and compression.
    pub(crate) block_bytes_target: usize,
    /// How blocks are compressed.
    pub(crate) compression: Compression,
    /// The size of the filter; 0 makes none, 20 is more than helps.
    pub(crate) filter_bits_per_key: u8,
    /// Cuts the index into partitions above this many bytes.
    pub(crate) index_bytes_max: usize,
}

impl Default for SstableOptions {
    fn default() -> Self {
        Self {
            block_bytes_target: 4096,
            compression: Compression::Lz4,
            filter_bits_per_key: 10,
            index_bytes_max: INDEX_BYTES_MAX,
        }
    }
}

/// A finished table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SstableSummary {
    pub(crate) number: FileNumber,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// XXH3-64 of the whole file.
    pub(crate) hash: u64,
    pub(crate) properties: Properties,
}

impl From<&SstableSummary> for SstableFile {
    fn from(summary: &SstableSummary) -> Self {
        Self {
            number: summary.number,
            bytes: summary.bytes,
            birth: summary.properties.birth,
        }
    }
}

/// A table that grows.
///
/// After an error, or when the writer is dropped without [`SstableWriter::finish`], the file is
/// void and the caller removes it.
///
/// Invariants:
/// - Versions come in strictly ascending order, and no tombstone has sequence number 0.
/// - The versions of one user key lie in one block, unless they take more than
///   [`SPLIT_KEY_FACTOR`] targets.
pub(crate) struct SstableWriter {
    output: Output,
    options: SstableOptions,
    birth: Birth,
    block: BlockBuilder,
    index: IndexBuilder,
    /// One hash per user key.
    hashes: Vec<u64>,
    last_key: Vec<u8>,
    last_trailer: Trailer,
    /// None before the first entry.
    totals: Option<Totals>,
}

struct Totals {
    entries: u64,
    tombstones: u64,
    user_keys: u64,
    key_bytes: u64,
    value_bytes: u64,
    sequence_min: SequenceNumber,
    sequence_max: SequenceNumber,
    smallest: Bytes,
}

impl SstableWriter {
    /// Makes the file of table `birth.number` in `directory`; the name must be free.
    pub(crate) fn create(
        vfs: &dyn Vfs,
        directory: &Path,
        birth: Birth,
        options: SstableOptions,
    ) -> Result<Self, SstableError> {
        let path = directory.join(birth.number.sstable_name());
        let file = vfs
            .create(&path)
            .map_err(SstableError::io("create", &path, 0))?;
        Ok(Self {
            output: Output {
                file,
                path,
                salt: Salt::new(birth.database, birth.number),
                pending: Vec::with_capacity(WRITE_BYTES),
                written: 0,
                synced: 0,
                hasher: Xxh3::new(),
            },
            options,
            birth,
            block: BlockBuilder::default(),
            index: IndexBuilder::default(),
            hashes: Vec::new(),
            last_key: Vec::new(),
            last_trailer: Trailer::BEFORE_ALL,
            totals: None,
        })
    }

    /// Adds a version.
    ///
    /// # Panics
    /// When it is not behind the last one, or over the limits of a keyspace.
    pub(crate) fn add(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
        value: &[u8],
    ) -> Result<(), SstableError> {
        assert!(
            user_key.len() <= KEY_BYTES_MAX && value.len() <= BATCH_BYTES_MAX,
            "key of {} and value of {} bytes are over the limits",
            user_key.len(),
            value.len()
        );
        assert_ne!(
            trailer,
            Trailer::AFTER_ALL,
            "no tombstone has sequence number 0"
        );
        let first = self.totals.is_none();
        if !first {
            let last = (self.last_key.as_slice(), self.last_trailer);
            let order = compare(last, (user_key, trailer));
            assert!(order.is_lt(), "versions come in ascending order");
        }
        let same_key = !first && self.last_key == user_key;
        if self.must_cut(user_key, value, same_key) {
            self.finish_block(Some(user_key))?;
        }
        self.block.add(user_key, trailer, value);
        if !same_key {
            if self.options.filter_bits_per_key > 0 {
                self.hashes.push(filter::hash(user_key));
            }
            self.last_key.clear();
            self.last_key.extend_from_slice(user_key);
        }
        self.last_trailer = trailer;
        self.count(user_key, trailer, value, same_key);
        Ok(())
    }

    /// The length that the file has by now, without filter and index.
    pub(crate) fn bytes(&self) -> u64 {
        self.output.offset() + long(self.block.bytes())
    }

    /// Ends the table and makes its content durable; the caller makes the file's name durable.
    ///
    /// # Panics
    /// When nothing was added.
    pub(crate) fn finish(mut self) -> Result<SstableSummary, SstableError> {
        self.finish_block(None)?;
        let totals = self.totals.take().expect("a table has at least one entry");
        let properties = Properties {
            entry_count: totals.entries,
            tombstone_count: totals.tombstones,
            user_key_count: totals.user_keys,
            raw_key_bytes: totals.key_bytes,
            raw_value_bytes: totals.value_bytes,
            data_block_count: long(self.index.len()),
            sequence_min: totals.sequence_min,
            sequence_max: totals.sequence_max,
            smallest: totals.smallest,
            largest: Bytes::from(self.last_key),
            birth: self.birth,
        };
        let mut output = self.output;
        let filter = match self.options.filter_bits_per_key {
            0 => None,
            bits => filter::build(&self.hashes, bits),
        };
        let filter = filter
            .map(|filter| output.append(&filter, Compression::None))
            .transpose()?;
        let limits = IndexLimits {
            single_bytes_max: self.options.index_bytes_max,
            partition_bytes_target: INDEX_PARTITION_BYTES.min(self.options.index_bytes_max),
        };
        let compression = self.options.compression;
        let (index, two_level_index) = self
            .index
            .finish(limits, |block| output.append(block, compression))?;
        let footer = Footer {
            properties: output.append(&properties.encode(), Compression::None)?,
            index,
            filter,
            salt: output.salt,
            two_level_index,
        };
        let (bytes, hash) = output.finish(&footer.encode())?;
        Ok(SstableSummary {
            number: self.birth.number,
            bytes,
            hash,
            properties,
        })
    }

    /// Whether the open block ends before the next version.
    fn must_cut(&self, user_key: &[u8], value: &[u8], same_key: bool) -> bool {
        if self.block.is_empty() {
            return false;
        }
        let target = self.options.block_bytes_target;
        let bytes_max = if same_key {
            target.saturating_mul(SPLIT_KEY_FACTOR)
        } else {
            target
        };
        self.block.bytes() + BlockBuilder::entry_bytes_max(user_key, value) > bytes_max
    }

    fn finish_block(&mut self, next: Option<&[u8]>) -> Result<(), SstableError> {
        let (output, compression) = (&mut self.output, self.options.compression);
        let handle = self
            .block
            .finish(|block| output.append(block, compression))?;
        let last = (self.last_key.as_slice(), self.last_trailer);
        self.index.add(last, next, handle);
        Ok(())
    }

    fn count(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8], same_key: bool) {
        let sequence = trailer.sequence();
        let totals = self.totals.get_or_insert_with(|| Totals {
            entries: 0,
            tombstones: 0,
            user_keys: 0,
            key_bytes: 0,
            value_bytes: 0,
            sequence_min: sequence,
            sequence_max: sequence,
            smallest: Bytes::copy_from_slice(user_key),
        });
        totals.entries += 1;
        totals.tombstones += u64::from(trailer.kind() == Kind::Delete);
        totals.user_keys += u64::from(!same_key);
        totals.key_bytes += long(user_key.len());
        totals.value_bytes += long(value.len());
        totals.sequence_min = totals.sequence_min.min(sequence);
        totals.sequence_max = totals.sequence_max.max(sequence);
    }
}

/// The file, behind a buffer.
struct Output {
    file: Arc<dyn VfsFile>,
    path: PathBuf,
    salt: Salt,
    pending: Vec<u8>,
    /// Bytes of the file before `pending`.
    written: u64,
    synced: u64,
    hasher: Xxh3,
}

impl Output {
    fn offset(&self) -> u64 {
        self.written + long(self.pending.len())
    }

    fn append(&mut self, payload: &[u8], compression: Compression) -> Result<Handle, SstableError> {
        let offset = self.offset();
        let handle = append_block(&mut self.pending, payload, offset, self.salt, compression);
        if self.pending.len() >= WRITE_BYTES {
            self.write()?;
        }
        if self.written - self.synced >= SYNC_BYTES {
            self.sync()?;
        }
        Ok(handle)
    }

    fn write(&mut self) -> Result<(), SstableError> {
        self.file
            .write_at(&self.pending, self.written)
            .map_err(SstableError::io("write", &self.path, self.written))?;
        self.hasher.update(&self.pending);
        self.written += long(self.pending.len());
        self.pending.clear();
        Ok(())
    }

    fn sync(&mut self) -> Result<(), SstableError> {
        self.file
            .sync_data()
            .map_err(SstableError::io("sync", &self.path, self.synced))?;
        self.synced = self.written;
        Ok(())
    }

    fn finish(mut self, footer: &[u8; FOOTER_BYTES]) -> Result<(u64, u64), SstableError> {
        self.pending.extend_from_slice(footer);
        self.write()?;
        self.sync()?;
        Ok((self.written, self.hasher.digest()))
    }
}
