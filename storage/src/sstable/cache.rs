//! Blocks that were read, shared by all tables of the process.

use std::hash::{BuildHasherDefault, Hasher};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use super::block::Block;
use super::properties::Birth;

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
        }
    }

    pub(super) fn get(&self, key: BlockKey) -> Option<Block> {
        self.blocks.get(&key)
    }

    pub(super) fn insert(&self, key: BlockKey, block: &Block) {
        if block.bytes() <= CACHED_BLOCK_BYTES_MAX {
            self.blocks.insert(key, block.clone());
        }
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
