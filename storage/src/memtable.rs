//! Sorted in-memory writes: every version of every key since the memtable was created.
//!
//! A memtable only grows: an overwrite or a delete is one more version under a higher sequence
//! number, and a reader picks the newest version at or below its own number. It is one lock-free
//! skip list, written by one thread at a time and read by any number, which never wait. Versions
//! are inserted first and published afterwards, all of a batch at once, by [`Memtable::publish`];
//! who reads only published numbers never sees part of a batch.
//!
//! Every insert has a new sequence number, so no entry is ever replaced or removed, and the list's
//! epoch guard never has anything to free. It is pinned only because the list asks for it.

mod cursor;
mod key;
mod reclaimer;
#[cfg(test)]
mod tests;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use crossbeam_skiplist::base::{Entry, SkipList};

use crate::batch::{Change, Operation, WriteBatch};
use crate::internal_key::{Kind, Trailer};
use crate::sequence_number::SequenceNumber;

pub(crate) use cursor::{MemtableCursor, Stop};
use key::{MemKey, Probe};
pub(crate) use reclaimer::Reclaimer;

type List = SkipList<MemKey, Bytes>;

/// What one entry takes beside the bytes of its key and value: list node (mean height 2), allocator
/// rounding and the handles of both. Measured, see the memtable page of the benchmarks.
const ENTRY_OVERHEAD_BYTES: usize = 160;

/// A batch of more operations than this is inserted in key order, so that neighbours find their
/// path in the cache.
const UNSORTED_OPERATIONS_MAX: usize = 8;

/// An append-only ordered map of (user key, sequence number) to a change.
///
/// Invariants:
/// - (user key, sequence number) is unique.
/// - `published` never goes back, and everything above `start` up to it is in the list.
pub(crate) struct Memtable {
    list: List,
    start: SequenceNumber,
    published: AtomicU64,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    reclaimer: Arc<Reclaimer>,
}

impl Memtable {
    /// An empty memtable for the writes after `start`, whose memory `reclaimer` frees.
    pub(crate) fn new(start: SequenceNumber, reclaimer: Arc<Reclaimer>) -> Self {
        Self {
            list: empty_list(),
            start,
            published: AtomicU64::new(start.get()),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            reclaimer,
        }
    }

    /// What `batch` would add to [`bytes`](Self::bytes).
    pub(crate) fn bytes_of(batch: &WriteBatch) -> usize {
        batch.bytes() + batch.len() * ENTRY_OVERHEAD_BYTES
    }

    /// The last number before its first write.
    pub(crate) fn start(&self) -> SequenceNumber {
        self.start
    }

    /// Whether nothing was written to it.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// The newest number whose write, and every write before it, readers may see.
    pub(crate) fn published(&self) -> SequenceNumber {
        SequenceNumber::new(self.published.load(Ordering::Acquire))
    }

    /// Makes everything up to `last` visible. The caller is the only writer and has inserted it
    /// all.
    pub(crate) fn publish(&self, last: SequenceNumber) {
        let before = self.published.swap(last.get(), Ordering::AcqRel);
        assert!(
            before <= last.get(),
            "published went back from {before} to {last}"
        );
    }

    /// Inserts `operations`, unpublished; the `k`th gets `first` + `k`. The caller is the only
    /// writer.
    pub(crate) fn insert(&self, first: SequenceNumber, operations: Vec<Operation>) {
        let mut bytes = 0;
        let entries = operations.len();
        let mut numbered: Vec<(SequenceNumber, Operation)> = (first.get()..)
            .map(SequenceNumber::new)
            .zip(operations)
            .collect();
        if numbered.len() > UNSORTED_OPERATIONS_MAX {
            numbered.sort_by(|(_, left), (_, right)| left.key.cmp(&right.key));
        }
        let guard = crossbeam_epoch::pin();
        for (sequence, Operation { key, change }) in numbered {
            let (kind, value) = match change {
                Change::Put(value) => (Kind::Put, value),
                Change::Delete => (Kind::Delete, Bytes::new()),
            };
            bytes += key.len() + value.len() + ENTRY_OVERHEAD_BYTES;
            let key = MemKey::new(key, Trailer::new(sequence, kind));
            self.list.insert(key, value, &guard).release(&guard);
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }

    /// The newest change of `key` at or below `sequence`; none if this memtable holds no such
    /// version.
    pub(crate) fn get(&self, key: &[u8], sequence: SequenceNumber) -> Option<Change> {
        let guard = crossbeam_epoch::pin();
        let probe = Probe::new(key, Trailer::newest_at(sequence));
        let entry = self
            .list
            .lower_bound(Bound::Included(probe.as_dyn()), &guard)?;
        entry.key().has_user_key(key).then(|| change(&entry))
    }

    /// Memory taken by all entries, estimated from the lengths of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The count of versions, tombstones included.
    pub(crate) fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }
}

impl Drop for Memtable {
    fn drop(&mut self) {
        let list = std::mem::replace(&mut self.list, empty_list());
        self.reclaimer.take(list, self.entries());
    }
}

fn empty_list() -> List {
    SkipList::new(crossbeam_epoch::default_collector().clone())
}

/// The change that a list entry stands for.
fn change(entry: &Entry<'_, '_, MemKey, Bytes>) -> Change {
    match entry.key().trailer().kind() {
        Kind::Put => Change::Put(entry.value().clone()),
        Kind::Delete => Change::Delete,
    }
}
