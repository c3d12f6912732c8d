//! Puts entries into a block.

use super::{FLAG_WIDE, NARROW_BYTES_MAX, RESTART_COUNT_BITS, RESTART_ENTRIES, shared_bytes};
use crate::codec::{long, push_varint, short};
use crate::internal_key::Trailer;

/// At most four varints of ten bytes and the kind stand before key and value.
const ENTRY_HEADER_BYTES_MAX: usize = 4 * 10 + 1;

/// A block that grows. Entries come in order; that is the caller's promise.
#[derive(Debug, Default)]
pub(in super::super) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// The user key of the last entry.
    key: Vec<u8>,
    entry_count: usize,
}

impl BlockBuilder {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// The length that the block would have now, restart points included, as if they were wide.
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + super::TAIL_BYTES
    }

    /// An upper bound of what one more entry adds.
    pub(in super::super) fn entry_bytes_max(user_key: &[u8], value: &[u8]) -> usize {
        ENTRY_HEADER_BYTES_MAX + user_key.len() + value.len() + 4
    }

    /// Appends an entry, which sorts after all before it.
    pub(in super::super) fn add(&mut self, user_key: &[u8], trailer: Trailer, value: &[u8]) {
        let shared = if self.entry_count.is_multiple_of(RESTART_ENTRIES) {
            self.restarts.push(short(self.bytes.len()));
            0
        } else {
            shared_bytes(&self.key, user_key)
        };
        let suffix = &user_key[shared..];
        push_varint(&mut self.bytes, long(shared));
        push_varint(&mut self.bytes, long(suffix.len()));
        push_varint(&mut self.bytes, long(value.len()));
        self.bytes.push(trailer.kind() as u8);
        push_varint(&mut self.bytes, trailer.sequence().get());
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value);
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        self.entry_count += 1;
    }

    /// Ends the block and gives its bytes to `take`; the builder is empty afterwards.
    ///
    /// # Panics
    /// When there is no entry.
    pub(in super::super) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        assert!(!self.is_empty(), "a block has at least one entry");
        let narrow = self.bytes.len() <= NARROW_BYTES_MAX;
        for &restart in &self.restarts {
            match u16::try_from(restart) {
                Ok(restart) if narrow => self.bytes.extend_from_slice(&restart.to_le_bytes()),
                _ => self.bytes.extend_from_slice(&restart.to_le_bytes()),
            }
        }
        let count = short(self.restarts.len());
        assert!(
            count < 1 << RESTART_COUNT_BITS,
            "{count} restart points are more than a block can count"
        );
        let tail = if narrow { count } else { count | FLAG_WIDE };
        self.bytes.extend_from_slice(&tail.to_le_bytes());
        let taken = take(&self.bytes);
        self.bytes.clear();
        self.restarts.clear();
        self.key.clear();
        self.entry_count = 0;
        taken
    }
}
