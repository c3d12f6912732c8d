//! The job: one compaction at a time over all keyspaces, the most urgent first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kelp_seams::{Clock, Job, Monotonic, Next, Step};

use super::pick::{Compaction, Turns, pick};
use super::run::{Failure, Progress, Run};
use super::shape::shape;
use super::{CompactionCounters, CompactionOptions};
use crate::catalog::{Catalog, Committed, KeyspaceId, TableChange};
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::sstable::SstableError;
use crate::table::{Table, TableMeta};
use crate::version::Version;

/// How much input one step merges: some milliseconds of work.
const STEP_BYTES: usize = 1 << 20;

/// How long to wait after the first failure in a row.
const RETRY_MIN: Duration = Duration::from_millis(100);

/// The wait doubles up to this: a full disk is noticed soon enough after it has space again.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// A keyspace as compaction sees it.
pub(crate) trait Subject: Send + Sync {
    /// For the log.
    fn name(&self) -> &str;

    /// Its newest version.
    fn version(&self) -> Arc<Version>;

    /// Makes `version` the newest one; called while no other edit can happen.
    fn publish(&self, version: &Arc<Version>);

    /// Its incarnation `id` has a table that cannot be read, as `error` says.
    fn damaged(&self, id: KeyspaceId, error: StorageError);
}

/// Lists the keyspaces.
type Subjects = Box<dyn Fn() -> Vec<Arc<dyn Subject>> + Send>;

/// Compacts the keyspaces of a database.
///
/// A keyspace whose inputs are corrupt is left alone until it is replaced or the database is opened
/// again: what is good in it stays readable, it takes no writes, and nothing is made of what is bad. Every other
/// failure voids the outputs, and the same is tried again later.
///
/// Invariants: tables are named in the manifest only when they are durable; files that are not
/// are given back.
pub(crate) struct Compactor {
    catalog: Arc<Catalog>,
    subjects: Subjects,
    options: CompactionOptions,
    clock: Arc<dyn Clock>,
    counters: Arc<CompactionCounters>,
    turns: BTreeMap<KeyspaceId, Turns>,
    halted: BTreeSet<KeyspaceId>,
    work: Option<Work>,
    retry: Retry,
}

/// A compaction under way.
struct Work {
    subject: Arc<dyn Subject>,
    id: KeyspaceId,
    compaction: Compaction<Table>,
    run: Run,
}

/// When to try again after failures.
#[derive(Default)]
struct Retry {
    until: Option<Monotonic>,
    delay: Option<Duration>,
}

