//! One entry of the log: a stamp of replicated time and the sub-batches that were waiting when it
//! was proposed.
//!
//! The entry, not the command, pays for Raft, so building one is a copy of bytes that are already
//! encoded and reading one slices them.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{DecodeError, SliceReader, length_u32};
use super::ids::StampMillis;
use super::limits::{COMMAND_BYTES_MAX, ENTRY_BYTES_MAX, ENTRY_BYTES_TARGET, ENTRY_COMMANDS_MAX};
use super::sub_batch::{SUB_BATCH_HEAD_BYTES, SubBatch};

/// The first byte of an entry of version 1.
pub(crate) const ENTRY_VERSION: u8 = 1;

/// Version, stamp and count.
const ENTRY_HEAD_BYTES: usize = 1 + 8 + 4;

const _: () = assert!(
    ENTRY_HEAD_BYTES + SUB_BATCH_HEAD_BYTES + COMMAND_BYTES_MAX <= ENTRY_BYTES_MAX,
    "the largest command is a legal entry"
);

/// One entry of the log.
///
/// Invariants: at most [`ENTRY_COMMANDS_MAX`] commands in all sub-batches together; at most
/// [`ENTRY_BYTES_MAX`] encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Replicated time when the entry was proposed.
    pub stamp: StampMillis,
    /// The sub-batches, in the order of their execution.
    pub sub_batches: Vec<SubBatch>,
}

impl Entry {
    /// The encoded entry, version 1. Prefer [`EntryBuilder`] where sub-batches arrive one by one.
    pub fn encode(&self) -> Bytes {
        let bytes = self
            .sub_batches
            .iter()
            .map(SubBatch::encoded_bytes)
            .sum::<usize>();
        let mut out = BytesMut::with_capacity(ENTRY_HEAD_BYTES + bytes);
        out.put_u8(ENTRY_VERSION);
        out.put_u64(self.stamp.get());
        out.put_u32(length_u32(self.sub_batches.len()));
        for sub_batch in &self.sub_batches {
            sub_batch.encode_into(&mut out);
        }
        out.freeze()
    }

    /// Reads an entry that takes up all of `bytes`; sub-batches share its memory, commands are not
    /// read.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "entry");
        let version = reader.u8()?;
        if version != ENTRY_VERSION {
            return Err(DecodeError::Version {
                what: "entry",
                version,
            });
        }
        let stamp = StampMillis::new(reader.u64()?);
        let count = reader.length()?;
        if bytes.len() > ENTRY_BYTES_MAX || count > reader.remaining() / SUB_BATCH_HEAD_BYTES {
            return Err(reader.malformed());
        }
        let mut sub_batches = Vec::with_capacity(count);
        for _ in 0..count {
            sub_batches.push(SubBatch::read(&mut reader, bytes)?);
        }
        reader.finish()?;
        let entry = Self { stamp, sub_batches };
        if entry.command_count() > u64::try_from(ENTRY_COMMANDS_MAX).expect("a small constant") {
            return Err(DecodeError::malformed("entry"));
        }
        Ok(entry)
    }

    /// The number of commands in all sub-batches.
    pub fn command_count(&self) -> u64 {
        self.sub_batches
            .iter()
            .map(|sub_batch| u64::from(sub_batch.command_count))
            .sum()
    }
}

/// A sub-batch that does not fit the entry any more; it belongs into the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the entry is full")]
pub struct EntryFull;

/// Collects sub-batches into one encoded entry.
#[derive(Debug, Default)]
pub struct EntryBuilder {
    sub_batches: Vec<SubBatch>,
    bytes: usize,
    command_count: usize,
}

impl EntryBuilder {
    /// An entry without sub-batches.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is no sub-batch yet.
    pub fn is_empty(&self) -> bool {
        self.sub_batches.is_empty()
    }

    /// The number of commands so far.
    pub const fn command_count(&self) -> usize {
        self.command_count
    }

    /// Bytes of the sub-batches so far.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether [`push`](Self::push) would take `sub_batch`: always when the entry is empty.
    pub fn fits(&self, sub_batch: &SubBatch) -> bool {
        let count = sub_batch.command_count.try_into().unwrap_or(usize::MAX);
        let commands_fit = count <= ENTRY_COMMANDS_MAX - self.command_count;
        let bytes_fit = self.bytes + sub_batch.encoded_bytes() <= ENTRY_BYTES_TARGET;
        self.is_empty() || (commands_fit && bytes_fit)
    }

    /// Adds a sub-batch, whose bytes are copied only by [`finish`](Self::finish).
    pub fn push(&mut self, sub_batch: SubBatch) -> Result<(), EntryFull> {
        if !self.fits(&sub_batch) {
            return Err(EntryFull);
        }
        self.bytes += sub_batch.encoded_bytes();
        self.command_count += usize::try_from(sub_batch.command_count).expect("a u32 fits a usize");
        self.sub_batches.push(sub_batch);
        Ok(())
    }

    /// Encodes the entry and starts an empty one.
    pub fn finish(&mut self, stamp: StampMillis) -> Bytes {
        let taken = std::mem::take(self);
        Entry {
            stamp,
            sub_batches: taken.sub_batches,
        }
        .encode()
    }
}
