//! A database on a disk in memory, whose jobs run when the test says so, and what it holds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};

use super::super::*;
use crate::log::{Durable, EntryTerm, LogEntry, LogIndex, LogPosition};

pub(crate) struct Stage {
    pub(crate) executor: Arc<SteppedExecutor>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) seams: Seams,
}

impl Stage {
    pub(crate) fn new(vfs: Arc<dyn Vfs>) -> Self {
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

    pub(crate) fn open(&self) -> Result<Database, OpenError> {
        self.open_with(DatabaseOptions::for_tests())
    }

    pub(crate) fn open_with(&self, options: DatabaseOptions) -> Result<Database, OpenError> {
        Database::open(directory(), options, self.seams.clone())
    }

    /// Lets the idle time of the flusher pass.
    pub(crate) fn idle(&self) {
        self.executor.run_until_idle();
        self.clock.advance(Duration::from_millis(20));
        self.executor.run_until_idle();
    }
}

pub(crate) fn directory() -> &'static Path {
    Path::new("/data")
}

pub(crate) fn term(term: u64) -> EntryTerm {
    EntryTerm {
        term,
        leader: term + 100,
    }
}

pub(crate) fn entry(index: u64, payload: impl Into<Bytes>) -> LogEntry {
    LogEntry {
        index: LogIndex::new(index),
        term: term(1),
        payload: payload.into(),
    }
}

pub(crate) fn position(index: u64) -> LogPosition {
    LogPosition {
        index: LogIndex::new(index),
        term: term(1),
    }
}

pub(crate) fn entries(log: &Log) -> Vec<LogEntry> {
    let first = log.first().map_or(LogIndex::new(0), |first| first.index);
    log.read(first..LogIndex::new(u64::MAX), usize::MAX)
        .unwrap()
}

/// A callback that must succeed.
pub(crate) fn must() -> Durable {
    Box::new(|result| result.unwrap())
}

/// Counts how its callbacks ended.
#[derive(Clone, Default)]
pub(crate) struct Outcomes {
    pub(crate) durable: Arc<AtomicUsize>,
    pub(crate) failed: Arc<AtomicUsize>,
}

impl Outcomes {
    pub(crate) fn callback(&self) -> Durable {
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

    pub(crate) fn counts(&self) -> (usize, usize) {
        (
            self.durable.load(Ordering::SeqCst),
            self.failed.load(Ordering::SeqCst),
        )
    }
}

/// All that a log says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) vote: Option<Bytes>,
    pub(crate) committed: Option<LogPosition>,
    pub(crate) purged: Option<LogPosition>,
}

impl Snapshot {
    pub(crate) fn of(log: &Log) -> Self {
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
