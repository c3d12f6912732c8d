//! The leader's end of a write: packs what is queued into one log entry after the other.
//!
//! Every proposal, the leader's own too, comes as a sub-batch. The packer takes all that has queued
//! since its last proposal, with no timer and no fixed size, so entries grow with the load and the
//! entry, not the command, pays for Raft. A few entries are in flight at once. On a node that does
//! not lead, Raft refuses the proposal and the packer passes that on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kelp_raft::{
    EntryBuilder, EntryOutcome, LogIndex, NodeId, ProposeError, Raft, SendPermit, SubBatch,
    SubBatchOutcome,
};
use kelp_storage::Database;
use tokio::sync::{mpsc, oneshot};

use crate::observe::OutboxMetrics;

/// Entries proposed but not yet applied. More does not help: what waits behind them makes the next
/// entry larger, and each entry costs a round of openraft on three nodes.
const ENTRIES_IN_FLIGHT_MAX: usize = 4;

/// How often to look whether the disk has caught up: a few fsyncs.
const ADMISSION_PAUSE: Duration = Duration::from_millis(2);

/// Sub-batches that wait for the packer: the windows of seven nodes, at 1,024 each, and some room.
const QUEUE_SUB_BATCHES_MAX: usize = 8_192;

/// Why a sub-batch got no answer from the state machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandOverError {
    /// This node does not lead; the copy never executes.
    NotLeader {
        /// Who leads, as far as this node knows.
        leader: Option<NodeId>,
    },
    /// No room, or withdrawn while it waited for room; the copy never executes.
    Overloaded,
    /// The copy may still execute.
    Unknown,
    /// The leader cannot read the sub-batch, now or ever: it runs another version.
    Unreadable,
}

/// What became of a sub-batch that was handed over, and in which entry.
pub(crate) type HandOverResult = Result<(SubBatchOutcome, LogIndex), HandOverError>;

struct HandOver {
    sub_batch: SubBatch,
    permit: SendPermit,
    answer: oneshot::Sender<HandOverResult>,
}

/// Handle to the packer task of a node.
#[derive(Clone)]
pub(crate) struct Packer {
    queue: mpsc::Sender<HandOver>,
}

impl Packer {
    /// A handle and the task behind it, which ends when the last handle is dropped.
    pub(crate) fn new(
        raft: Raft,
        database: Database,
        metrics: Arc<OutboxMetrics>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, receiver) = mpsc::channel(QUEUE_SUB_BATCHES_MAX);
        (Self { queue }, run(raft, database, metrics, receiver))
    }

    /// Queues the sub-batch before it returns, so that the order of calls is the order of entries.
    /// It may be withdrawn until it is packed.
    pub(crate) fn hand_over(
        &self,
        sub_batch: SubBatch,
        permit: SendPermit,
    ) -> impl Future<Output = HandOverResult> + Send + 'static {
        let (answer, receiver) = oneshot::channel();
        let queued = self.queue.try_send(HandOver {
            sub_batch,
            permit,
            answer,
        });
        async move {
            match queued {
                Ok(()) => receiver.await.unwrap_or(Err(HandOverError::Unknown)),
                Err(_) => Err(HandOverError::Overloaded),
            }
        }
    }
}

async fn run(
    raft: Raft,
    database: Database,
    metrics: Arc<OutboxMetrics>,
    mut queue: mpsc::Receiver<HandOver>,
) {
    let mut in_flight = FuturesUnordered::new();
    let mut carried = None;
    loop {
        let first = if in_flight.len() >= ENTRIES_IN_FLIGHT_MAX {
            in_flight.next().await;
            continue;
        } else if let Some(carried) = carried.take() {
            carried
        } else {
            tokio::select! {
                Some(()) = in_flight.next() => continue,
                received = queue.recv() => match received {
                    Some(first) => first,
                    None => break,
                },
            }
        };
        // To refuse one sub-batch and take the next would only make gaps: while the disk is behind,
        // the queue fills, then the windows of the nodes, and they refuse at their doors.
        while !database.admission_open() {
            tokio::time::sleep(ADMISSION_PAUSE).await;
        }
        let mut entry = EntryBuilder::new();
        let mut answers = Vec::new();
        let mut command_count = 0;
        let mut next = Some(first);
        while let Some(hand_over) = next {
            if !entry.fits(&hand_over.sub_batch) {
                carried = Some(hand_over);
                break;
            }
            if hand_over.permit.claim() {
                command_count += u64::from(hand_over.sub_batch.command_count);
                entry
                    .push(hand_over.sub_batch)
                    .expect("it was just found to fit");
                answers.push(hand_over.answer);
            } else {
                // Its sender has taken it back and may be gone, too.
                let _ = hand_over.answer.send(Err(HandOverError::Overloaded));
            }
            next = queue.try_recv().ok();
        }
        if answers.is_empty() {
            continue;
        }
        metrics.count_packed(command_count);
        in_flight.push(propose(raft.clone(), entry.finish(raft.now_stamp()), answers).await);
    }
    while in_flight.next().await.is_some() {}
}

/// Proposes at once, in order; the returned future waits for the entry to be applied.
async fn propose(
    raft: Raft,
    entry: Bytes,
    answers: Vec<oneshot::Sender<HandOverResult>>,
) -> impl Future<Output = ()> {
    let proposal = raft.propose(entry).await;
    async move {
        let outcome = match proposal {
            Ok(proposal) => proposal.await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(outcome) => answer_each(outcome, answers),
            Err(error) => {
                let error = hand_over_error(&error);
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }
}

fn answer_each(outcome: EntryOutcome, answers: Vec<oneshot::Sender<HandOverResult>>) {
    let EntryOutcome {
        index, sub_batches, ..
    } = outcome;
    // A receiver that is gone belongs to a link that broke: the sub-batch comes again.
    for (answer, sub_batch) in answers.into_iter().zip(sub_batches) {
        let _ = answer.send(Ok((sub_batch, index)));
    }
}

fn hand_over_error(error: &ProposeError) -> HandOverError {
    match error {
        ProposeError::NotLeader { leader } => HandOverError::NotLeader { leader: *leader },
        ProposeError::Invalid(_) => HandOverError::Unreadable,
        _ => HandOverError::Unknown,
    }
}
