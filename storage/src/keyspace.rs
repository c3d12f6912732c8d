//! One named ordered map of the engine, with versions.
//!
//! Writers go one at a time and atomically: a batch is inserted under its own sequence numbers and
//! then published with one store. Readers take a [`ReadView`], which is a sequence number and the
//! list of sources that held everything up to it; they wait for nobody. What is in a keyspace is
//! not in the write-ahead log: whoever embeds it re-applies what a crash lost from a log of its
//! own.
//!
//! ```text
//! write -> active memtable -> frozen memtables -> flush job -> tables of a Version
//!              at its limit, or asked to                        ^-- compaction, install
//! ```
//!
//! The sources change as a whole: the writer freezes, with `writer` held; flush, compaction and
//! install publish, while the catalog lets no other edit happen.

mod registry;
mod room;
mod sources;
#[cfg(test)]
mod tests;
mod written;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kelp_seams::Completion;

use self::room::Room;
use crate::batch::WriteBatch;
use crate::catalog::KeyspaceId;
use crate::compaction::Subject;
use crate::database::DatabaseOptions;
use crate::error::StorageError;
use crate::flush::FlushControl;
use crate::memtable::Memtable;
use crate::pinned::PinnedVersion;
use crate::read_view::ReadView;
use crate::staging::StagedVersion;
use crate::version::Version;

pub(crate) use registry::Keyspaces;
pub(crate) use sources::Sources;
pub use written::Written;

/// The longest key. Four times what users may store, for the prefixes and escapes that embedders
/// add.
pub const KEY_BYTES_MAX: usize = 128 * 1024;

/// The largest batch, keys and values together, and so the largest value. Far above any entry of
/// the Raft log; a length below it fits the 32 bits of every durable format.
pub const BATCH_BYTES_MAX: usize = 1 << 30;

/// What a keyspace holds in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemtableUsage {
    /// Estimated memory, list nodes included.
    pub bytes: usize,
    /// The count of versions, tombstones included.
    pub entries: usize,
}

/// Told after each flush that was installed.
pub(crate) type FlushListener = Arc<dyn Fn() + Send + Sync>;

/// What of the options concerns a keyspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    memtable_bytes: usize,
    memtables_max: usize,
    level_0_stop_tables: usize,
}

impl From<&DatabaseOptions> for Limits {
    fn from(options: &DatabaseOptions) -> Self {
        Self {
            memtable_bytes: options.memtable_bytes,
            // At least one may wait to be flushed while another one is filled.
            memtables_max: options.memtables_max.max(1),
            // A writer never waits for a compaction that has no reason to begin.
            level_0_stop_tables: options
                .level_0_stop_tables
                .max(options.level_0_compaction_tables)
                .max(1),
        }
    }
}

/// A handle of one keyspace; clones share it.
#[derive(Clone)]
pub struct Keyspace {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    limits: Limits,
    /// Held by the one writer from the choice of its sequence numbers to their publication, and by
    /// whoever replaces the active memtable.
    writer: Mutex<()>,
    /// Replaced as a whole. Readers hold the lock for one clone of the `Arc`.
    sources: RwLock<Arc<Sources>>,
    room: Room,
    flush_wanted: AtomicBool,
    listener: Mutex<Option<FlushListener>>,
    /// The incarnation that has an unreadable table, and what is wrong with it.
    damage: Mutex<Option<(KeyspaceId, StorageError)>>,
    control: Arc<FlushControl>,
}

