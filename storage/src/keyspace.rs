//! One named ordered map of the engine, with versions.
//!
//! Writers go one at a time and atomically: a batch is inserted under its own sequence numbers and
//! then published with one store. Readers take a [`ReadView`], which is a sequence number and the
//! list of sources that held everything up to it; they wait for nobody. What is in a keyspace is
//! not in the write-ahead log: whoever embeds it re-applies what a crash lost from a log of its
//! own.

mod sources;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::batch::WriteBatch;
use crate::error::StorageError;
use crate::pinned::PinnedVersion;
use crate::read_view::ReadView;
use crate::sequence_number::SequenceNumber;
use crate::staging::StagedVersion;

pub(crate) use sources::Sources;

/// The longest key. Four times what users may store, for the prefixes and escapes that embedders
/// add.
pub const KEY_BYTES_MAX: usize = 128 * 1024;

/// The largest batch, keys and values together, and so the largest value. Far above any entry of
/// the Raft log; a length below it fits the 32 bits of every durable format.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// The sequence numbers that a batch got; operation `k` has `first` + `k`. Keeps what the states
/// within the batch need, and so the memory of it.
#[derive(Clone)]
pub struct Written {
    /// That of the first operation.
    pub first: SequenceNumber,
    /// That of the last operation, which the newest view includes.
    pub last: SequenceNumber,
    sources: Arc<Sources>,
}

impl Written {
    /// The state right after the operation `sequence` of the batch; a number outside of the batch
    /// means the nearest one inside.
    pub fn view_at(&self, sequence: SequenceNumber) -> ReadView {
        let sequence = sequence.clamp(self.first, self.last);
        ReadView::new(Arc::clone(&self.sources), sequence)
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Written")
            .field("first", &self.first)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

/// What a keyspace holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemtableUsage {
    /// Estimated memory, list nodes included.
    pub bytes: usize,
    /// The count of versions, tombstones included.
    pub entries: usize,
}

/// A handle of one keyspace; clones share it.
#[derive(Clone)]
pub struct Keyspace {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    /// Held by the one writer from the choice of its sequence numbers to their publication.
    writer: Mutex<()>,
    /// Replaced as a whole, and only with `writer` held. Readers hold the lock for one clone of the
    /// `Arc`.
    sources: RwLock<Arc<Sources>>,
}

impl Keyspace {
    /// An empty keyspace.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                writer: Mutex::new(()),
                sources: RwLock::new(Arc::new(Sources::empty())),
            }),
        }
    }

    /// The name under which the database knows it.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Makes all operations of `batch` visible at once, after every batch written before.
    ///
    /// Waits for the writer before it; readers are never held up. An empty batch changes nothing,
    /// and both numbers are the newest visible one. Nothing is durable when this returns.
    ///
    /// # Errors
    /// [`StorageError::KeyTooLong`] and [`StorageError::BatchTooLarge`]: nothing was written.
    pub fn write(&self, batch: WriteBatch) -> Result<Written, StorageError> {
        check_limits(&batch)?;
        let _writer = self
            .shared
            .writer
            .lock()
            .expect("no writer panics while it inserts");
        let sources = self.sources();
        let active = sources.active();
        let published = active.published();
        if batch.is_empty() {
            return Ok(Written {
                first: published,
                last: published,
                sources,
            });
        }
        let operation_count = u64::try_from(batch.len()).expect("a length fits 64 bits");
        let first = published.advanced_by(1);
        let last = published.advanced_by(operation_count);
        active.insert(first, batch.into_operations());
        active.publish(last);
        Ok(Written {
            first,
            last,
            sources,
        })
    }

    /// The newest state.
    pub fn view(&self) -> ReadView {
        let sources = self.sources();
        // The sources come first: their active memtable knows the newest number that they hold
        // completely.
        let sequence = sources.active().published();
        ReadView::new(sources, sequence)
    }

    /// Asks for everything written so far to be flushed, and returns at once.
    pub fn flush(&self) {}

    /// Sets the one listener that is told after each flush that was installed.
    pub fn on_flushed(&self, listener: Arc<dyn Fn() + Send + Sync>) {
        drop(listener);
    }

    /// The newest flushed state.
    pub fn pin(&self) -> PinnedVersion {
        unimplemented!()
    }

    /// Replaces everything by a staged state, once the write-ahead log is durable up to all that
    /// was submitted to it. A crash leaves the old state or the new one. Views that were made
    /// before keep reading the old state; what was written before and not yet flushed goes with
    /// it.
    ///
    /// `done` runs once: after `Ok` the keyspace is the new state.
    pub fn install(
        &self,
        staged: StagedVersion,
        done: Box<dyn FnOnce(Result<(), StorageError>) + Send>,
    ) {
        let _ = (staged, done);
        unimplemented!()
    }

    /// Whether a writer should go on: false while more waits to be flushed or compacted than the
    /// options allow. Writes are still taken then.
    pub fn has_room(&self) -> bool {
        true
    }

    /// Runs `wake` once there is room, at once if there is; also when the database is closed.
    pub fn on_room(&self, wake: Box<dyn FnOnce() + Send>) {
        wake();
    }

    /// What is held in memory now.
    pub fn memtable_usage(&self) -> MemtableUsage {
        self.sources().memtable_usage()
    }

    fn sources(&self) -> Arc<Sources> {
        // Poison says nothing here: the value is replaced as a whole.
        Arc::clone(
            &self
                .shared
                .sources
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

impl fmt::Debug for Keyspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Keyspace")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

fn check_limits(batch: &WriteBatch) -> Result<(), StorageError> {
    let key_bytes = batch.key_bytes_longest();
    if key_bytes > KEY_BYTES_MAX {
        return Err(StorageError::KeyTooLong {
            bytes: key_bytes,
            bytes_max: KEY_BYTES_MAX,
        });
    }
    let batch_bytes = batch.bytes();
    if batch_bytes > BATCH_BYTES_MAX {
        return Err(StorageError::BatchTooLarge {
            bytes: batch_bytes,
            bytes_max: BATCH_BYTES_MAX,
        });
    }
    Ok(())
}
