//! A database on a disk in memory, whose jobs run when the test says so, and what it holds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};

use super::super::*;
use crate::log::{Durable, EntryTerm, LogEntry, LogIndex, LogPosition};

pub(super) struct Stage {
    pub(super) executor: Arc<SteppedExecutor>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) seams: Seams,
}

impl Stage {
    pub(super) fn new(vfs: Arc<dyn Vfs>) -> Self {
        let clock = Arc::new(ManualClock::new());
        let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let seams = Seams {
            vfs,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            rng: Arc::new(SeededRng::new(1)),
            executor: Arc::clone(&executor) as Arc<dyn Executor>,
        };
        Self {
            executor,
            clock,
            seams,
        }
    }

    pub(super) fn open(&self) -> Result<Database, OpenError> {
        Database::open(
            directory(),
            DatabaseOptions::for_tests(),
            self.seams.clone(),
        )
    }

    /// Lets the idle time of the flusher pass.
    pub(super) fn idle(&self) {
        self.executor.run_until_idle();
        self.clock.advance(Duration::from_millis(20));
        self.executor.run_until_idle();
    }
}

pub(super) fn directory() -> &'static Path {
    Path::new("/data")
}

pub(super) fn term(term: u64) -> EntryTerm {
    EntryTerm {
        term,
        leader: term + 100,
    }
}

pub(super) fn entry(index: u64, payload: impl Into<Bytes>) -> LogEntry {
    LogEntry {
        index: LogIndex::new(index),
        term: term(1),
        payload: payload.into(),
    }
}

pub(super) fn position(index: u64) -> LogPosition {
    LogPosition {
        index: LogIndex::new(index),
        term: term(1),
    }
}

pub(super) fn entries(log: &Log) -> Vec<LogEntry> {
    let first = log.first().map_or(LogIndex::new(0), |first| first.index);
    log.read(first..LogIndex::new(u64::MAX), usize::MAX)
        .unwrap()
}

/// A callback that must succeed.
pub(super) fn must() -> Durable {
    Box::new(|result| result.unwrap())
}

/// Counts how its callbacks ended.
#[derive(Clone, Default)]
pub(super) struct Outcomes {
    pub(super) durable: Arc<AtomicUsize>,
    pub(super) failed: Arc<AtomicUsize>,
}

impl Outcomes {
    pub(super) fn callback(&self) -> Durable {
        let own = self.clone();
        Box::new(move |result| {
            let counter = if result.is_ok() {
                &own.durable
            } else {
                &own.failed
            };
            counter.fetch_add(1, Ordering::SeqCst);
        })
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (
            self.durable.load(Ordering::SeqCst),
            self.failed.load(Ordering::SeqCst),
        )
    }
}

/// All that a log says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) entries: Vec<LogEntry>,
    pub(super) vote: Option<Bytes>,
    pub(super) committed: Option<LogPosition>,
    pub(super) purged: Option<LogPosition>,
}

impl Snapshot {
    pub(super) fn of(log: &Log) -> Self {
        let entries = entries(log);
        assert_eq!(log.first(), entries.first().map(LogEntry::position));
        assert_eq!(log.last(), entries.last().map(LogEntry::position));
        for pair in entries.windows(2) {
            assert_eq!(pair[1].index, pair[0].index.next(), "there is no hole");
        }
        Self {
            entries,
            vote: log.vote(),
            committed: log.committed(),
            purged: log.purged(),
        }
    }
}
