//! The receiving end of transfers: at most one for a group, staged beside the state.
//!
//! ```text
//! begin --> Receiving --chunks--> all there --finish--> Finishing --> forgotten
//!              |  same leader and description: goes on       checks, makes durable,
//!              '- newer vote, or another description:        gives it to openraft
//!                 replaced
//! ```
//!
//! Disk work runs on the executor's blocking side, one piece at a time, under an async lock. Every
//! step is a task of its own, so a connection that breaks never leaves one half done. Nothing of a
//! transfer is trusted: the engine checks lengths and hashes against the description, and the
//! records in the files must say what the leader said of them.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kelp_seams::{Clock, Executor, Monotonic, Rng, WorkLost};
use kelp_storage::{Database, Keyspace, Staging};
use openraft::async_runtime::WatchReceiver;
use tokio::sync::{Mutex, watch};
use xxhash_rust::xxh3::xxh3_128;

use super::progress::Progress;
use super::shipping::{REMEMBERED, SnapshotCounters};
use super::{Image, Shipping, Snapshot, described};
use crate::error::chain;
use crate::message::{Meta, SnapshotBegin, SnapshotChunk, SnapshotReply, TransferId};
use crate::model::NodeId;
use crate::state::StateView;
use crate::state_machine::OpenRaft;
use crate::type_config::Vote;

/// How long a finish waits for the end of the work before it says that work goes on. Well below
/// what the sender allows for one message.
const WORKING_AFTER: Duration = Duration::from_secs(1);

/// The shortest pause before a transfer that was silent is looked at again.
const STEP: Duration = Duration::from_secs(1);

/// What the receiver needs from the replica.
pub(crate) struct ReceiverParts {
    pub(crate) raft: OpenRaft,
    pub(crate) database: Database,
    pub(crate) keyspace: Keyspace,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) rng: Arc<dyn Rng>,
    pub(crate) shipping: Arc<Shipping>,
}

/// Takes snapshots from the leader.
pub(crate) struct Receiver {
    parts: ReceiverParts,
    incoming: Mutex<Option<Incoming>>,
}

/// What makes a transfer the one that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    from: NodeId,
    vote: Vote,
    meta: Meta,
    /// Stands for the description, which may be long.
    description: u128,
}

/// The transfer that runs.
struct Incoming {
    id: TransferId,
    identity: Identity,
    progress: Progress,
    stage: Stage,
    heard: Monotonic,
}

enum Stage {
    Receiving(StagedFiles),
    /// The files are complete; the watched value is what became of them.
    Finishing(watch::Receiver<Option<SnapshotReply>>),
}

/// The files, empty once they are complete.
type StagedFiles = Arc<std::sync::Mutex<Option<Staging>>>;

/// What a begin request means for the transfer that runs.
#[derive(Debug, PartialEq, Eq)]
enum Beginning {
    /// A newer leader is known.
    Outvoted(Vote),
    /// Go on where it broke off.
    Resume,
    /// Its files are being installed; nothing may start before that is done.
    Wait,
    /// A new transfer, in place of the one that runs, if any.
    Start,
}

impl Receiver {
    pub(crate) fn new(parts: ReceiverParts) -> Self {
        Self {
            parts,
            incoming: Mutex::default(),
        }
    }

