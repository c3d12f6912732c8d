//! The job that applies committed entries to the state.
//!
//! openraft's state machine worker pushes a [`Chunk`] and awaits its ticket. One step takes one
//! chunk: all of it becomes visible at once, then readers are woken, the observer is told, the
//! proposers get their outcomes and the ticket is handed back, in this order.
//!
//! While the keyspace has no room, work stays in the inbox: the job is idle until the keyspace
//! calls. Flush and compaction, which make the room, never wait for this job.
//!
//! An error ends it for good: the chunk's ticket carries the error to openraft, which stops the
//! replica, and nothing more is applied. What is in memory by then is not used again; a restart
//! rebuilds it from the log.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use kelp_seams::{Completion, Executor, Job, JobHandle, Next, Step};
use kelp_storage::{IndexedBatch, Keyspace, StorageError};
use openraft::storage::ApplyResponder;
use tokio::sync::{oneshot, watch};

use crate::apply::{AppliedEntry, ApplyError, EntryApplier};
use crate::model::{LogIndex, NodeId, StampMillis};
use crate::observer::{ApplyObserver, OwnSubBatch};
use crate::payload;
use crate::state::{StateError, StateView};
use crate::type_config::{LogId, LogPayload, RaftEntry, StoredMembership, TypeConfig, position_of};

/// Entries to apply together, with those who wait for their outcomes.
#[derive(Default)]
pub(crate) struct Chunk {
    entries: Vec<(RaftEntry, Option<ApplyResponder<TypeConfig>>)>,
    bytes: usize,
}

impl Chunk {
    pub(crate) fn push(
        &mut self,
        entry: RaftEntry,
        bytes: usize,
        responder: Option<ApplyResponder<TypeConfig>>,
    ) {
        self.entries.push((entry, responder));
        self.bytes += bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn last(&self) -> Option<LogId> {
        self.entries.last().map(|(entry, _)| entry.log_id)
    }

    /// The last membership in it.
    pub(crate) fn last_membership(&self) -> Option<StoredMembership> {
        self.entries
            .iter()
            .rev()
            .find_map(|(entry, _)| match &entry.payload {
                LogPayload::Membership(membership) => Some(StoredMembership::new(
                    Some(entry.log_id),
                    membership.clone(),
                )),
                _ => None,
            })
    }
}

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

struct Work {
    chunk: Chunk,
    occasion: Occasion,
    ticket: oneshot::Sender<Result<(), io::Error>>,
}

/// What waits for the job.
#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Work>,
    /// The job is gone: nothing would take what is put here.
    closed: bool,
}

/// Hands work to the applier job. Clones refer to the same job.
#[derive(Clone)]
pub(crate) struct Applier {
    inbox: Arc<Mutex<Inbox>>,
    job: JobHandle,
    progress: watch::Receiver<Progress>,
}

impl Applier {
    /// Spawns the job that goes on where the state of `keyspace` ends.
    pub(crate) fn spawn(
        executor: &dyn Executor,
        keyspace: Keyspace,
        node: NodeId,
        observer: Arc<dyn ApplyObserver>,
    ) -> Result<Self, StateError> {
        let entries = EntryApplier::load(&keyspace.view())?;
        let (sender, progress) = watch::channel(progress_of(&entries));
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        let room = Arc::new(RoomWait::default());
        let job = ApplierJob {
            inbox: Arc::clone(&inbox),
            entries,
            keyspace,
            room: Arc::clone(&room),
            node,
            observer,
            progress: Arc::new(sender),
            failed: false,
        };
        let job = executor.spawn("applier", Box::new(job));
        // Nobody can have given it work yet, so it has not waited in vain.
        let _ = room.job.set(job.clone());
        Ok(Self {
            inbox,
            job,
            progress,
        })
    }

    /// Applies `chunk` and returns when it is visible and everybody was told.
    pub(crate) async fn apply(&self, chunk: Chunk, occasion: Occasion) -> Result<(), io::Error> {
        let (ticket, done) = oneshot::channel();
        let work = Work {
            chunk,
            occasion,
            ticket,
        };
        self.submit(work);
        done.await
            .unwrap_or_else(|_| Err(io::Error::other("the applier is stopped")))
    }

    /// Work that comes too late is dropped, and its ticket with it.
    fn submit(&self, work: Work) {
        let mut inbox = lock(&self.inbox);
        if inbox.closed {
            return;
        }
        inbox.waiting.push_back(work);
        drop(inbox);
        self.job.notify();
    }

    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Ends the job; chunks that wait or come later fail.
    pub(crate) fn stop(&self) {
        self.job.stop();
        let waiting = {
            let mut inbox = lock(&self.inbox);
            inbox.closed = true;
            std::mem::take(&mut inbox.waiting)
        };
        drop(waiting);
    }
}

/// The call that the keyspace makes when it has room.
#[derive(Default)]
struct RoomWait {
    waiting: AtomicBool,
    job: OnceLock<JobHandle>,
}

