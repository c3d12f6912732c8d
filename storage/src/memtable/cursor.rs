//! Walks a memtable in either direction and stops once per user key, at its newest version that the
//! view may see.
//!
//! The cursor owns what it needs and holds no place in the list: it copies a run of stops under one
//! guard and searches its way back for the next run, so it survives any number of inserts between
//! two steps. Runs grow from [`RUN_STOPS_MIN`] to [`RUN_STOPS_MAX`], so that a short scan pays for
//! little more than it reads.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_epoch::Guard;
use crossbeam_skiplist::base::Entry;

use super::{Memtable, Probe, change};
use crate::batch::Change;
use crate::internal_key::Trailer;
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;

/// The first run: about one screen of a paged scan, cheaper than the search that leads to it.
const RUN_STOPS_MIN: usize = 8;

/// The longest run: the search is spread over enough stops to vanish, and an abandoned cursor
/// wasted little.
const RUN_STOPS_MAX: usize = 64;

/// Versions of one key that are stepped over one by one before a search leaps over the rest; a
/// search costs about as much as this many steps.
const VERSION_STEPS_MAX: usize = 8;

/// An owned position between two user keys of a memtable.
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    sequence: SequenceNumber,
    direction: Direction,
    /// What the list still has to give; `run` lies outside of it.
    rest: (Bound<Bytes>, Bound<Bytes>),
    run: VecDeque<Stop>,
    run_stops: usize,
    exhausted: bool,
}

/// The version of a user key at which the cursor stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) key: Bytes,
    pub(crate) sequence: SequenceNumber,
    pub(crate) change: Change,
}

impl Stop {
    fn at(entry: &ListEntry<'_, '_>) -> Self {
        Self {
            key: entry.key().to_user_key(),
            sequence: entry.key().trailer().sequence(),
            change: change(entry),
        }
    }
}

type ListEntry<'a, 'g> = Entry<'a, 'g, super::MemKey, Bytes>;

impl MemtableCursor {
    /// Stands before the first stop within `bounds` as seen at `sequence`, in the order of
    /// `direction`.
    pub(crate) fn new(
        memtable: Arc<Memtable>,
        sequence: SequenceNumber,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        direction: Direction,
    ) -> Self {
        Self {
            memtable,
            sequence,
            direction,
            rest: bounds,
            run: VecDeque::new(),
            run_stops: RUN_STOPS_MIN,
            exhausted: false,
        }
    }

    /// The key of the next stop.
    pub(crate) fn peek(&mut self) -> Option<&Bytes> {
        if self.run.is_empty() && !self.exhausted {
            self.refill();
        }
        self.run.front().map(|stop| &stop.key)
    }

    /// Moves over the next stop. Tombstones are stops, as they hide what older sources hold.
    pub(crate) fn next(&mut self) -> Option<Stop> {
        self.peek()?;
        self.run.pop_front()
    }

    fn refill(&mut self) {
        let memtable = Arc::clone(&self.memtable);
        let guard = crossbeam_epoch::pin();
        match self.direction {
            Direction::Forward => self.refill_forward(&memtable, &guard),
            Direction::Reverse => self.refill_reverse(&memtable, &guard),
        }
        self.exhausted = self.run.len() < self.run_stops;
        self.run_stops = (self.run_stops * 2).min(RUN_STOPS_MAX);
        if let Some(stop) = self.run.back() {
            let reached = Bound::Excluded(stop.key.clone());
            match self.direction {
                Direction::Forward => self.rest.0 = reached,
                Direction::Reverse => self.rest.1 = reached,
            }
        }
    }

    fn refill_forward(&mut self, memtable: &Memtable, guard: &Guard) {
        let mut position = match &self.rest.0 {
            Bound::Included(key) => seek_forward(memtable, key, Trailer::BEFORE_ALL, guard),
            Bound::Excluded(key) => seek_forward(memtable, key, Trailer::AFTER_ALL, guard),
            Bound::Unbounded => memtable.list.front(guard),
        };
        while let Some(first) = position {
            let key = first.key().user_key();
            if self.run.len() == self.run_stops || !before_end(key, &self.rest.1) {
                return;
            }
            let Some(candidate) = self.newest_visible(memtable, &first, guard) else {
                return;
            };
            if candidate.key().has_user_key(key) {
                self.run.push_back(Stop::at(&candidate));
                position = next_user_key(memtable, &candidate, guard);
            } else {
                position = Some(candidate);
            }
        }
    }

