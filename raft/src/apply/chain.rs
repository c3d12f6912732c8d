//! The hash that tells whether two replicas did the same.
//!
//! `hash(n) = xxh3-128(hash(n - 1) | index | payload length | payload | outcomes)`, all numbers big
//! endian, outcomes in the encoding of `docs/formats/entry.md`. It finds accidents, not attacks.

use xxhash_rust::xxh3::Xxh3;

use crate::model::{ChainHash, LogIndex};

/// Hashes one entry and its outcomes onto the chain.
pub(super) struct ChainHasher {
    hasher: Xxh3,
}

impl ChainHasher {
    /// Begins with what is known before the entry is executed.
    pub(super) fn new(previous: ChainHash, index: LogIndex, payload: &[u8]) -> Self {
        let payload_bytes = u64::try_from(payload.len()).expect("a length fits 64 bits");
        let mut head = [0; 32];
        head[..16].copy_from_slice(&previous.get().to_be_bytes());
        head[16..24].copy_from_slice(&index.get().to_be_bytes());
        head[24..].copy_from_slice(&payload_bytes.to_be_bytes());
        let mut hasher = Xxh3::new();
        hasher.update(&head);
        hasher.update(payload);
        Self { hasher }
    }

    /// Goes on with an encoded outcome.
    pub(super) fn update(&mut self, outcome: &[u8]) {
        self.hasher.update(outcome);
    }

    /// The chain hash after the entry.
    pub(super) fn finish(self) -> ChainHash {
        ChainHash::new(self.hasher.digest128())
    }
}
