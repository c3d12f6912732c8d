//! Blocks that were read, shared by all tables of the process.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use super::block::Block;
use super::properties::Birth;
use crate::metrics::StorageMetrics;

/// A block above this is not kept: it would push out too many others, and reading it is dominated
/// by its length anyway.
const CACHED_BLOCK_BYTES_MAX: usize = 256 * 1024;

/// Each shard takes at least this much, so that a shard has room for many of the largest blocks.
const SHARD_BYTES_MIN: u64 = 4 << 20;

/// More shards than threads that read do not help.
const SHARDS_MAX: u64 = 16;

/// What an entry takes beside its bytes: key, handle and the cache's own list.
const ENTRY_OVERHEAD_BYTES: usize = 128;

/// The usual length of a block, from which the cache guesses how many it will hold.
const USUAL_BLOCK_BYTES: u64 = 4096;

/// A bounded cache of decompressed, checked blocks.
pub(crate) struct BlockCache {
    blocks: Cache<BlockKey, Block, BlockWeighter, BuildHasherDefault<BlockHasher>>,
    counters: ReadCounters,
}

/// What lookups in tables came to. Statistics only: a lookup that is tried again after the disk was
/// asked counts its steps again.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    filter_useful: AtomicU64,
    filter_false_positives: AtomicU64,
}

impl ReadCounters {
    pub(super) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn filtered(&self) {
        self.filter_useful.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn passed_in_vain(&self) {
        self.filter_false_positives.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds these counts to a snapshot of the engine's.
    pub(crate) fn fill(&self, metrics: &mut StorageMetrics) {
        metrics.block_cache_hits = self.hits.load(Ordering::Relaxed);
        metrics.block_cache_misses = self.misses.load(Ordering::Relaxed);
        metrics.filter_useful = self.filter_useful.load(Ordering::Relaxed);
        metrics.filter_false_positives = self.filter_false_positives.load(Ordering::Relaxed);
    }
}

/// Names a block in any table of any database, for ever: files are never named by inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BlockKey {
    pub(super) table: TableId,
    pub(super) offset: u64,
}

/// Names a table by its birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TableId {
    database: u64,
    number: u64,
}

impl TableId {
    pub(super) fn new(birth: Birth) -> Self {
        Self {
            database: xxhash_rust::xxh3::xxh3_64(birth.database.as_bytes()),
            number: birth.number.get(),
        }
    }
}

impl BlockCache {
    /// A cache of at most `bytes` of memory; 0 keeps nothing.
    pub(crate) fn new(bytes: u64) -> Self {
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let options = OptionsBuilder::new()
            .shards(usize::try_from(shards).expect("shards are few"))
            .estimated_items_capacity(usize::try_from(bytes / USUAL_BLOCK_BYTES).unwrap_or(0))
            .weight_capacity(bytes)
            .build()
            .expect("both capacities are given");
        Self {
            blocks: Cache::with_options(
                options,
                BlockWeighter,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            ),
            counters: ReadCounters::default(),
        }
    }

    pub(super) fn get(&self, key: BlockKey) -> Option<Block> {
        let found = self.blocks.get(&key);
        if found.is_some() {
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    pub(super) fn insert(&self, key: BlockKey, block: &Block) {
        if block.bytes() <= CACHED_BLOCK_BYTES_MAX {
            self.blocks.insert(key, block.clone());
        }
    }

    /// What lookups in the tables that share the cache came to.
    pub(crate) fn counters(&self) -> &ReadCounters {
        &self.counters
    }

    /// The memory that is taken now.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

#[derive(Clone)]
struct BlockWeighter;

impl Weighter<BlockKey, Block> for BlockWeighter {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        u64::try_from(block.bytes() + ENTRY_OVERHEAD_BYTES).expect("a length fits 64 bits")
    }
}

/// Mixes the three words of a key. The same in every process, so that a simulation repeats.
#[derive(Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 29);
    }
}
