//! The job that applies committed entries to the state.
//!
//! openraft's state machine worker pushes a [`Chunk`] and awaits its ticket. One step takes one
//! chunk: all of it becomes visible at once, then readers are woken, the observer is told, the
//! proposers get their outcomes and the ticket is handed back, in this order. While the engine has
//! no room, because it flushes more slowly than is written, chunks wait.
//!
//! A snapshot comes the same way, in order with the entries: the engine puts it in the place of
//! the state, and what the job knows of the state is read anew.
//!
//! An error ends it for good: the chunk's ticket carries the error to openraft, which stops the
//! replica, and nothing more is applied. What is in memory by then is not used again; a restart
//! rebuilds it from the log.

mod chunk;
mod job;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use kelp_seams::{Executor, JobHandle};
use kelp_storage::{Keyspace, StagedVersion, StorageError};
use tokio::sync::{oneshot, watch};

use crate::apply::EntryApplier;
use crate::model::{LogIndex, NodeId, StampMillis};
use crate::observer::ApplyObserver;
use crate::state::StateError;

pub(crate) use chunk::Chunk;
use job::ApplierJob;

/// How far the state is, for those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// The last entry that readers see.
    pub(crate) applied: Option<LogIndex>,
    /// The replicated clock.
    pub(crate) stamp: StampMillis,
}

/// Whether the observer hears of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// New entries.
    Running,
    /// Entries of an earlier run, whose waiters are long gone.
    Recovery,
}

/// Tells that work is done.
type Ticket = oneshot::Sender<Result<(), io::Error>>;

struct Work {
    task: Task,
    ticket: Ticket,
}

enum Task {
    Apply(Chunk, Occasion),
    Install(StagedVersion),
}

/// What waits for the job.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Work>,
    /// The engine's answer to the installation that runs.
    installed: Option<Result<(), StorageError>>,
    /// The job is gone: nothing would take what is put here.
    closed: bool,
}

/// The inbox with the job that it belongs to.
#[derive(Default)]
struct Mailbox {
    inbox: Mutex<Inbox>,
    /// Whether the engine was asked to tell when it has room.
    waits_for_room: AtomicBool,
    job: OnceLock<JobHandle>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox
            .lock()
            .expect("nothing panics while it holds this lock")
    }

    fn notify(&self) {
        if let Some(job) = self.job.get() {
            job.notify();
        }
    }
}

/// Bytes of entries that were applied and not flushed, about.
#[derive(Debug)]
pub(crate) struct Unflushed {
    bytes: AtomicU64,
    bytes_max: u64,
}

impl Unflushed {
    /// Counts up to `bytes_max`, where a flush is due.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Adds what was applied; true when a flush is to be asked for, and then it counts anew.
    fn applied(&self, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let due = before.saturating_add(bytes) >= self.bytes_max;
        if due {
            self.bytes.store(0, Ordering::Relaxed);
        }
        due
    }

    /// Takes note of what a flush left.
    pub(crate) fn flushed(&self, left: u64) {
        self.bytes.store(left, Ordering::Relaxed);
    }
}

/// Hands work to the applier job. Clones refer to the same job.
#[derive(Clone)]
pub(crate) struct Applier {
    mailbox: Arc<Mailbox>,
    progress: watch::Receiver<Progress>,
}

impl Applier {
    /// Spawns the job that goes on where the state of `keyspace` ends.
    pub(crate) fn spawn(
        executor: &dyn Executor,
        keyspace: Keyspace,
        node: NodeId,
        observer: Arc<dyn ApplyObserver>,
        unflushed: Arc<Unflushed>,
    ) -> Result<Self, StateError> {
        let entries = EntryApplier::load(&keyspace.view())?;
        let (sender, progress) = watch::channel(job::progress_of(&entries));
        let mailbox = Arc::new(Mailbox::default());
        let job = ApplierJob {
            mailbox: Arc::clone(&mailbox),
            entries,
            keyspace,
            node,
            observer,
            progress: Arc::new(sender),
            unflushed,
            installing: None,
            failed: false,
        };
        let job = executor.spawn("applier", Box::new(job));
        mailbox.job.get_or_init(|| job);
        Ok(Self { mailbox, progress })
    }

    /// Applies `chunk` and returns when it is visible and everybody was told.
    pub(crate) async fn apply(&self, chunk: Chunk, occasion: Occasion) -> Result<(), io::Error> {
        self.run(Task::Apply(chunk, occasion)).await
    }

    /// Puts the staged state in the place of the state, and returns when that is durable, visible
    /// and everybody was told.
    pub(crate) async fn install(&self, staged: StagedVersion) -> Result<(), io::Error> {
        self.run(Task::Install(staged)).await
    }

    async fn run(&self, task: Task) -> Result<(), io::Error> {
        let (ticket, done) = oneshot::channel();
        self.submit(Work { task, ticket });
        done.await
            .unwrap_or_else(|_| Err(io::Error::other("the applier is stopped")))
    }

    /// Work that comes too late is dropped, and its ticket with it.
    fn submit(&self, work: Work) {
        let mut inbox = self.mailbox.lock();
        if inbox.closed {
            return;
        }
        inbox.waiting.push_back(work);
        drop(inbox);
        self.mailbox.notify();
    }

    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Ends the job; chunks that wait or come later fail.
    pub(crate) fn stop(&self) {
        if let Some(job) = self.mailbox.job.get() {
            job.stop();
        }
        let waiting = {
            let mut inbox = self.mailbox.lock();
            inbox.closed = true;
            std::mem::take(&mut inbox.waiting)
        };
        drop(waiting);
    }
}

#[cfg(test)]
mod tests;
