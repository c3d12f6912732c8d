//! The flush job: what it does next.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kelp_seams::{Clock, Completion, Job, JobHandle, Monotonic, Next, Step};

use super::FlushControl;
use super::install::Install;
use super::run::{FLUSH_MEMTABLES_MAX, Flush};
use crate::catalog::Catalog;
use crate::error::StorageError;
use crate::keyspace::{Keyspace, Keyspaces};
use crate::sequence_number::SequenceNumber;
use crate::wal::Wal;

/// The pause after the first failure. What fails for a moment is over by then.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);

/// The longest pause: a disk that was full is used again within seconds of having space.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);

/// What the job works with.
pub(crate) struct FlushParts {
    pub(crate) keyspaces: Arc<Keyspaces>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Told when there are new tables.
    pub(crate) compaction: JobHandle,
    /// How long something may stay in an active memtable.
    pub(crate) interval: Duration,
    /// The length at which a table is full.
    pub(crate) table_bytes: u64,
}

/// Flushes and installs, and frees memtables.
pub(crate) struct FlushJob {
    parts: FlushParts,
    control: Arc<FlushControl>,
    work: Work,
    /// The pause after the next failure.
    back_off: Duration,
    /// The log has failed: no flush can join any more.
    log_failed: bool,
    /// The keyspace that had its turn last.
    last: String,
    /// By keyspace, when the active memtable with this start must be frozen.
    due: BTreeMap<String, (SequenceNumber, Monotonic)>,
}

enum Work {
    None,
    Flush(Box<Flush>),
    Install(Box<Install>),
    BackOff(Monotonic),
}

impl Job for FlushJob {
    fn step(&mut self) -> Step {
        if self.control.is_closed() {
            return Step::then(Next::Idle);
        }
        let mut completions = Vec::new();
        let mut next = self.advance(&mut completions);
        if self.control.reclaimer().free_one() {
            next = Next::Again;
        }
        completions.extend(self.parts.keyspaces.take_wakes());
        Step { next, completions }
    }
}

impl FlushJob {
    pub(crate) fn new(parts: FlushParts, control: Arc<FlushControl>) -> Self {
        Self {
            parts,
            control,
            work: Work::None,
            back_off: BACK_OFF_MIN,
            log_failed: false,
            last: String::new(),
            due: BTreeMap::new(),
        }
    }

    fn advance(&mut self, completions: &mut Vec<Completion>) -> Next {
        match std::mem::replace(&mut self.work, Work::None) {
            Work::Flush(flush) => self.flush(flush, completions),
            Work::Install(install) => self.install(install, completions),
            Work::BackOff(until) if self.parts.clock.monotonic() < until => {
                if self.begin_install() {
                    return Next::Again;
                }
                self.work = Work::BackOff(until);
                Next::At(until)
            }
            Work::BackOff(_) | Work::None => self.begin(),
        }
    }

    /// Chooses what to do.
    fn begin(&mut self) -> Next {
        if self.begin_install() {
            return Next::Again;
        }
        if self.log_failed {
            return Next::Idle;
        }
        let keyspaces = self.parts.keyspaces.all();
        for keyspace in &keyspaces {
            self.freeze_if_due(keyspace);
        }
        let turn = keyspaces.partition_point(|keyspace| keyspace.name() <= self.last.as_str());
        let (before, after) = keyspaces.split_at(turn);
        for keyspace in after.iter().chain(before) {
            if let Some(flush) = Flush::begin(keyspace, &self.parts, &self.control) {
                keyspace.name().clone_into(&mut self.last);
                self.work = Work::Flush(Box::new(flush));
                return Next::Again;
            }
        }
        let earliest = self.due.values().map(|(_, due)| *due).min();
        earliest.map_or(Next::Idle, Next::At)
    }

    fn begin_install(&mut self) -> bool {
        let Some(request) = self.control.take_install() else {
            return false;
        };
        let install = Install::begin(request, &self.parts, &self.control);
        self.work = Work::Install(Box::new(install));
        true
    }

    /// Freezes the active memtable when somebody asked for it or its time has come, unless there
    /// is enough to flush before it.
    fn freeze_if_due(&mut self, keyspace: &Keyspace) {
        // Taken before the sources are: they hold all that it was asked for.
        let wanted = keyspace.take_flush_wanted();
        let sources = keyspace.sources();
        let active = sources.active();
        if active.is_empty() {
            self.due.remove(keyspace.name());
            return;
        }
        let now = self.parts.clock.monotonic();
        let due = match self.due.get(keyspace.name()) {
            Some((start, due)) if *start == active.start() => *due,
            _ => {
                let due = now + self.parts.interval;
                let entry = (active.start(), due);
                self.due.insert(keyspace.name().to_owned(), entry);
                due
            }
        };
        if !wanted && now < due {
            return;
        }
        if sources.frozen_count() < FLUSH_MEMTABLES_MAX {
            keyspace.freeze_active();
            self.due.remove(keyspace.name());
        } else if wanted {
            keyspace.want_flush();
        }
    }

    fn flush(&mut self, mut flush: Box<Flush>, completions: &mut Vec<Completion>) -> Next {
        if self.control.is_install_waiting(flush.keyspace()) {
            // What it writes is about to be replaced.
            return Next::Again;
        }
        if !flush.is_written() {
            return match flush.write_some() {
                Ok(()) => {
                    self.work = Work::Flush(flush);
                    Next::Again
                }
                Err(error) => self.pause(&error),
            };
        }
        match flush.log().outcome() {
            None => {
                self.work = Work::Flush(flush);
                Next::Idle
            }
            Some(Err(error)) => {
                tracing::error!(%error, "the log failed, nothing is flushed any more");
                self.log_failed = true;
                Next::Again
            }
            Some(Ok(())) => self.commit(*flush, completions),
        }
    }

    fn commit(&mut self, flush: Flush, completions: &mut Vec<Completion>) -> Next {
        let keyspace = flush.keyspace().clone();
        match flush.commit(&self.parts) {
            Ok(Some(bytes)) => {
                tracing::info!(keyspace = keyspace.name(), bytes, "flushed");
                self.control.counters().count_flush(bytes);
                self.back_off = BACK_OFF_MIN;
                self.parts.compaction.notify();
                if let Some(listener) = keyspace.listener() {
                    completions.push(Box::new(move || listener()));
                }
                Next::Again
            }
            Ok(None) => Next::Again,
            Err(error) => self.pause(&error),
        }
    }

    /// Tries again later.
    fn pause(&mut self, error: &StorageError) -> Next {
        let error: &(dyn Error + 'static) = error;
        tracing::warn!(error, pause = ?self.back_off, "a flush failed and is tried again");
        self.control.counters().count_failure();
        let until = self.parts.clock.monotonic() + self.back_off;
        self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
        self.work = Work::BackOff(until);
        Next::At(until)
    }

    fn install(&mut self, install: Box<Install>, completions: &mut Vec<Completion>) -> Next {
        let (request, result) = match install.log().outcome() {
            None => {
                self.work = Work::Install(install);
                return Next::Idle;
            }
            Some(Ok(())) => install.commit(&self.parts),
            Some(Err(error)) => install.refuse(error),
        };
        match &result {
            Ok(()) => {
                tracing::info!("a shipped state is installed");
                self.parts.compaction.notify();
            }
            Err(error) => tracing::error!(%error, "cannot install a shipped state"),
        }
        completions.push(Box::new(move || request.answer(result)));
        Next::Again
    }
}