    /// Starts or resumes a transfer.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        from: NodeId,
        begin: SnapshotBegin,
    ) -> SnapshotReply {
        let this = Arc::clone(self);
        whole(async move { this.begin_here(from, begin).await }).await
    }

    /// Takes a piece of a file.
    pub(crate) async fn chunk(
        self: &Arc<Self>,
        from: NodeId,
        chunk: SnapshotChunk,
    ) -> SnapshotReply {
        let this = Arc::clone(self);
        whole(async move { this.chunk_here(from, chunk).await }).await
    }

    /// Installs what was received, or tells how far that is.
    pub(crate) async fn finish(
        self: &Arc<Self>,
        from: NodeId,
        transfer: TransferId,
    ) -> SnapshotReply {
        let this = Arc::clone(self);
        whole(async move { this.finish_here(from, transfer).await }).await
    }

    /// Drops what was received; for a replica that stops.
    pub(crate) async fn stop(&self) {
        let running = self.incoming.lock().await.take();
        if running.is_some() {
            self.remove(running).await;
        }
    }

    async fn begin_here(self: Arc<Self>, from: NodeId, begin: SnapshotBegin) -> SnapshotReply {
        match self.needless(&begin).await {
            Ok(None) => {}
            Ok(Some(vote)) => return SnapshotReply::Vote(vote),
            Err(reason) => return SnapshotReply::Failed(reason),
        }
        let SnapshotBegin {
            vote,
            meta,
            description,
        } = begin;
        let wanted = Identity {
            from,
            vote,
            meta,
            description: xxh3_128(&description),
        };
        let mut incoming = self.incoming.lock().await;
        let beginning = incoming.as_ref().map_or(Beginning::Start, |running| {
            let finishing = matches!(running.stage, Stage::Finishing(_));
            running.identity.beginning(&wanted, finishing)
        });
        match beginning {
            Beginning::Outvoted(vote) => return SnapshotReply::Vote(vote),
            Beginning::Wait => return SnapshotReply::Working,
            Beginning::Resume => {}
            Beginning::Start => {
                let replaced = incoming.take();
                let staged = self.stage(replaced, description).await;
                let staging = match staged {
                    Ok(staging) => staging,
                    Err(reason) => return SnapshotReply::Failed(reason),
                };
                tracing::info!(leader = %from, last = ?wanted.meta.last_log_id, "snapshot begins");
                let lengths = (0..staging.file_count()).map(|file| staging.file_bytes(file));
                *incoming = Some(Incoming {
                    id: TransferId(0),
                    identity: wanted,
                    progress: Progress::new(lengths.collect()),
                    stage: Stage::Receiving(Arc::new(std::sync::Mutex::new(Some(staging)))),
                    heard: self.parts.clock.monotonic(),
                });
                tokio::spawn(forget_silent(Arc::downgrade(&self)));
            }
        }
        let running = incoming.as_mut().expect("it runs or was just started");
        running.id = TransferId(self.parts.rng.next_u64());
        running.identity.vote = vote;
        running.heard = self.parts.clock.monotonic();
        running.place()
    }

    /// The vote to answer when the snapshot brings nothing: it is too old, or what it holds is on
    /// this disk already.
    ///
    /// The sender takes the answer as a sign that it still leads, also for the reads of its
    /// clients, so the core itself is asked: the metrics come after a vote for somebody else.
    async fn needless(&self, begin: &SnapshotBegin) -> Result<Option<Vote>, String> {
        let raft = &self.parts.raft;
        let vote = raft.with_raft_state(|state| *state.vote_ref()).await;
        let vote = vote.map_err(|error| error.to_string())?;
        let is_here = raft.metrics().borrow_watched().snapshot >= begin.meta.last_log_id;
        Ok((is_older(&begin.vote, &vote) || is_here).then_some(vote))
    }

    /// Makes room for the files that `description` tells of, in place of those of `replaced`.
    async fn stage(
        &self,
        replaced: Option<Incoming>,
        description: bytes::Bytes,
    ) -> Result<Staging, String> {
        let database = self.parts.database.clone();
        let keyspace = self.parts.keyspace.clone();
        let work = move || {
            drop(replaced);
            database.stage(&keyspace, &description)
        };
        let staged = kelp_seams::blocking(&*self.parts.executor, work).await;
        staged.map_err(lost)?.map_err(|error| chain(&error))
    }

    async fn chunk_here(self: Arc<Self>, from: NodeId, chunk: SnapshotChunk) -> SnapshotReply {
        let mut incoming = self.incoming.lock().await;
        let Some(running) = find(&mut incoming, from, chunk.transfer) else {
            return SnapshotReply::Unknown;
        };
        running.heard = self.parts.clock.monotonic();
        let Stage::Receiving(files) = &running.stage else {
            return running.place();
        };
        if !running.progress.takes(chunk.at, chunk.bytes.len()) {
            return running.place();
        }
        let (files, count) = (Arc::clone(files), chunk.bytes.len());
        let write = move || {
            let mut files = lock(&files);
            let staging = files
                .as_mut()
                .expect("it is taken when the files are complete");
            let number = usize::try_from(chunk.at.file).unwrap_or(usize::MAX);
            staging.write(number, chunk.at.offset, &chunk.bytes)
        };
        let written = kelp_seams::blocking(&*self.parts.executor, write).await;
        let written = written.map_err(lost);
        if let Err(reason) = written.and_then(|result| result.map_err(|error| chain(&error))) {
            tracing::error!(reason, "a piece of a snapshot was not taken");
            self.remove(incoming.take()).await;
            return SnapshotReply::Failed(reason);
        }
        running.progress.took(count);
        let received = &self.parts.shipping.counters.received_bytes;
        SnapshotCounters::add(received, u64::try_from(count).expect("a chunk is bounded"));
        running.place()
    }

    async fn finish_here(self: Arc<Self>, from: NodeId, transfer: TransferId) -> SnapshotReply {
        let mut outcome = {
            let mut incoming = self.incoming.lock().await;
            let Some(running) = find(&mut incoming, from, transfer) else {
                return SnapshotReply::Unknown;
            };
            running.heard = self.parts.clock.monotonic();
            match &running.stage {
                Stage::Finishing(outcome) => outcome.clone(),
                Stage::Receiving(_) if !running.progress.is_done() => return running.place(),
                Stage::Receiving(files) => {
                    let staging = lock(files).take();
                    let staging = staging.expect("it is taken only here, once");
                    let (sender, outcome) = watch::channel(None);
                    running.stage = Stage::Finishing(outcome.clone());
                    let (vote, meta) = (running.identity.vote, running.identity.meta.clone());
                    let this = Arc::clone(&self);
                    tokio::spawn(async move { this.install(staging, vote, meta, sender).await });
                    outcome
                }
            }
        };
        let settled = outcome.wait_for(Option::is_some);
        match tokio::time::timeout(WORKING_AFTER, settled).await {
            Ok(Ok(reply)) => reply.clone().unwrap_or(SnapshotReply::Unknown),
            Ok(Err(_)) => SnapshotReply::Unknown,
            Err(_) => SnapshotReply::Working,
        }
    }

    /// Checks the files, gives them to openraft and forgets the transfer.
    async fn install(
        &self,
        staging: Staging,
        vote: Vote,
        meta: Meta,
        outcome: watch::Sender<Option<SnapshotReply>>,
    ) {
        let reply = match self.give(staging, vote, meta.clone()).await {
            Ok(answer) => {
                tracing::info!(last = ?meta.last_log_id, vote = ?answer, "snapshot is here");
                SnapshotReply::Vote(answer)
            }
            Err(reason) => {
                tracing::error!(reason, "snapshot is not installed");
                SnapshotReply::Failed(reason)
            }
        };
        *self.incoming.lock().await = None;
        outcome.send_replace(Some(reply));
    }

    async fn give(&self, staging: Staging, vote: Vote, meta: Meta) -> Result<Vote, String> {
        let finish = move || {
            let staged = staging.finish().map_err(|error| chain(&error))?;
            let found = described(&StateView::new(staged.view()));
            Ok::<_, String>((staged, found.map_err(|error| chain(&error))?))
        };
        let finished = kelp_seams::blocking(&*self.parts.executor, finish).await;
        let (staged, found) = finished.map_err(lost)??;
        if found != meta {
            return Err(format!(
                "the files hold {found:?}, the leader said {meta:?}"
            ));
        }
        let snapshot = Snapshot {
            meta,
            snapshot: Image::Staged(staged),
        };
        let answer = self.parts.raft.install_full_snapshot(vote, snapshot).await;
        Ok(answer.map_err(|error| error.to_string())?.vote)
    }

    /// Drops a transfer where its files can be removed.
    async fn remove(&self, transfer: Option<Incoming>) {
        let dropped = kelp_seams::blocking(&*self.parts.executor, move || drop(transfer));
        // When the executor has ended, so has the process.
        let _ = dropped.await;
    }
}

