//! How the tables of a keyspace are written: kept with the keyspace, and shipped with its state.

use crate::sstable::{Compression, SstableOptions};

/// Tunables of one keyspace, fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyspaceOptions {
    /// The length of data blocks before compression, in bytes.
    pub(crate) block_bytes: u32,
    /// Whether blocks are compressed with LZ4 where that helps.
    pub(crate) compressed: bool,
    /// The size of the filters.
    pub(crate) filter_bits_per_key: u8,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            block_bytes: 4096,
            compressed: true,
            filter_bits_per_key: 10,
        }
    }
}

impl KeyspaceOptions {
    /// As the writer of tables takes them.
    pub(crate) fn table(self) -> SstableOptions {
        let defaults = SstableOptions::default();
        SstableOptions {
            block_bytes_target: usize::try_from(self.block_bytes)
                .unwrap_or(defaults.block_bytes_target),
            compression: if self.compressed {
                Compression::Lz4
            } else {
                Compression::None
            },
            filter_bits_per_key: self.filter_bits_per_key,
            ..defaults
        }
    }
}
