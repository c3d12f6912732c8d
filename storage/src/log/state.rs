//! What is in memory of a log: where each entry lies, and the newest entries themselves.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use super::{EntryTerm, LogIndex, LogPosition};
use crate::codec::{index, long};
use crate::error::StorageError;
use crate::wal::format::{RECORD_HEADER_BYTES, padded};
use crate::wal::queue::{LogHead, Lsn, Place};
use crate::wal::record::{APPEND_PREFIX_BYTES, Head, StoredVote};

/// An entry that is present.
#[derive(Clone, Copy, Debug)]
struct Slot {
    place: Place,
    term: EntryTerm,
    /// The bytes of all entries up to and including this one, counted from where this process
    /// began to count; only differences mean something.
    bytes_through: u64,
}

/// Invariants: `slots[k]` is the entry `first_index + k`; `hot` holds the payloads of the last
/// `hot.len()` entries and `hot_bytes` is their length together; places and `bytes_through` grow
/// with the index, and `bytes_before` is the latter for the entry before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogState {
    pub(crate) vote: Option<StoredVote>,
    pub(crate) committed: Option<LogPosition>,
    pub(crate) purged: Option<LogPosition>,
    first_index: u64,
    bytes_before: u64,
    slots: VecDeque<Slot>,
    hot: VecDeque<Bytes>,
    hot_bytes: usize,
}

impl LogState {
    pub(crate) fn first(&self) -> Option<LogPosition> {
        self.position(LogIndex::new(self.first_index))
    }

    pub(crate) fn last(&self) -> Option<LogPosition> {
        let slot = self.slots.back()?;
        let index = LogIndex::new(self.first_index + long(self.slots.len()) - 1);
        Some(LogPosition {
            index,
            term: slot.term,
        })
    }

    pub(crate) fn position(&self, index: LogIndex) -> Option<LogPosition> {
        let slot = self.slot(index)?;
        Some(LogPosition {
            index,
            term: slot.term,
        })
    }