impl RoomWait {
    /// Whether `keyspace` has no room; then the job is notified once it has.
    fn must_wait(self: &Arc<Self>, keyspace: &Keyspace) -> bool {
        if keyspace.has_room() {
            return false;
        }
        if !self.waiting.swap(true, Ordering::AcqRel) {
            let call = Arc::clone(self);
            keyspace.on_room(Box::new(move || {
                call.waiting.store(false, Ordering::Release);
                if let Some(job) = call.job.get() {
                    job.notify();
                }
            }));
        }
        true
    }
}

struct ApplierJob {
    inbox: Arc<Mutex<Inbox>>,
    entries: EntryApplier,
    keyspace: Keyspace,
    room: Arc<RoomWait>,
    node: NodeId,
    observer: Arc<dyn ApplyObserver>,
    progress: Arc<watch::Sender<Progress>>,
    failed: bool,
}

/// Why a chunk was not applied.
#[derive(Debug, thiserror::Error)]
enum ChunkError {
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("an earlier chunk failed")]
    FailedBefore,
}

/// An applied entry with the views that its own sub-batches get.
struct Done {
    applied: AppliedEntry,
    own: Vec<(usize, StateView)>,
    responder: Option<ApplyResponder<TypeConfig>>,
}

impl Job for ApplierJob {
    fn step(&mut self) -> Step {
        let has_work = !lock(&self.inbox).waiting.is_empty();
        if has_work && !self.failed && self.room.must_wait(&self.keyspace) {
            return Step::then(Next::Idle);
        }
        let (work, more) = {
            let mut inbox = lock(&self.inbox);
            let work = inbox.waiting.pop_front();
            (work, !inbox.waiting.is_empty())
        };
        let Some(Work {
            chunk,
            occasion,
            ticket,
        }) = work
        else {
            return Step::then(Next::Idle);
        };
        let completion: Completion = match self.apply(chunk, occasion) {
            Ok(done) => self.completion(done, ticket),
            Err(error) => {
                self.failed = true;
                tracing::error!(error = %chain(&error), "apply failed");
                Box::new(move || drop(ticket.send(Err(io::Error::other(error)))))
            }
        };
        let next = if more { Next::Again } else { Next::Idle };
        Step {
            next,
            completions: vec![completion],
        }
    }
}

impl ApplierJob {
    fn apply(&mut self, chunk: Chunk, occasion: Occasion) -> Result<Vec<Done>, ChunkError> {
        if self.failed {
            return Err(ChunkError::FailedBefore);
        }
        let before = self.keyspace.view();
        let mut batch = IndexedBatch::new();
        let mut applied = Vec::with_capacity(chunk.len());
        for (entry, responder) in chunk.entries {
            let position = position_of(&entry.log_id);
            let bytes = payload::encode(&entry.payload);
            applied.push((
                self.entries.apply(position, &bytes, &before, &mut batch)?,
                responder,
            ));
        }
        let written = self.keyspace.write(batch.into_batch())?;
        let mut done = Vec::with_capacity(applied.len());
        for (applied, responder) in applied {
            let mut own = Vec::new();
            if occasion == Occasion::Running {
                for (position, sub_batch) in applied.sub_batches.iter().enumerate() {
                    if sub_batch.id.node == self.node {
                        let last = u64::try_from(sub_batch.operation_count)
                            .expect("a batch is bounded")
                            - 1;
                        let view = written.view_at(written.first.advanced_by(last));
                        own.push((position, StateView::new(view)));
                    }
                }
            }
            done.push(Done {
                applied,
                own,
                responder,
            });
        }
        Ok(done)
    }

    /// What happens once the chunk is visible.
    fn completion(
        &self,
        done: Vec<Done>,
        ticket: oneshot::Sender<Result<(), io::Error>>,
    ) -> Completion {
        let now = progress_of(&self.entries);
        let progress = Arc::clone(&self.progress);
        let observer = Arc::clone(&self.observer);
        Box::new(move || {
            progress.send_replace(now);
            for Done {
                applied,
                own,
                responder,
            } in done
            {
                tell(&*observer, &applied, own);
                if let Some(responder) = responder {
                    responder.send(applied.outcome);
                }
            }
            // openraft's worker is gone only when the replica stops.
            drop(ticket.send(Ok(())));
        })
    }
}

fn tell(observer: &dyn ApplyObserver, applied: &AppliedEntry, own: Vec<(usize, StateView)>) {
    if own.is_empty() {
        return;
    }
    let own: Vec<OwnSubBatch<'_>> = own
        .into_iter()
        .map(|(position, view)| {
            let id = applied.sub_batches[position].id;
            let outcome = &applied.outcome.sub_batches[position];
            OwnSubBatch {
                boot: id.boot,
                batch: id.batch,
                outcome,
                view,
            }
        })
        .collect();
    observer.applied(applied.outcome.index, &own);
}

fn progress_of(entries: &EntryApplier) -> Progress {
    let applied = entries.applied().map(|position| position.index);
    Progress {
        applied,
        stamp: entries.clock(),
    }
}

/// An error with its sources, for the log.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox
        .lock()
        .expect("nothing panics while it holds this lock")
}

#[cfg(test)]
mod tests;
