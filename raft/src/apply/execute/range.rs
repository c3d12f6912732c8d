//! Commands that change several keys.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::{Bound, RangeBounds};

use bytes::{BufMut, Bytes, BytesMut};
use kelp_storage::{Direction, IndexedBatch, RangeIterator};

use super::Execution;
use crate::model::{
    BatchRef, CommandReply, DELETE_RANGE_BYTES_MAX, DELETE_RANGE_KEYS_MAX, OperationRef,
    ReplyStatus, Revision,
};
use crate::state::{ScanRange, StateError};

/// The keys of a range that exist, in order: those of the view as the batch has changed them.
struct LiveKeys {
    written: Peekable<RangeIterator>,
    /// The keys that the batch touches, and whether they exist by now.
    pending: BTreeMap<Bytes, bool>,
}

impl Execution<'_> {
    /// Executes all parts, whose limits have been checked, under one revision. Answers with the
    /// status of each, or with nothing when all are done.
    pub(super) fn batch(
        &mut self,
        database: u8,
        batch: BatchRef<'_>,
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let mut statuses = BytesMut::with_capacity(batch.count());
        let mut all_done = true;
        for part in batch.parts() {
            let status = match part {
                OperationRef::Put { key, value } => {
                    self.put(database, key, value, revision);
                    ReplyStatus::Ok
                }
                OperationRef::Delete { key } => self.delete(database, key, revision)?.status,
                _ => ReplyStatus::Malformed,
            };
            all_done &= status == ReplyStatus::Ok;
            statuses.put_u8(status.get());
        }
        if all_done {
            statuses.clear();
        }
        Ok(CommandReply {
            value: statuses.freeze(),
            ..CommandReply::done(revision)
        })
    }

    /// Deletes the first keys of a range and answers with how many, and with the key to go on
    /// from, if there is one.
    pub(super) fn delete_range(
        &mut self,
        database: u8,
        count_max: u32,
        (first, end): (&[u8], &[u8]),
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        // Looking at every operation of the batch is work, too.
        if !self.may_work(self.batch.len()) {
            return Ok(CommandReply::of(ReplyStatus::TryAgain));
        }
        let count_max = usize::try_from(count_max).map_or(DELETE_RANGE_KEYS_MAX, |count_max| {
            count_max.min(DELETE_RANGE_KEYS_MAX)
        });
        let range = ScanRange {
            database,
            start: bound(first, Bound::Included),
            end: bound(end, Bound::Excluded),
            reverse: false,
        };
        let bounds = range.into_engine_bounds();
        let mut keys = LiveKeys {
            pending: pending(self.batch, &bounds),
            written: self.view.range(bounds, Direction::Forward).peekable(),
        };
        let (mut count, mut bytes) = (0_u32, 0);
        let mut next = None;
        while let Some(key) = keys.next()? {
            let full = usize::try_from(count).map_or(true, |count| count >= count_max);
            if full || bytes >= DELETE_RANGE_BYTES_MAX || !self.may_work(key.len()) {
                // The answer holds it.
                self.work += key.len();
                next = Some(key);
                break;
            }
            count += 1;
            bytes += key.len();
            self.batch.delete(key);
        }
        self.arena.put_u32(count);
        // Behind the kind and the database stands the user's key.
        self.arena
            .put_slice(next.as_deref().and_then(|key| key.get(2..)).unwrap_or(&[]));
        Ok(CommandReply {
            value: self.cut(),
            ..CommandReply::done(revision)
        })
    }
}

impl LiveKeys {
    fn next(&mut self) -> Result<Option<Bytes>, StateError> {
        loop {
            let written = match self.written.peek() {
                Some(Ok((key, _))) => Some(key.clone()),
                Some(Err(error)) => return Err(error.clone().into()),
                None => None,
            };
            let touched = self.pending.first_key_value().map(|(key, _)| key.clone());
            let key = match (written, touched) {
                (None, None) => return Ok(None),
                (Some(key), None) | (None, Some(key)) => key,
                (Some(written), Some(touched)) => written.min(touched),
            };
            let is_written = self
                .written
                .next_if(|entry| matches!(entry, Ok((written, _)) if *written == key))
                .is_some();
            if self.pending.remove(&key).unwrap_or(is_written) {
                return Ok(Some(key));
            }
        }
    }
}

/// An empty key leaves the range open.
fn bound(key: &[u8], bound: impl FnOnce(Bytes) -> Bound<Bytes>) -> Bound<Bytes> {
    if key.is_empty() {
        Bound::Unbounded
    } else {
        bound(Bytes::copy_from_slice(key))
    }
}

/// The keys between the bounds that the batch touches, and whether they exist by now.
fn pending(batch: &IndexedBatch, bounds: &(Bound<Bytes>, Bound<Bytes>)) -> BTreeMap<Bytes, bool> {
    batch
        .operations()
        .filter(|(key, _)| bounds.contains(*key))
        .map(|(key, value)| (key.clone(), value.is_some()))
        .collect()
}
