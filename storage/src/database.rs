//! A database: one directory with logs and keyspaces.

mod metrics;
mod open;
mod options;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kelp_seams::{Clock, Executor, JobHandle, Rng};

pub use self::options::DatabaseOptions;
use crate::catalog::{Catalog, KeyspaceOptions};
use crate::compaction::CompactionCounters;
use crate::error::{OpenError, StorageError};
use crate::flush::FlushControl;
use crate::hard_state::{Boot, HardState, VOTES_MAX};
use crate::identity::{self, DatabaseId, Identity};
use crate::keyspace::{Keyspace, Keyspaces, Limits};
use crate::log::{Log, LogNumber, LogShared, LogState};
use crate::metrics::StorageMetrics;
use crate::staging::Staging;
use crate::vfs::{Vfs, VfsLock};
use crate::wal::Wal;
use crate::wal::flusher::Writer;

/// Queued bytes from which on new writes should be refused. Twice what one write moves well; more
/// would only add latency.
const WAL_ADMISSION_BYTES: usize = 8 << 20;

/// The doors through which a database touches the world.
#[derive(Clone)]
pub struct Seams {
    /// The disk.
    pub vfs: Arc<dyn Vfs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rng: Arc<dyn Rng>,
    /// Background work.
    pub executor: Arc<dyn Executor>,
}

impl fmt::Debug for Seams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seams")
    }
}

/// An open database; clones share it. It is closed by [`close`](Self::close), or when the last
/// handle, those of its logs included, is dropped.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    directory: PathBuf,
    options: DatabaseOptions,
    seams: Seams,
    hard_state: Arc<HardState>,
    identity: Mutex<Identity>,
    wal: Arc<Wal>,
    writer: Arc<Mutex<Writer>>,
    logs: Mutex<BTreeMap<LogNumber, Arc<LogShared>>>,
    catalog: Arc<Catalog>,
    flush: Arc<FlushControl>,
    compaction: Compaction,
    keyspaces: Arc<Keyspaces>,
    /// Released last.
    lock: Mutex<Option<Box<dyn VfsLock>>>,
}

struct Compaction {
    job: JobHandle,
    counters: Arc<CompactionCounters>,
}

impl Database {
    /// Opens the database in `directory`, which is made when it is missing or empty. Logs are as
    /// they were after the last durable submission, or after a later one.
    ///
    /// # Errors
    /// See [`OpenError`], one variant per reaction. A directory that is refused is not changed.
    pub fn open(
        directory: &Path,
        options: DatabaseOptions,
        seams: Seams,
    ) -> Result<Self, OpenError> {
        open::open(directory, options, seams)
    }

    /// The log `number`, made if there is none. Many calls for one number give handles of the same
    /// log.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`]: the database has as many logs as it may have.
    pub fn log(&self, number: LogNumber) -> Result<Log, StorageError> {
        let shared = &self.shared;
        let mut logs = lock(&shared.logs);
        let count = logs.len() + usize::from(!logs.contains_key(&number));
        if count > VOTES_MAX {
            return Err(too_many("logs", count, VOTES_MAX));
        }
        let log = logs.entry(number).or_insert_with(|| {
            Arc::new(LogShared::new(
                number,
                LogState::default(),
                Arc::clone(&shared.wal),
                shared.options.hot_tail_bytes,
            ))
        });
        Ok(Log::new(
            Arc::clone(log),
            Arc::clone(shared) as Arc<dyn Send + Sync>,
        ))
    }

