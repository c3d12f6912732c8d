//! The job itself: takes work in order, one piece per step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kelp_seams::{Completion, Job, Next, Step};
use kelp_storage::{IndexedBatch, Keyspace, StagedVersion, StorageError};
use openraft::storage::ApplyResponder;
use tokio::sync::watch;

use super::{Chunk, Mailbox, Occasion, Progress, Task, Ticket, Unflushed, Work};
use crate::apply::{AppliedEntry, ApplyError, EntryApplier};
use crate::error::chain;
use crate::model::NodeId;
use crate::observer::{ApplyObserver, OwnSubBatch};
use crate::payload;
use crate::state::{StateError, StateView};
use crate::type_config::{TypeConfig, position_of};

/// Bytes of keys and values after which a batch is written although the chunk goes on: what one
/// entry may write, about, see `ENTRY_WORK_MAX`.
const BATCH_BYTES_MAX: usize = 64 << 20;

pub(super) struct ApplierJob {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) entries: EntryApplier,
    pub(super) keyspace: Keyspace,
    pub(super) node: NodeId,
    pub(super) observer: Arc<dyn ApplyObserver>,
    pub(super) progress: Arc<watch::Sender<Progress>>,
    pub(super) unflushed: Arc<Unflushed>,
    /// Who waits for the installation that runs.
    pub(super) installing: Option<Ticket>,
    pub(super) failed: bool,
}

/// Why nothing is applied any more.
#[derive(Debug, thiserror::Error)]
enum TaskError {
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    State(#[from] StateError),
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
        if let Some(ticket) = self.installing.take() {
            let Some(result) = self.mailbox.lock().installed.take() else {
                self.installing = Some(ticket);
                return Step::then(Next::Idle);
            };
            return Step {
                next: Next::Again,
                completions: vec![self.installed(result, ticket)],
            };
        }
        if !self.failed && self.lacks_room() {
            return Step::then(Next::Idle);
        }
        let (work, more) = {
            let mut inbox = self.mailbox.lock();
            let work = inbox.waiting.pop_front();
            (work, !inbox.waiting.is_empty())
        };
        let Some(Work { task, ticket }) = work else {
            return Step::then(Next::Idle);
        };
        let completion: Completion = match task {
            Task::Apply(chunk, occasion) => match self.apply(chunk, occasion) {
                Ok(done) => self.completion(done, ticket),
                Err(error) => self.fail(error, ticket),
            },
            Task::Install(_) if self.failed => self.fail(TaskError::FailedBefore, ticket),
            Task::Install(staged) => {
                self.install(staged, ticket);
                return Step::then(Next::Again);
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
    /// Whether work has to wait because the engine has no room. It then tells when it has.
    fn lacks_room(&self) -> bool {
        let has_work = !self.mailbox.lock().waiting.is_empty();
        if !has_work || self.keyspace.has_room() {
            return false;
        }
        if !self.mailbox.waits_for_room.swap(true, Ordering::AcqRel) {
            let mailbox = Arc::clone(&self.mailbox);
            self.keyspace.on_room(Box::new(move || {
                mailbox.waits_for_room.store(false, Ordering::Release);
                mailbox.notify();
            }));
        }
        true
    }

    /// Lets the engine replace the state; it tells when that is durable and visible.
    fn install(&mut self, staged: StagedVersion, ticket: Ticket) {
        self.installing = Some(ticket);
        let mailbox = Arc::clone(&self.mailbox);
        let done = move |result| {
            mailbox.lock().installed = Some(result);
            mailbox.notify();
        };
        self.keyspace.install(staged, Box::new(done));
    }

    /// Reads anew what this job knows of the state, which is another one now.
    fn installed(&mut self, result: Result<(), StorageError>, ticket: Ticket) -> Completion {
        let loaded = result
            .map_err(TaskError::from)
            .and_then(|()| Ok(EntryApplier::load(&self.keyspace.view())?));
        match loaded {
            Ok(entries) => self.entries = entries,
            Err(error) => return self.fail(error, ticket),
        }
        self.unflushed.flushed(0);
        let now = progress_of(&self.entries);
        let own_last = self.entries.progress_of(self.node);
        let own_last = own_last.map(|own| (own.boot, own.last));
        let progress = Arc::clone(&self.progress);
        let observer = Arc::clone(&self.observer);
        Box::new(move || {
            progress.send_replace(now);
            if let Some(index) = now.applied {
                observer.installed(index, own_last);
            }
            // openraft's worker is gone only when the replica stops.
            drop(ticket.send(Ok(())));
        })
    }

    /// Nothing is applied any more.
    fn fail(&mut self, error: TaskError, ticket: Ticket) -> Completion {
        self.failed = true;
        tracing::error!(error = %chain(&error), "apply failed");
        Box::new(move || drop(ticket.send(Err(io::Error::other(error)))))
    }

    fn apply(&mut self, chunk: Chunk, occasion: Occasion) -> Result<Vec<Done>, TaskError> {
        if self.failed {
            return Err(TaskError::FailedBefore);
        }
        let mut done = Vec::with_capacity(chunk.len());
        let mut applied_bytes = 0;
        let mut before = self.keyspace.view();
        let mut batch = IndexedBatch::new();
        let mut applied = Vec::new();
        for (entry, responder) in chunk.entries {
            let position = position_of(&entry.log_id);
            let bytes = payload::encode(&entry.payload);
            applied_bytes += bytes.len();
            applied.push((
                self.entries.apply(position, &bytes, &before, &mut batch)?,
                responder,
            ));
            // Commands may write far more than they say, so the bytes of the chunk are no bound.
            if batch.bytes() >= BATCH_BYTES_MAX {
                let (batch, applied) = (std::mem::take(&mut batch), std::mem::take(&mut applied));
                self.write(batch, applied, occasion, &mut done)?;
                before = self.keyspace.view();
            }
        }
        self.write(batch, applied, occasion, &mut done)?;
        if self.unflushed.applied(applied_bytes) {
            self.keyspace.flush();
        }
        Ok(done)
    }

    /// Makes the entries of a batch visible together.
    fn write(
        &self,
        batch: IndexedBatch,
        applied: Vec<(AppliedEntry, Option<ApplyResponder<TypeConfig>>)>,
        occasion: Occasion,
        done: &mut Vec<Done>,
    ) -> Result<(), TaskError> {
        let written = self.keyspace.write(batch.into_batch())?;
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
        Ok(())
    }

    /// What happens once the chunk is visible.
    fn completion(&self, done: Vec<Done>, ticket: Ticket) -> Completion {
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

pub(super) fn progress_of(entries: &EntryApplier) -> Progress {
    let applied = entries.applied().map(|position| position.index);
    Progress {
        applied,
        stamp: entries.clock(),
    }
}