impl Compactor {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        subjects: Subjects,
        options: CompactionOptions,
        clock: Arc<dyn Clock>,
        counters: Arc<CompactionCounters>,
    ) -> Self {
        Self {
            catalog,
            subjects,
            options,
            clock,
            counters,
            turns: BTreeMap::new(),
            halted: BTreeSet::new(),
            work: None,
            retry: Retry::default(),
        }
    }

    /// Picks the most urgent compaction of all keyspaces and begins with it.
    fn begin(&mut self) -> Next {
        let subjects = (self.subjects)();
        let states: Vec<_> = subjects.iter().map(|subject| subject.version()).collect();
        let ids: BTreeSet<_> = states.iter().map(|version| version.id()).collect();
        self.turns.retain(|id, _| ids.contains(id));
        self.halted.retain(|id| ids.contains(id));
        let debt = states.iter().map(|version| debt(version, &self.options));
        self.counters.set_debt(debt.sum());
        self.counters.set_halted(self.halted.len());
        let active = subjects.iter().zip(&states);
        let active = active.filter(|(_, version)| !self.halted.contains(&version.id()));
        let picked = active.filter_map(|(subject, version)| {
            let none = Turns::default();
            let turns = self.turns.get(&version.id()).unwrap_or(&none);
            let (score, compaction) = pick(&shape(version), &self.options, turns)?;
            Some((score, subject, version, compaction))
        });
        let Some((_, subject, version, compaction)) = picked.max_by_key(|picked| picked.0) else {
            return Next::Idle;
        };
        if compaction.trivial_move {
            let moved = compaction.upper.iter().map(|table| table.meta().clone());
            let moved = moved.collect();
            return self.commit(&**subject, version.id(), &compaction, moved, &[]);
        }
        let table_bytes = self.options.table_bytes;
        match Run::start(&self.catalog, version, &compaction, table_bytes) {
            Ok(run) => {
                self.work = Some(Work {
                    subject: Arc::clone(subject),
                    id: version.id(),
                    compaction,
                    run,
                });
                Next::Again
            }
            Err(failure) => self.fail(&**subject, version.id(), &failure, &[]),
        }
    }

    fn go_on(&mut self, mut work: Work) -> Next {
        match work.run.step(STEP_BYTES) {
            Ok(Progress::More) => {
                self.work = Some(work);
                Next::Again
            }
            Ok(Progress::Done) => {
                let tables = work.run.tables().iter().map(TableMeta::new).collect();
                let numbers = work.run.numbers();
                self.commit(&*work.subject, work.id, &work.compaction, tables, numbers)
            }
            Err(failure) => self.fail(&*work.subject, work.id, &failure, work.run.numbers()),
        }
    }

    /// Has the version with `tables` instead of the inputs published. `files` are those that were
    /// written for it.
    fn commit(
        &mut self,
        subject: &dyn Subject,
        id: KeyspaceId,
        compaction: &Compaction<Table>,
        tables: Vec<TableMeta>,
        files: &[FileNumber],
    ) -> Next {
        let output_level = compaction.output_level;
        let written: u64 = tables.iter().map(|table| table.bytes).sum();
        let (count, moved) = (tables.len(), compaction.trivial_move);
        let removed = compaction.inputs();
        let change = TableChange {
            added: tables
                .into_iter()
                .map(|table| (output_level, table))
                .collect(),
            removed: removed
                .map(|(level, table)| (level, table.meta().number))
                .collect(),
            last_sequence: None,
        };
        let publish = |version: &Arc<Version>| subject.publish(version);
        match self.catalog.commit(id, change, publish) {
            Ok(Committed::Published(_)) => {
                let read = compaction.input_bytes();
                if !moved {
                    self.counters.done(read, written);
                }
                self.turns.entry(id).or_default().done(compaction);
                self.retry = Retry::default();
                tracing::info!(
                    keyspace = subject.name(),
                    from_level = compaction.upper_level,
                    to_level = output_level,
                    inputs = compaction.inputs().count(),
                    outputs = count,
                    read_bytes = read,
                    written_bytes = written,
                    moved,
                    "tables compacted"
                );
                Next::Again
            }
            Ok(Committed::Declined) => {
                self.catalog.discard(files);
                Next::Again
            }
            Err(error) => self.put_off(subject.name(), &error, files),
        }
    }

    fn fail(
        &mut self,
        subject: &dyn Subject,
        id: KeyspaceId,
        failure: &Failure,
        files: &[FileNumber],
    ) -> Next {
        match failure {
            Failure::Input(error @ (SstableError::Corruption(_) | SstableError::Newer { .. })) => {
                self.catalog.discard(files);
                self.halted.insert(id);
                self.counters.failed();
                self.counters.set_halted(self.halted.len());
                let keyspace = subject.name();
                tracing::error!(keyspace, %error, "compaction stopped: an input is corrupt");
                subject.damaged(id, error.clone().into());
                Next::Again
            }
            Failure::Input(error) | Failure::Output(error) => {
                self.put_off(subject.name(), &error.clone().into(), files)
            }
        }
    }

    /// Gives the files back and tries the same again later.
    fn put_off(&mut self, keyspace: &str, error: &StorageError, files: &[FileNumber]) -> Next {
        self.catalog.discard(files);
        self.counters.failed();
        let delay = self.retry.next_delay();
        let until = self.clock.monotonic() + delay;
        self.retry.until = Some(until);
        tracing::warn!(keyspace, %error, ?delay, "compaction failed and is tried again");
        Next::At(until)
    }
}

impl Job for Compactor {
    fn step(&mut self) -> Step {
        let now = self.clock.monotonic();
        if let Some(until) = self.retry.until.filter(|until| now < *until) {
            return Step::then(Next::At(until));
        }
        self.retry.until = None;
        Step::then(match self.work.take() {
            None => self.begin(),
            Some(work) => self.go_on(work),
        })
    }
}

impl Drop for Compactor {
    fn drop(&mut self) {
        if let Some(work) = &self.work {
            self.catalog.discard(work.run.numbers());
        }
    }
}

impl Retry {
    fn next_delay(&mut self) -> Duration {
        let next = self.delay.map_or(RETRY_MIN, |delay| delay * 2);
        let delay = next.min(RETRY_MAX);
        self.delay = Some(delay);
        delay
    }
}

/// The bytes that compaction must still move until `version` is in shape.
fn debt(version: &Version, options: &CompactionOptions) -> u64 {
    shape(version).debt(options)
}