impl Keyspace {
    /// A keyspace that holds what is in the tables of `version`.
    pub(crate) fn new(
        name: &str,
        version: Arc<Version>,
        limits: Limits,
        control: Arc<FlushControl>,
    ) -> Self {
        let start = version.last_sequence();
        let sources = Sources::new(version, start, control.reclaimer());
        Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                limits,
                writer: Mutex::new(()),
                sources: RwLock::new(Arc::new(sources)),
                room: Room::default(),
                flush_wanted: AtomicBool::new(false),
                listener: Mutex::new(None),
                damage: Mutex::new(None),
                control,
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
    /// [`StorageError::Corruption`]: compaction met a table that cannot be read, so nothing is
    /// written any more until another state is installed.
    pub fn write(&self, batch: WriteBatch) -> Result<Written, StorageError> {
        check_limits(&batch)?;
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        let writer = self.shared.lock_writer();
        let mut sources = self.sources();
        if batch.is_empty() {
            let published = sources.active().published();
            return Ok(Written {
                first: published,
                last: published,
                sources,
            });
        }
        let (bytes, bytes_max) = (
            Memtable::bytes_of(&batch),
            self.shared.limits.memtable_bytes,
        );
        if sources.active().bytes().saturating_add(bytes) > bytes_max {
            self.freeze(&writer);
            sources = self.sources();
        }
        let active = sources.active();
        let published = active.published();
        let operation_count = u64::try_from(batch.len()).expect("a length fits 64 bits");
        let first = published.advanced_by(1);
        let last = published.advanced_by(operation_count);
        let was_empty = active.is_empty();
        active.insert(first, batch.into_operations());
        active.publish(last);
        if active.bytes() >= bytes_max {
            self.freeze(&writer);
        } else if was_empty {
            // The time within which it must be flushed begins.
            self.shared.control.notify();
        }
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

    /// Asks for everything written so far to be flushed, and returns at once. When nothing waits to
    /// be flushed, nothing happens and nobody is told.
    pub fn flush(&self) {
        self.want_flush();
        self.shared.control.notify();
    }

    /// The newest flushed state.
    pub fn pin(&self) -> PinnedVersion {
        PinnedVersion::new(Arc::clone(self.sources().version()))
    }

    /// Sets the one listener that is told after each flush that was installed.
    pub fn on_flushed(&self, listener: Arc<dyn Fn() + Send + Sync>) {
        *lock(&self.shared.listener) = Some(listener);
    }

    /// Whether a writer should go on: false while more waits to be flushed or compacted than the
    /// options allow. Writes are still taken then. Always true once the database is closed, and
    /// when [`write`](Self::write) refuses anyway.
    pub fn has_room(&self) -> bool {
        self.shared.control.is_closed()
            || self.sources().have_room(&self.shared.limits)
            || self.damage().is_some()
    }

    /// Runs `wake` once there is room, at once if there is; also when the database is closed.
    pub fn on_room(&self, wake: Box<dyn FnOnce() + Send>) {
        if let Some(wake) = self.shared.room.wait(wake, || self.has_room()) {
            wake();
        }
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
        self.shared.control.install(self.clone(), staged, done);
    }

    /// What is wrong with a table of the present state, as far as compaction has met it.
    fn damage(&self) -> Option<StorageError> {
        let damage = lock(&self.shared.damage);
        let (id, error) = damage.as_ref()?;
        (*id == self.sources().version().id()).then(|| error.clone())
    }

    /// What is held in memory now.
    pub fn memtable_usage(&self) -> MemtableUsage {
        self.sources().memtable_usage()
    }

    pub(crate) fn sources(&self) -> Arc<Sources> {
        // Poison says nothing here: the value is replaced as a whole.
        Arc::clone(
            &self
                .shared
                .sources
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// Whether both are handles of one keyspace.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The calls of those who waited for room, if there is some now.
    pub(crate) fn take_wakes(&self) -> Vec<Completion> {
        self.shared.room.take(|| self.has_room())
    }

    /// Who is told after a flush.
    pub(crate) fn listener(&self) -> Option<FlushListener> {
        lock(&self.shared.listener).clone()
    }

    /// Takes note that a flush was asked for.
    pub(crate) fn want_flush(&self) {
        self.shared.flush_wanted.store(true, Ordering::Release);
    }

    /// Whether somebody asked for a flush since this was asked last.
    pub(crate) fn take_flush_wanted(&self) -> bool {
        self.shared.flush_wanted.swap(false, Ordering::AcqRel)
    }

    /// Freezes the active memtable, unless it is empty.
    pub(crate) fn freeze_active(&self) {
        self.freeze(&self.shared.lock_writer());
    }

    /// Shows the tables of `version` from now on, which hold the frozen memtables `flushed` too.
    pub(crate) fn publish_flushed(&self, version: &Arc<Version>, flushed: &[Arc<Memtable>]) {
        self.replace_sources(|sources| sources.with_version(version, flushed));
    }

    /// Shows nothing but the tables of `version` from now on. Later writes get higher numbers than
    /// all before, of the old state too.
    pub(crate) fn publish_installed(&self, version: &Arc<Version>) {
        let _writer = self.shared.lock_writer();
        let reclaimer = self.shared.control.reclaimer();
        self.replace_sources(|sources| {
            let start = sources.active().published().max(version.last_sequence());
            Sources::new(Arc::clone(version), start, reclaimer)
        });
    }

    /// Freezes the active memtable, unless it is empty; a closed database flushes nothing, so
    /// there it goes on growing.
    fn freeze(&self, _writer: &MutexGuard<'_, ()>) {
        let control = &self.shared.control;
        if control.is_closed() || self.sources().active().is_empty() {
            return;
        }
        self.replace_sources(|sources| sources.with_active_frozen(control.reclaimer()));
    }

    fn replace_sources(&self, change: impl FnOnce(&Sources) -> Sources) {
        let shared = &self.shared;
        let mut sources = shared
            .sources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let changed = Arc::new(change(&sources));
        let has_room = changed.have_room(&shared.limits);
        let before = std::mem::replace(&mut *sources, changed);
        let stalled = shared.room.note(has_room);
        drop(sources);
        // What only the old sources held is freed with no lock held.
        drop(before);
        if stalled {
            shared.control.counters().count_stall();
        }
        shared.control.notify();
    }
}

impl Subject for Keyspace {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn version(&self) -> Arc<Version> {
        Arc::clone(self.sources().version())
    }

    fn publish(&self, version: &Arc<Version>) {
        self.publish_flushed(version, &[]);
    }

    fn damaged(&self, id: KeyspaceId, error: StorageError) {
        *lock(&self.shared.damage) = Some((id, error));
        // Those who wait for room would wait for good.
        self.shared.control.notify();
    }
}

impl Shared {
    fn lock_writer(&self) -> MutexGuard<'_, ()> {
        self.writer
            .lock()
            .expect("no writer panics while it inserts")
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
