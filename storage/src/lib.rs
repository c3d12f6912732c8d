//! Where bytes rest: the storage engine of Kelp.
//!
//! A [`Database`] is a directory with two kinds of things. A [`Log`] is a sequence of entries with
//! a vote, durable through one write-ahead log for all logs; it is what Raft needs. A [`Keyspace`]
//! is an ordered map with versions, in memory and in sorted tables; it is not in the write-ahead
//! log, since whoever embeds it re-applies from a log what was not flushed. The engine is synchronous, knows no network and no
//! Raft, and touches disk, time, randomness and threads only through [`Seams`].
//!
//! ```text
//! Log ----> wal: one write and one sync per group --> files, HARDSTATE
//!  ^             open: identity, HARDSTATE, recovery <---'
//!  '-- re-applied by the embedder --> Keyspace: memtables, read views
//!                                        |  flush, never ahead of the wal
//!                                        v
//!                                     tables of a version, compacted; manifest, CURRENT
//! ```

mod batch;
#[doc(hidden)]
pub mod benching;
mod catalog;
mod codec;
mod compaction;
mod database;
mod error;
mod file_number;
mod flush;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod golden;
mod hard_state;
mod identity;
mod internal_key;
mod keyspace;
mod log;
mod manifest;
mod memtable;
mod metrics;
mod pinned;
mod read_view;
mod salt;
mod sequence_number;
mod sstable;
mod staging;
mod table;
mod version;
mod vfs;
mod wal;

pub use batch::{IndexedBatch, WriteBatch};
pub use database::{Database, DatabaseOptions, Seams};
pub use error::{Corruption, OpenError, StorageError};
pub use hard_state::Boot;
pub use identity::{DatabaseId, OWNER_BYTES_MAX};
pub use keyspace::{BATCH_BYTES_MAX, KEY_BYTES_MAX, Keyspace, MemtableUsage, Written};
pub use log::{
    Durable, ENTRY_BYTES_MAX, EntryTerm, Log, LogEntry, LogIndex, LogNumber, LogPosition,
};
pub use metrics::{SYNC_BUCKETS, StorageMetrics};
pub use pinned::PinnedVersion;
pub use read_view::{Cached, Direction, RangeIterator, ReadView};
pub use sequence_number::SequenceNumber;
pub use staging::{StagedVersion, Staging};
pub use vfs::{
    Fault, FaultFs, FaultOperation, FaultRule, MemFs, RealFs, SyncHook, Vfs, VfsFile, VfsLock,
};