    pub(crate) fn place(&self, index: LogIndex) -> Option<Place> {
        self.slot(index).map(|slot| slot.place)
    }

    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        self.slots.front().map(|slot| slot.place.lsn)
    }

    /// The payload of an entry that is in memory.
    pub(crate) fn hot(&self, index: LogIndex) -> Option<&Bytes> {
        let from_end = self.end().checked_sub(index.get())?;
        let position = long(self.hot.len()).checked_sub(from_end)?;
        self.hot.get(usize::try_from(position).ok()?)
    }

    /// Whether an entry with this index may come next.
    pub(crate) fn check_continues(&self, got: LogIndex) -> Result<(), StorageError> {
        let last = self.last().or(self.purged);
        match last.map(|last| last.index.next()) {
            Some(expected) if expected != got => Err(StorageError::NotContiguous { expected, got }),
            _ => Ok(()),
        }
    }

    /// Adds an entry, which must continue the log.
    pub(crate) fn append(&mut self, position: LogPosition, place: Place) {
        if self.slots.is_empty() {
            self.first_index = position.index.get();
        }
        assert_eq!(position.index.get(), self.end(), "the log stays contiguous");
        let bytes_through = self.bytes_through_last() + record_bytes(place);
        self.slots.push_back(Slot {
            place,
            term: position.term,
            bytes_through,
        });
    }

    /// Keeps the payload of the entry that was just added.
    pub(crate) fn push_hot(&mut self, payload: Bytes) {
        self.hot_bytes += payload.len();
        self.hot.push_back(payload);
    }

    /// Drops payloads until they fit, but none of an entry that only memory has.
    pub(crate) fn evict(&mut self, bytes_max: usize, written: Lsn) {
        while self.hot_bytes > bytes_max {
            let oldest = self.slots.len() - self.hot.len();
            if self
                .slots
                .get(oldest)
                .is_none_or(|slot| slot.place.lsn >= written)
            {
                return;
            }
            self.pop_hot_front();
        }
    }

    pub(crate) fn truncate_suffix(&mut self, from: LogIndex) {
        while self.last().is_some_and(|last| last.index >= from) {
            self.slots.pop_back();
            if let Some(payload) = self.hot.pop_back() {
                self.hot_bytes -= payload.len();
            }
        }
    }

    pub(crate) fn discard_prefix(&mut self, through: LogPosition) {
        let wanted = (through.index.get() + 1).saturating_sub(self.first_index);
        let count = usize::try_from(wanted)
            .unwrap_or(usize::MAX)
            .min(self.slots.len());
        if let Some(last) = self.slots.drain(..count).next_back() {
            self.bytes_before = last.bytes_through;
        }
        self.first_index += long(count);
        while self.hot.len() > self.slots.len() {
            self.pop_hot_front();
        }
        self.purged = Some(through);
    }

    /// The indexes of `range` that are present, cut by the length of their payloads.
    pub(crate) fn select(
        &self,
        range: Range<LogIndex>,
        bytes_max: usize,
    ) -> impl Iterator<Item = LogIndex> {
        let mut bytes = 0_usize;
        let indexes = (range.start.get()..range.end.get()).map(LogIndex::new);
        indexes.enumerate().map_while(move |(count, index)| {
            let place = self.place(index)?;
            bytes = bytes.saturating_add(payload_bytes(place));
            (count == 0 || bytes <= bytes_max).then_some(index)
        })
    }

    /// The bytes that the entries present take in the write-ahead log.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_through_last() - self.bytes_before
    }

    /// The bytes of the entries in `range`, as far as they are present.
    pub(crate) fn bytes_in(&self, range: Range<LogIndex>) -> u64 {
        let through = |end: LogIndex| {
            let count = end.get().saturating_sub(self.first_index);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            match count.min(self.slots.len()).checked_sub(1) {
                Some(last) => self.slots[last].bytes_through,
                None => self.bytes_before,
            }
        };
        through(range.end).saturating_sub(through(range.start))
    }

    /// The first of the newest entries that take at least `bytes` together; the first present when
    /// all of them take less, none in an empty log.
    pub(crate) fn newest_from(&self, bytes: u64) -> Option<LogIndex> {
        let first = self.first()?.index;
        let limit = self.bytes_through_last().checked_sub(bytes);
        let Some(limit) = limit.filter(|limit| *limit >= self.bytes_before) else {
            return Some(first);
        };
        let older = self
            .slots
            .partition_point(|slot| slot.bytes_through <= limit);
        Some(LogIndex::new(self.first_index + long(older)))
    }

    fn bytes_through_last(&self) -> u64 {
        self.slots
            .back()
            .map_or(self.bytes_before, |last| last.bytes_through)
    }

    /// The state as it is written at the start of a file.
    pub(crate) fn to_head(&self) -> LogHead {
        let head = Head {
            vote: self.vote.clone(),
            committed: self.committed,
            purged: self.purged,
            entries: self.first().zip(self.last()),
        };
        LogHead {
            head,
            first_lsn: self.first_lsn().unwrap_or_default(),
        }
    }

    /// The index after the last entry; of no meaning in an empty log.
    fn end(&self) -> u64 {
        self.first_index + long(self.slots.len())
    }

    fn slot(&self, at: LogIndex) -> Option<&Slot> {
        let distance = at.get().checked_sub(self.first_index)?;
        self.slots.get(usize::try_from(distance).ok()?)
    }

    fn pop_hot_front(&mut self) {
        if let Some(payload) = self.hot.pop_front() {
            self.hot_bytes -= payload.len();
        }
    }
}

/// What the record at `place` takes in the write-ahead log.
fn record_bytes(place: Place) -> u64 {
    long(RECORD_HEADER_BYTES + padded(index(u64::from(place.bytes))))
}

fn payload_bytes(place: Place) -> usize {
    index(u64::from(place.bytes)) - APPEND_PREFIX_BYTES
}
