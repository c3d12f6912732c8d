//! Walks the entries of a block.

use bytes::Bytes;

use super::{Block, BlockFault, SHARES_TOO_MUCH};
use crate::internal_key::Trailer;

/// A place in a block: at an entry, or at none.
#[derive(Clone, Debug)]
pub(in super::super) struct BlockCursor {
    block: Block,
    /// Where the entry starts; the end of the entries when the cursor is at none.
    offset: usize,
    /// Where the next entry starts.
    next: usize,
    user_key: Vec<u8>,
    trailer: Trailer,
    value_start: usize,
}

impl BlockCursor {
    /// A cursor at no entry.
    pub(in super::super) fn new(block: Block) -> Self {
        let end = block.entries_end;
        Self {
            block,
            offset: end,
            next: end,
            user_key: Vec::new(),
            trailer: Trailer::AFTER_ALL,
            value_start: end,
        }
    }

    /// Whether the cursor is at an entry.
    pub(in super::super) fn is_valid(&self) -> bool {
        self.offset < self.block.entries_end
    }

    /// The user key of the entry.
    pub(in super::super) fn user_key(&self) -> &[u8] {
        &self.user_key
    }

    /// Sequence number and kind of the entry.
    pub(in super::super) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// The value of the entry. It shares the bytes of the block, which live as long as it does.
    pub(in super::super) fn value(&self) -> Bytes {
        self.block.bytes.slice(self.value_start..self.next)
    }

    /// The same, borrowed.
    pub(in super::super) fn value_slice(&self) -> &[u8] {
        &self.block.bytes[self.value_start..self.next]
    }

    /// Goes to the first entry.
    pub(in super::super) fn seek_first(&mut self) -> Result<(), BlockFault> {
        self.jump(0)?;
        self.next()
    }

    /// Goes to the last entry.
    pub(in super::super) fn seek_last(&mut self) -> Result<(), BlockFault> {
        self.offset = self.block.entries_end;
        self.prev()
    }

    /// Goes to the first entry at or after (`user_key`, `trailer`).
    pub(in super::super) fn seek(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), BlockFault> {
        let Some(place) = self.block.find(user_key, trailer)? else {
            self.next = self.block.entries_end;
            return self.next();
        };
        // The entry shares no more with the one before than that has in common with the target.
        self.user_key.clear();
        self.user_key.extend_from_slice(user_key);
        self.next = place.offset;
        self.next()
    }

    /// Makes the entry of a restart point the next one. It shares nothing with a key before it.
    fn jump(&mut self, restart: usize) -> Result<(), BlockFault> {
        self.user_key.clear();
        self.next = self.block.restart(restart)?;
        Ok(())
    }

    /// Goes to the entry after this one.
    #[inline]
    pub(in super::super) fn next(&mut self) -> Result<(), BlockFault> {
        self.offset = self.next;
        if !self.is_valid() {
            return Ok(());
        }
        let entry = self.block.entry(self.offset)?;
        if entry.shared > self.user_key.len() {
            return Err(SHARES_TOO_MUCH);
        }
        self.user_key.truncate(entry.shared);
        self.user_key.extend_from_slice(entry.suffix);
        self.trailer = entry.trailer;
        (self.value_start, self.next) = entry.value;
        Ok(())
    }

    /// Goes to the entry before this one; from no entry to the last one.
    pub(in super::super) fn prev(&mut self) -> Result<(), BlockFault> {
        let target = self.offset;
        if target == 0 {
            self.offset = self.block.entries_end;
            self.next = self.offset;
            return Ok(());
        }
        let (mut low, mut high) = (0, self.block.restart_count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.block.restart(middle)? < target {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.jump(low)?;
        loop {
            self.next()?;
            if self.next == target {
                return Ok(());
            }
            if self.next > target || !self.is_valid() {
                return Err(BlockFault("a restart point is not at an entry"));
            }
        }
    }
}
