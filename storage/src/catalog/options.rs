//! How the tables of a keyspace are written: kept with the keyspace, and shipped with its state.
//!
//! The bytes are those of bincode, behind a version: this is cold metadata that grows field by
//! field, and its decoder takes no more memory than the limit.

use serde::{Deserialize, Serialize};

use crate::sstable::{Compression, SstableOptions};

/// Tunables of one keyspace, fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyspaceOptions {
    /// The length of data blocks before compression, in bytes.
    pub(crate) block_bytes: u32,
    /// Whether blocks are compressed with LZ4 where that helps.
    pub(crate) compressed: bool,
    /// The size of the filters; 0 for none.
    pub(crate) filter_bits_per_key: u8,
}

/// What is encoded: the number of the variant is the version.
#[derive(Serialize, Deserialize)]
enum Encoded {
    V1(KeyspaceOptions),
}

/// Larger blocks would not be kept in the cache.
const BLOCK_BYTES_MAX: u32 = 256 * 1024;
/// More bits do not help.
const FILTER_BITS_MAX: u8 = 20;

const LIMIT: usize = KeyspaceOptions::ENCODED_BYTES_MAX;

type Config = bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Fixint,
    bincode::config::Limit<LIMIT>,
>;

const CONFIG: Config = bincode::config::standard()
    .with_little_endian()
    .with_fixed_int_encoding()
    .with_limit::<LIMIT>();

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
    /// Ten times what the fields take.
    pub(crate) const ENCODED_BYTES_MAX: usize = 256;

    pub(crate) fn encode(self) -> Vec<u8> {
        bincode::serde::encode_to_vec(Encoded::V1(self), CONFIG)
            .expect("a few numbers have no form that cannot be written")
    }

    /// None when the bytes are damaged, of a newer version, or ask for what no keyspace may have.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (Encoded::V1(options), read) =
            bincode::serde::decode_from_slice::<Encoded, _>(bytes, CONFIG).ok()?;
        let whole = read == bytes.len();
        let possible = (1..=BLOCK_BYTES_MAX).contains(&options.block_bytes)
            && options.filter_bits_per_key <= FILTER_BITS_MAX;
        (whole && possible).then_some(options)
    }

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
