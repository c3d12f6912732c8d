//! Tunables of a database.

use std::time::Duration;

/// How a database uses memory and disk. Any value of any field gives a correct database; a wrong
/// one gives a slow one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// The length at which a file of the write-ahead log is full, in bytes; also how much is
    /// reserved ahead of time. Small files give space back sooner and cost more renewals. Default
    /// 64 MiB.
    pub wal_file_bytes: u64,
    /// How many bytes of its newest entries each log keeps in memory. Followers that are behind by
    /// more are served from the disk. Default 64 MiB.
    pub hot_tail_bytes: usize,
    /// The memory at which a memtable is full and is flushed. Small ones cost more flushes and
    /// compactions, large ones memory and time to apply again after a crash. Default 16 MiB.
    pub memtable_bytes: usize,
    /// How many memtables a keyspace may have, the one being filled included, before its writer
    /// should wait. More ride out a slower disk and cost memory. Default 6.
    pub memtables_max: usize,
    /// How long what was written may stay in memory alone. Shorter keeps logs shorter and makes
    /// more small tables. Default 60 s.
    pub flush_interval: Duration,
    /// How much memory is used for blocks of tables that were read. Default 64 MiB.
    pub block_cache_bytes: u64,
    /// The length at which a table is full, in bytes. Default 32 MiB.
    pub table_bytes: u64,
    /// How much the level may hold that takes what leaves level 0, in bytes; each deeper level
    /// holds up to ten times as much as the one above. Default 128 MiB.
    pub level_base_bytes: u64,
    /// How many tables of level 0 that share a key start a compaction. Fewer cost writes, more cost
    /// reads. Default 4.
    pub level_0_compaction_tables: usize,
    /// How many tables of level 0 make the writer wait. Default 20.
    pub level_0_stop_tables: usize,
    /// The length that a manifest has at least, in bytes. Small ones are written anew more often.
    /// Default 4 MiB.
    pub manifest_bytes: u64,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            wal_file_bytes: 64 << 20,
            hot_tail_bytes: 64 << 20,
            memtable_bytes: 16 << 20,
            memtables_max: 6,
            flush_interval: Duration::from_mins(1),
            block_cache_bytes: 64 << 20,
            table_bytes: 32 << 20,
            level_base_bytes: 128 << 20,
            level_0_compaction_tables: 4,
            level_0_stop_tables: 20,
            manifest_bytes: 4 << 20,
        }
    }
}

impl DatabaseOptions {
    /// Limits so small that a test meets all of them.
    pub const fn for_tests() -> Self {
        Self {
            wal_file_bytes: 2048,
            hot_tail_bytes: 256,
            memtable_bytes: 8 << 10,
            memtables_max: 3,
            flush_interval: Duration::from_secs(1),
            block_cache_bytes: 16 << 10,
            table_bytes: 4 << 10,
            level_base_bytes: 16 << 10,
            level_0_compaction_tables: 2,
            level_0_stop_tables: 6,
            manifest_bytes: 4 << 10,
        }
    }
}
