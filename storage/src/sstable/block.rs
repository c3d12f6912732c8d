//! A block of versions in order: the content of data blocks and of the index.
//!
//! Keys share their beginning with the key before them, except at restart points, which a search
//! can jump to. Decoding answers faults, it never trusts the bytes, although a check has covered
//! them. Format page: docs/formats/sstable.md.

mod builder;
mod cursor;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::codec::{Reader, index};
use crate::internal_key::{Trailer, compare};

pub(super) use builder::BlockBuilder;
pub(super) use cursor::BlockCursor;

/// Entries from one restart point to the next: few enough to walk, enough to share prefixes.
const RESTART_ENTRIES: usize = 16;

/// Restart offsets take two bytes up to this payload, else four.
const NARROW_BYTES_MAX: usize = 1 << 16;

/// The count of restart points and the flags, at the end.
const TAIL_BYTES: usize = 4;
const RESTART_COUNT_BITS: u32 = 28;
const FLAG_WIDE: u32 = 1 << RESTART_COUNT_BITS;

const SHARES_TOO_MUCH: BlockFault = BlockFault("an entry shares more than there is");

/// What is wrong with the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockFault(pub(super) &'static str);

/// A block that was read; clones share its bytes.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Entries, restart offsets, tail.
    bytes: Bytes,
    entries_end: usize,
    restart_count: usize,
    wide: bool,
}

/// Where a search ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Whether the entry has the user key that was searched for.
    pub(super) is_user_key: bool,
    pub(super) trailer: Trailer,
    /// Where the entry starts.
    offset: usize,
    /// As in [`Entry`].
    value: (usize, usize),
}

/// One entry, decoded except for the part of the key that it shares.
#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    shared: usize,
    suffix: &'a [u8],
    trailer: Trailer,
    /// Where the value starts and ends in the block; the next entry follows.
    value: (usize, usize),
}

impl Block {
    pub(super) fn decode(bytes: Bytes) -> Result<Self, BlockFault> {
        let fault = BlockFault("a block has no room for its restart points");
        let (_, tail) = bytes.split_last_chunk().ok_or(fault)?;
        let tail = u32::from_le_bytes(*tail);
        let flags = tail >> RESTART_COUNT_BITS << RESTART_COUNT_BITS;
        if flags & !FLAG_WIDE != 0 {
            return Err(BlockFault("a block has unknown flags"));
        }
        let wide = flags & FLAG_WIDE != 0;
        let restart_count = index(u64::from(tail & !flags));
        let restart_bytes = restart_count * if wide { 4 } else { 2 } + TAIL_BYTES;
        let entries_end = bytes.len().checked_sub(restart_bytes).ok_or(fault)?;
        let block = Self {
            bytes,
            entries_end,
            restart_count,
            wide,
        };
        if restart_count == 0 || entries_end == 0 || block.restart(0)? != 0 {
            return Err(BlockFault("a block has no first entry"));
        }
        Ok(block)
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The first entry at or after (`user_key`, `trailer`), found without a copy of any key.
    pub(super) fn find(
        &self,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<Option<Place>, BlockFault> {
        let mut offset = self.restart(self.restart_before(user_key, trailer)?)?;
        // How many bytes the key of the entry before has, and how many of them `user_key` shares.
        let (mut length, mut matched) = (0, 0);
        while offset < self.entries_end {
            let entry = self.entry(offset)?;
            if entry.shared > length {
                return Err(SHARES_TOO_MUCH);
            }
            length = entry.shared + entry.suffix.len();
            // An entry that shares more than that differs from `user_key` at the same byte as the
            // one before, which sorts before it.
            if entry.shared <= matched {
                let rest = &user_key[entry.shared..];
                let order = compare((entry.suffix, entry.trailer), (rest, trailer));
                if order.is_ge() {
                    return Ok(Some(Place {
                        is_user_key: entry.suffix == rest,
                        trailer: entry.trailer,
                        offset,
                        value: entry.value,
                    }));
                }
                matched = entry.shared + shared_bytes(entry.suffix, rest);
            }
            offset = entry.value.1;
        }
        Ok(None)
    }

    /// The value of a place in this block. It shares the bytes of the block.
    pub(super) fn value(&self, place: &Place) -> Bytes {
        self.bytes.slice(place.value.0..place.value.1)
    }

    /// The same, borrowed.
    pub(super) fn value_slice(&self, place: &Place) -> &[u8] {
        &self.bytes[place.value.0..place.value.1]
    }

    /// The last restart point whose entry is before (`user_key`, `trailer`), or the first one: the
    /// place that is searched for is not before it.
    fn restart_before(&self, user_key: &[u8], trailer: Trailer) -> Result<usize, BlockFault> {
        let (mut low, mut high) = (0, self.restart_count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let entry = self.entry(self.restart(middle)?)?;
            if compare((entry.suffix, entry.trailer), (user_key, trailer)).is_lt() {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Where the entry of restart point `position` starts.
    fn restart(&self, position: usize) -> Result<usize, BlockFault> {
        let mut reader = Reader::new(&self.bytes[self.entries_end..]);
        let offset = if self.wide {
            reader.take(position * 4);
            reader.u32()
        } else {
            reader.take(position * 2);
            reader.u16().map(u32::from)
        };
        offset
            .map(|offset| index(u64::from(offset)))
            .filter(|&offset| offset < self.entries_end)
            .ok_or(BlockFault("a restart point is outside of its block"))
    }

    /// The entry that starts at `offset`, which is before the end of the entries.
    #[inline]
    fn entry(&self, offset: usize) -> Result<Entry<'_>, BlockFault> {
        self.try_entry(offset)
            .ok_or(BlockFault("an entry cannot be read"))
    }

    #[inline]
    fn try_entry(&self, offset: usize) -> Option<Entry<'_>> {
        let mut reader = Reader::new(self.bytes.get(offset..self.entries_end)?);
        let shared = usize::try_from(reader.varint()?).ok()?;
        let suffix_bytes = usize::try_from(reader.varint()?).ok()?;
        let value_bytes = usize::try_from(reader.varint()?).ok()?;
        let kind = reader.u8()?;
        let trailer = Trailer::from_encoded(reader.varint()?, kind)?;
        let suffix = reader.take(suffix_bytes)?;
        let value_start = self.entries_end - reader.rest().len();
        reader.take(value_bytes)?;
        Some(Entry {
            shared,
            suffix,
            trailer,
            value: (value_start, value_start + value_bytes),
        })
    }
}

/// The length of the common start of two keys.
fn shared_bytes(left: &[u8], right: &[u8]) -> usize {
    let same = |(left, right): &(&u8, &u8)| left == right;
    left.iter().zip(right).take_while(same).count()
}
