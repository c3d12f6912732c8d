//! Walks every version of a table, in either direction.
//!
//! The cursor stands on one entry of each block on the way from the index down to the data, and
//! changes blocks as it passes their ends.

use std::sync::Arc;

use bytes::Bytes;

use super::block::{BlockCursor, BlockFault};
use super::error::SstableError;
use super::reader::SstableReader;
use crate::internal_key::Trailer;

/// A scan leaves the blocks that it reads in the cache up to this, so that a long one does not
/// push out what others need.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// An owned position in a table: at a version, or at none.
pub(crate) struct EntryCursor {
    reader: Arc<SstableReader>,
    /// From the index to the data; shorter than the way when the cursor is at no version.
    levels: Vec<Level>,
    /// How much may still be left in the cache.
    kept_bytes_left: usize,
}

struct Level {
    cursor: BlockCursor,
    offset: u64,
}

#[derive(Clone, Copy)]
enum Step {
    Next,
    Prev,
}

impl EntryCursor {
    /// A cursor at no version, whose blocks go into the cache as long as they are few.
    pub(crate) fn new(reader: Arc<SstableReader>) -> Self {
        Self {
            reader,
            levels: Vec::new(),
            kept_bytes_left: KEPT_BYTES_MAX,
        }
    }

    /// The same, for one who reads the whole table once: nothing goes into the cache.
    pub(crate) fn once(reader: Arc<SstableReader>) -> Self {
        Self {
            kept_bytes_left: 0,
            ..Self::new(reader)
        }
    }

    /// User key and trailer of the version; none when the cursor is at none.
    pub(crate) fn entry(&self) -> Option<(&[u8], Trailer)> {
        let cursor = &self.data()?.cursor;
        Some((cursor.user_key(), cursor.trailer()))
    }

    /// The value of the version, which keeps its block in memory; none when the cursor is at none.
    pub(crate) fn value(&self) -> Option<Bytes> {
        self.data().map(|level| level.cursor.value())
    }

    /// Goes to the first version.
    pub(crate) fn seek_first(&mut self) -> Result<(), SstableError> {
        self.start();
        self.step_deepest(BlockCursor::seek_first)?;
        self.settle(Step::Next)
    }

    /// Goes to the last version.
    pub(crate) fn seek_last(&mut self) -> Result<(), SstableError> {
        self.start();
        self.step_deepest(BlockCursor::seek_last)?;
        self.settle(Step::Prev)
    }

    /// Goes to the first version at or after (`user_key`, `trailer`).
    pub(crate) fn seek(&mut self, user_key: &[u8], trailer: Trailer) -> Result<(), SstableError> {
        self.start();
        self.step_deepest(|cursor| cursor.seek(user_key, trailer))?;
        while self.levels.len() < self.reader.depth() && self.deepest_is_valid() {
            self.descend()?;
            self.step_deepest(|cursor| cursor.seek(user_key, trailer))?;
        }
        self.settle(Step::Next)
    }

    /// Goes to the last version before (`user_key`, `trailer`).
    pub(crate) fn seek_before(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<(), SstableError> {
        self.seek(user_key, trailer)?;
        if self.data().is_some() {
            self.prev()
        } else {
            self.seek_last()
        }
    }

    /// Goes to the version after this one; at none it stays there.
    pub(crate) fn next(&mut self) -> Result<(), SstableError> {
        self.step(Step::Next)
    }

    /// Goes to the version before this one; at none it stays there.
    pub(crate) fn prev(&mut self) -> Result<(), SstableError> {
        self.step(Step::Prev)
    }

    fn step(&mut self, step: Step) -> Result<(), SstableError> {
        if self.data().is_none() {
            return Ok(());
        }
        self.step_deepest(|cursor| step.apply(cursor))?;
        self.settle(step)
    }

    /// Goes up where a block has ended and down to the data where it has not.
    fn settle(&mut self, step: Step) -> Result<(), SstableError> {
        loop {
            if self.deepest_is_valid() {
                if self.levels.len() == self.reader.depth() {
                    return Ok(());
                }
                self.descend()?;
                self.step_deepest(|cursor| step.enter(cursor))?;
            } else {
                self.levels.pop();
                if self.levels.is_empty() {
                    return Ok(());
                }
                self.step_deepest(|cursor| step.apply(cursor))?;
            }
        }
    }

    /// Stands before the index.
    fn start(&mut self) {
        let (index, offset) = self.reader.root();
        self.levels.clear();
        self.levels.push(Level {
            cursor: BlockCursor::new(index),
            offset,
        });
    }

    /// Stands before the block that the deepest entry leads to.
    fn descend(&mut self) -> Result<(), SstableError> {
        let Some(parent) = self.levels.last() else {
            return Ok(());
        };
        let handle = self
            .reader
            .handle(parent.cursor.value_slice(), parent.offset)?;
        let block = self.reader.block(handle, self.kept_bytes_left > 0)?;
        self.kept_bytes_left = self.kept_bytes_left.saturating_sub(block.bytes());
        self.levels.push(Level {
            cursor: BlockCursor::new(block),
            offset: handle.offset,
        });
        Ok(())
    }

    fn step_deepest(
        &mut self,
        step: impl FnOnce(&mut BlockCursor) -> Result<(), BlockFault>,
    ) -> Result<(), SstableError> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        let offset = level.offset;
        step(&mut level.cursor).map_err(|fault| {
            // Where the cursor stands now is unknown.
            self.levels.clear();
            self.reader.corrupt(offset, fault)
        })
    }

    fn deepest_is_valid(&self) -> bool {
        let deepest = self.levels.last();
        deepest.is_some_and(|level| level.cursor.is_valid())
    }

    /// The level of the data, when the cursor is at a version.
    fn data(&self) -> Option<&Level> {
        self.levels
            .get(self.reader.depth() - 1)
            .filter(|level| level.cursor.is_valid())
    }
}

impl Step {
    fn apply(self, cursor: &mut BlockCursor) -> Result<(), BlockFault> {
        match self {
            Self::Next => cursor.next(),
            Self::Prev => cursor.prev(),
        }
    }

    /// Goes to the first entry of a block that is walked in this direction.
    fn enter(self, cursor: &mut BlockCursor) -> Result<(), BlockFault> {
        match self {
            Self::Next => cursor.seek_first(),
            Self::Prev => cursor.seek_last(),
        }
    }
}