    /// The keyspace `name`, made durably if there is none. It is not in the write-ahead log: a new
    /// process finds what was flushed.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`]: the name is too long, or the database has as many keyspaces as
    /// it may have. [`StorageError::Io`]: it could not be made; it may be tried again.
    /// [`StorageError::Closed`]: it would have to be made.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace, StorageError> {
        let shared = &self.shared;
        shared.keyspaces.get_or_open(name, || {
            let options = KeyspaceOptions::default();
            let version = shared.catalog.keyspace(name, options)?;
            let limits = Limits::from(&shared.options);
            let control = Arc::clone(&shared.flush);
            // Its tables may have waited for compaction since the last run.
            shared.compaction.job.notify();
            Ok(Keyspace::new(name, version, limits, control))
        })
    }

    /// Begins to take over a state that another database described, in place of what `keyspace`
    /// holds.
    ///
    /// # Errors
    /// [`StorageError::TooLarge`]: more than 16 MiB of description or 65,536 files.
    /// [`StorageError::BadDescription`]: it cannot be what a database said.
    pub fn stage(&self, keyspace: &Keyspace, description: &[u8]) -> Result<Staging, StorageError> {
        tracing::debug!(keyspace = keyspace.name(), "taking over a shipped state");
        Staging::new(&self.shared.catalog, description)
    }

    /// Counts one more start, durably, and answers the new count; the first is 1. To be called
    /// once per start, before anything leaves the process.
    ///
    /// # Errors
    /// [`StorageError::Poisoned`]: the process must end. [`StorageError::Closed`].
    pub fn raise_boot(&self) -> Result<Boot, StorageError> {
        let _identity = self.shared.lock_identity()?;
        self.shared.hard_state.raise_boot()
    }

    /// The count of starts so far.
    pub fn boot(&self) -> Boot {
        self.shared.hard_state.boot()
    }

    /// The name that this directory drew when it was made. An emptied directory gets another one.
    pub fn id(&self) -> DatabaseId {
        lock(&self.shared.identity).database
    }

    /// Binds the directory to `owner`, durably and for ever; 1 to 1024 opaque bytes. Binding again
    /// to the same owner changes nothing.
    ///
    /// # Errors
    /// [`StorageError::OwnedByAnother`], with what is bound. [`StorageError::TooLarge`].
    /// [`StorageError::Io`]: it may be bound or not; open again to know. [`StorageError::Closed`].
    pub fn bind(&self, owner: &[u8]) -> Result<(), StorageError> {
        let shared = &self.shared;
        identity::bind(
            &mut *shared.lock_identity()?,
            owner,
            &*shared.seams.vfs,
            &shared.directory,
        )
    }

    /// Whom the directory is bound to.
    pub fn owner(&self) -> Option<Bytes> {
        lock(&self.shared.identity).owner.clone()
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// Writes what is queued, seals the log, stops all background work and gives the directory
    /// free. Blocks until that is done. Later submissions are refused as closed.
    pub fn close(&self) {
        self.shared.close();
    }

    /// A snapshot of the counters.
    pub fn metrics(&self) -> StorageMetrics {
        metrics::collect(&self.shared)
    }

    /// Whether the disk keeps up: while this is false, new work should be refused early, though
    /// submissions and writes are still taken.
    pub fn admission_open(&self) -> bool {
        let shared = &self.shared;
        shared.wal.counters.queued_bytes() < WAL_ADMISSION_BYTES && shared.keyspaces.have_room()
    }
}

impl Shared {
    fn close(&self) {
        self.stop_tables();
        self.wal.stop_jobs();
        let completions = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .close();
        for completion in completions {
            completion();
        }
        self.catalog.stop();
        // Whoever changes what the directory is has done so before somebody else gets it.
        drop(lock(&self.identity));
        drop(lock(&self.lock).take());
    }

    /// The right to change what the directory is, which ends with the database.
    fn lock_identity(&self) -> Result<MutexGuard<'_, Identity>, StorageError> {
        let identity = lock(&self.identity);
        if self.flush.is_closed() {
            return Err(StorageError::Closed);
        }
        Ok(identity)
    }

    /// Stops all work on tables, and wakes whoever waits for it.
    fn stop_tables(&self) {
        self.flush.close();
        self.compaction.job.stop();
        for wake in self.keyspaces.take_wakes() {
            wake();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The state may be half changed: leave the files to the next open's repair.
            self.stop_tables();
            self.wal.stop_jobs();
            self.catalog.stop();
            return;
        }
        self.close();
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Database")
            .field("directory", &self.shared.directory)
            .finish_non_exhaustive()
    }
}

fn too_many(what: &'static str, size: usize, size_max: usize) -> StorageError {
    StorageError::TooLarge {
        what,
        size,
        size_max,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
