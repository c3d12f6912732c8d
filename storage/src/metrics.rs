//! What the engine counts about itself.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use kelp_seams::Monotonic;

use crate::codec::long;

/// Buckets of the sync histogram: bucket `k` counts syncs of less than 2^k nanoseconds and at
/// least half of that. 2^39 ns are nine minutes; longer ones count in the last bucket.
pub const SYNC_BUCKETS: usize = 40;

/// Levels of tables, level 0 included.
const LEVELS: usize = 7;

/// A snapshot of the engine's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorageMetrics {
    /// Bytes written to the write-ahead log.
    pub wal_bytes: u64,
    /// Frames written to it.
    pub wal_frames: u64,
    /// Groups written to it: one write, and one sync when somebody waited for it.
    pub wal_groups: u64,
    /// Syncs of it.
    pub wal_syncs: u64,
    /// Time spent in them.
    pub wal_sync_time: Duration,
    /// Syncs by duration, see [`SYNC_BUCKETS`].
    pub wal_sync_histogram: Vec<u64>,
    /// How long the sync that runs now has been running.
    pub wal_sync_running: Option<Duration>,
    /// How long ago the last sync ended.
    pub wal_sync_age: Option<Duration>,
    /// Bytes that wait to be written.
    pub wal_queued_bytes: usize,
    /// Files of it that are needed.
    pub wal_files: usize,
    /// Whether the last write found no space and is being tried again.
    pub disk_full: bool,
    /// Whether a failed write or sync ended writing for good.
    pub poisoned: bool,
    /// Estimated memory of all memtables.
    pub memtable_bytes: usize,
    /// Versions in all memtables.
    pub memtable_entries: usize,
    /// Memtables that are not empty, frozen ones included.
    pub memtables: usize,
    /// Memtables that wait to be flushed.
    pub frozen_memtables: usize,
    /// Flushes that were installed.
    pub flushes: u64,
    /// Bytes of the tables that they wrote.
    pub flush_bytes: u64,
    /// Flushes that failed and were tried again.
    pub flush_failures: u64,
    /// Compactions that were installed.
    pub compactions: u64,
    /// Bytes of the tables that they read.
    pub compaction_read_bytes: u64,
    /// Bytes of the tables that they wrote.
    pub compaction_written_bytes: u64,
    /// Compactions that failed; they are tried again, unless an input is corrupt.
    pub compaction_failures: u64,
    /// Keyspaces whose compaction stopped at a corrupt input; they must be replaced or restored.
    pub compaction_halted_keyspaces: u64,
    /// Bytes that compaction must still move until all levels are within their limits.
    pub compaction_debt_bytes: u64,
    /// Tables by level, over all keyspaces.
    pub level_tables: [u64; LEVELS],
    /// Bytes of them.
    pub level_bytes: [u64; LEVELS],
    /// Bytes of tables that only open views still need, or that wait to be removed.
    pub zombie_bytes: u64,
    /// The count of them.
    pub zombie_tables: u64,
    /// The length of the manifest.
    pub manifest_bytes: u64,
    /// How often it was written anew.
    pub manifest_rolls: u64,
    /// Memory of cached blocks.
    pub block_cache_bytes: u64,
    /// Blocks that were found in the cache.
    pub block_cache_hits: u64,
    /// Blocks that were not.
    pub block_cache_misses: u64,
    /// Lookups that a filter answered without reading a block.
    pub filter_useful: u64,
    /// Lookups that a filter let pass though the table did not have the key.
    pub filter_false_positives: u64,
    /// How often a keyspace ran out of room.
    pub stalls: u64,
}

/// The live counters of the write-ahead log. Statistics only: no decision rests on their order.
#[derive(Debug)]
pub(crate) struct Counters {
    bytes: AtomicU64,
    frames: AtomicU64,
    groups: AtomicU64,
    syncs: AtomicU64,
    sync_nanos: AtomicU64,
    sync_histogram: [AtomicU64; SYNC_BUCKETS],
    /// Start of the running sync and end of the last one, in nanoseconds; `NEVER` for none.
    sync_started: AtomicU64,
    sync_ended: AtomicU64,
    queued: AtomicUsize,
    disk_full: AtomicBool,
    poisoned: AtomicBool,
}

const NEVER: u64 = u64::MAX;

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            sync_nanos: AtomicU64::new(0),
            sync_histogram: std::array::from_fn(|_| AtomicU64::new(0)),
            sync_started: AtomicU64::new(NEVER),
            sync_ended: AtomicU64::new(NEVER),
            queued: AtomicUsize::new(0),
            disk_full: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
        }
    }

    pub(crate) fn queued(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn unqueued(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    pub(crate) fn wrote(&self, bytes: usize, frames: usize) {
        self.bytes.fetch_add(long(bytes), Ordering::Relaxed);
        self.frames.fetch_add(long(frames), Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn sync_started(&self, now: Monotonic) {
        self.sync_started.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn sync_ended(&self, started: Monotonic, now: Monotonic) {
        let nanos = now.as_nanos().saturating_sub(started.as_nanos());
        let bucket =
            (64 - usize::try_from(nanos.leading_zeros()).unwrap_or(0)).min(SYNC_BUCKETS - 1);
        self.sync_histogram[bucket].fetch_add(1, Ordering::Relaxed);
        self.sync_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.sync_started.store(NEVER, Ordering::Relaxed);
        self.sync_ended.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn set_disk_full(&self, full: bool) {
        self.disk_full.store(full, Ordering::Relaxed);
    }

    pub(crate) fn set_poisoned(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, now: Monotonic) -> StorageMetrics {
        let age = |point: u64| {
            (point != NEVER).then(|| Duration::from_nanos(now.as_nanos().saturating_sub(point)))
        };
        let histogram = self
            .sync_histogram
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed));
        StorageMetrics {
            wal_bytes: self.bytes.load(Ordering::Relaxed),
            wal_frames: self.frames.load(Ordering::Relaxed),
            wal_groups: self.groups.load(Ordering::Relaxed),
            wal_syncs: self.syncs.load(Ordering::Relaxed),
            wal_sync_time: Duration::from_nanos(self.sync_nanos.load(Ordering::Relaxed)),
            wal_sync_histogram: histogram.collect(),
            wal_sync_running: age(self.sync_started.load(Ordering::Relaxed)),
            wal_sync_age: age(self.sync_ended.load(Ordering::Relaxed)),
            wal_queued_bytes: self.queued_bytes(),
            disk_full: self.disk_full.load(Ordering::Relaxed),
            poisoned: self.poisoned.load(Ordering::Relaxed),
            ..StorageMetrics::default()
        }
    }
}