impl Identity {
    /// What a request for `wanted` means while this transfer runs.
    fn beginning(&self, wanted: &Self, finishing: bool) -> Beginning {
        if is_older(&wanted.vote, &self.vote) {
            return Beginning::Outvoted(self.vote);
        }
        let same_leader = wanted.vote == self.vote;
        let same = *self
            == Self {
                vote: self.vote,
                ..wanted.clone()
            };
        match (finishing, same) {
            // What becomes of the installation is an answer to its own vote only.
            (true, true) if same_leader => Beginning::Resume,
            (true, _) => Beginning::Wait,
            (false, true) => Beginning::Resume,
            (false, false) => Beginning::Start,
        }
    }
}

/// Whether `vote` is behind `other`, or cannot be compared with it.
fn is_older(vote: &Vote, other: &Vote) -> bool {
    vote.partial_cmp(other).is_none_or(Ordering::is_lt)
}

impl Incoming {
    fn place(&self) -> SnapshotReply {
        SnapshotReply::Position(self.id, self.progress.at())
    }
}

/// The transfer that runs, if it is the one that `from` calls `transfer`.
fn find(
    incoming: &mut Option<Incoming>,
    from: NodeId,
    transfer: TransferId,
) -> Option<&mut Incoming> {
    incoming
        .as_mut()
        .filter(|running| running.identity.from == from && running.id == transfer)
}

/// Forgets the transfer once nothing has been heard of it for long.
async fn forget_silent(receiver: Weak<Receiver>) {
    let mut wait = REMEMBERED;
    loop {
        tokio::time::sleep(wait).await;
        let Some(receiver) = receiver.upgrade() else {
            return;
        };
        let mut incoming = receiver.incoming.lock().await;
        let Some(running) = incoming.as_ref() else {
            return;
        };
        let now = receiver.parts.clock.monotonic();
        let silent = now.saturating_duration_since(running.heard);
        if silent < REMEMBERED || matches!(running.stage, Stage::Finishing(_)) {
            wait = REMEMBERED.saturating_sub(silent).max(STEP);
            continue;
        }
        tracing::warn!(leader = %running.identity.from, "snapshot broke off and is forgotten");
        receiver.remove(incoming.take()).await;
        return;
    }
}

/// Runs a step to its end, also when nobody waits for it any more.
async fn whole(step: impl Future<Output = SnapshotReply> + Send + 'static) -> SnapshotReply {
    tokio::spawn(step)
        .await
        .unwrap_or_else(|_| SnapshotReply::Failed("the receiver stops".to_owned()))
}

fn lost(error: WorkLost) -> String {
    error.to_string()
}

fn lock(files: &StagedFiles) -> std::sync::MutexGuard<'_, Option<Staging>> {
    files
        .lock()
        .expect("the engine does not panic on what comes from a peer")
}

#[cfg(test)]
mod tests;
