//! Tunables of a database.

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
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            wal_file_bytes: 64 << 20,
            hot_tail_bytes: 64 << 20,
        }
    }
}

impl DatabaseOptions {
    /// Limits so small that a test meets all of them.
    pub const fn for_tests() -> Self {
        Self {
            wal_file_bytes: 2048,
            hot_tail_bytes: 256,
        }
    }
}