    /// The first entry from `entry` on that is visible or belongs to another key.
    fn newest_visible<'a: 'g, 'g>(
        &self,
        memtable: &'a Memtable,
        entry: &ListEntry<'a, 'g>,
        guard: &'g Guard,
    ) -> Option<ListEntry<'a, 'g>> {
        let key = entry.key().user_key();
        let mut candidate = entry.clone();
        for _ in 0..VERSION_STEPS_MAX {
            if candidate.key().trailer().sequence() <= self.sequence
                || !candidate.key().has_user_key(key)
            {
                return Some(candidate);
            }
            candidate = candidate.next()?;
        }
        seek_forward(memtable, key, Trailer::newest_at(self.sequence), guard)
    }

    fn refill_reverse(&mut self, memtable: &Memtable, guard: &Guard) {
        let mut position = match &self.rest.1 {
            Bound::Included(key) => seek_reverse(memtable, key, Trailer::AFTER_ALL, guard),
            Bound::Excluded(key) => seek_reverse(memtable, key, Trailer::BEFORE_ALL, guard),
            Bound::Unbounded => memtable.list.back(guard),
        };
        // Each position is the oldest version of its key: the last of the key in the order of the
        // list.
        while let Some(oldest) = position {
            let key = oldest.key().user_key();
            if self.run.len() == self.run_stops || !after_start(key, &self.rest.0) {
                return;
            }
            let before = oldest.prev();
            let single = before
                .as_ref()
                .is_none_or(|entry| !entry.key().has_user_key(key));
            let visible = oldest.key().trailer().sequence() <= self.sequence;
            if visible && single {
                self.run.push_back(Stop::at(&oldest));
            } else if visible {
                let newest = seek_forward(memtable, key, Trailer::newest_at(self.sequence), guard);
                self.run.extend(newest.as_ref().map(Stop::at));
            }
            position = if single {
                before
            } else {
                seek_reverse(memtable, key, Trailer::BEFORE_ALL, guard)
            };
        }
    }
}

/// The first entry of the user key after that of `entry`.
fn next_user_key<'a: 'g, 'g>(
    memtable: &'a Memtable,
    entry: &ListEntry<'a, 'g>,
    guard: &'g Guard,
) -> Option<ListEntry<'a, 'g>> {
    let key = entry.key().user_key();
    let mut candidate = entry.clone();
    for _ in 0..VERSION_STEPS_MAX {
        candidate = candidate.next()?;
        if !candidate.key().has_user_key(key) {
            return Some(candidate);
        }
    }
    seek_forward(memtable, key, Trailer::AFTER_ALL, guard)
}

/// The first entry after (`key`, `trailer`).
fn seek_forward<'a: 'g, 'g>(
    memtable: &'a Memtable,
    key: &[u8],
    trailer: Trailer,
    guard: &'g Guard,
) -> Option<ListEntry<'a, 'g>> {
    memtable
        .list
        .lower_bound(Bound::Included(Probe::new(key, trailer).as_dyn()), guard)
}

/// The last entry before (`key`, `trailer`).
fn seek_reverse<'a: 'g, 'g>(
    memtable: &'a Memtable,
    key: &[u8],
    trailer: Trailer,
    guard: &'g Guard,
) -> Option<ListEntry<'a, 'g>> {
    memtable
        .list
        .upper_bound(Bound::Included(Probe::new(key, trailer).as_dyn()), guard)
}

fn before_end(key: &[u8], end: &Bound<Bytes>) -> bool {
    match end {
        Bound::Included(end) => key <= end.as_ref(),
        Bound::Excluded(end) => key < end.as_ref(),
        Bound::Unbounded => true,
    }
}

fn after_start(key: &[u8], start: &Bound<Bytes>) -> bool {
    match start {
        Bound::Included(start) => key >= start.as_ref(),
        Bound::Excluded(start) => key > start.as_ref(),
        Bound::Unbounded => true,
    }
}
