//! Immutable sorted files: what a memtable becomes when it is flushed, and what compaction merges.
//!
//! A table holds versions in the order of [`internal_key`](crate::internal_key), packed into
//! blocks that are read one by one. [`SstableWriter`] makes a file in one pass, [`SstableReader`]
//! looks up single keys, [`SstableCursor`] scans as a view sees the table, [`EntryCursor`] walks
//! every version. Tables know nothing of each other, nor of which are in use: the manifest does.
//!
//! ```text
//! | data block | ... | filter | index partition | ... | index | properties | footer |
//!      ^                             ^    |                |                   |
//!      '-----------------------------|----'                '-- of blocks, or --'
//!                                    '----------------------- of partitions
//! ```
//!
//! Every byte is covered by a checksum that is tied to the file and the place in it, and a check
//! is made on every read from the disk. What does not match is an error that names the file and
//! the offset, never a missing key. Format page: docs/formats/sstable.md.

mod block;
mod cache;
mod cursor;
mod entry_cursor;
mod error;
mod filter;
mod format;
mod index;
mod properties;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::batch::Change;
use crate::internal_key::Kind;
use crate::sequence_number::SequenceNumber;

pub(crate) use cache::BlockCache;
pub(crate) use cursor::SstableCursor;
pub(crate) use entry_cursor::EntryCursor;
pub(crate) use error::SstableError;
pub(crate) use format::{Compression, FOOTER_BYTES as TABLE_BYTES_MIN};
pub(crate) use properties::Birth;
pub(crate) use reader::{CachedLookup, SstableFile, SstableReader};
pub(crate) use writer::{SstableOptions, SstableSummary, SstableWriter};

/// One version of a key, as a table holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) sequence: SequenceNumber,
    pub(crate) kind: Kind,
    /// Empty for a tombstone. It shares the bytes of its block, which live as long as it does.
    pub(crate) value: Bytes,
}

impl Found {
    /// What the version did to its key.
    pub(crate) fn into_change(self) -> Change {
        change(self.kind, self.value)
    }
}

fn change(kind: Kind, value: Bytes) -> Change {
    match kind {
        Kind::Put => Change::Put(value),
        Kind::Delete => Change::Delete,
    }
}
