//! This node's writes on their way from the door to their answer: a pure state machine.
//!
//! ```text
//! push -> [open sub-batch] -close-> [closed, unsent] -next_to_send-> [sent] -answered-> gone
//!                                         ^------------ rewind ---------'
//! ```
//!
//! Commands queue in the open sub-batch. A sub-batch gets its number when it is closed and from the
//! moment it is first handed to a leader it is re-sent unchanged until somebody answers for it, so
//! the state machine executes each number once whatever the links and the leaders do
//! (docs/adr/0004). Whoever waits for a command is told its outcome once: with the result, with
//! "surely not executed", or with "unknown" when its deadline passes after the hand-over. A
//! hand-over that still waits on its way out, for a link or for the packer, is withdrawn then, and
//! its commands are surely not executed.
//!
//! Reads may ride on a sub-batch that nobody has been handed yet: they are served from the state
//! right after it, without a round to the quorum.
//!
//! The outbox knows no clock, no link and no task; the sender drives it.

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use kelp_raft::{
    BatchNumber, Boot, CommandReply, LogIndex, NodeId, SendPermit, SubBatch, SubBatchId,
    SubBatchOutcome,
};
use kelp_seams::Monotonic;

use batch::{Batch, Closed};

mod batch;
#[cfg(test)]
mod tests;

/// Bounds of the outbox; the defaults are those of docs/adr/0004.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutboxLimits {
    /// Unanswered sub-batches; the leader keeps results for as many.
    pub(crate) sub_batch_count_max: usize,
    /// Bytes of unanswered commands; beyond it new requests are refused as not executed.
    pub(crate) bytes_max: usize,
    /// An open sub-batch of this size is closed: a larger command goes alone.
    pub(crate) sub_batch_bytes_target: usize,
    /// Commands of one sub-batch, so that a sub-batch always fits into one entry.
    pub(crate) command_count_max: usize,
    /// While this many sub-batches are under way the open one keeps collecting: batches grow with
    /// the load instead of with a timer.
    pub(crate) sent_before_collecting: usize,
    /// Sub-batches under way at once; only cuts between reads and writes make so many.
    pub(crate) sent_count_max: usize,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        Self {
            sub_batch_count_max: 1_024,
            bytes_max: 16 << 20,
            sub_batch_bytes_target: 512 << 10,
            command_count_max: 16_384,
            sent_before_collecting: 3,
            sent_count_max: 64,
        }
    }
}

/// What became of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Executed in the entry at `index`, with this reply.
    Done {
        reply: CommandReply,
        index: LogIndex,
    },
    /// Executed, but the reply is no longer known.
    Executed,
    /// Surely not executed, now or later.
    NotExecuted(Refusal),
    /// Nobody can say: it may execute later or may have executed already.
    Unknown,
}

/// Why a command was surely not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The window of unanswered sub-batches is full.
    Overloaded,
    /// No leader answers.
    NoLeader,
    /// The deadline passed before the command was handed to a leader.
    DeadlinePassed,
}

/// What the outbox remembers for a connection to keep its order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionOrder {
    last_write: Option<BatchNumber>,
    last_ride: Option<BatchNumber>,
    /// The outbox's when the numbers were noted; with another one they mean nothing.
    epoch: u64,
}

impl ConnectionOrder {
    fn catch_up(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Self {
                epoch,
                ..Self::default()
            };
        }
    }
}

/// One hand-over of a sub-batch to a leader.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) sub_batch: SubBatch,
    /// To be claimed before the sub-batch leaves the node or enters the log.
    pub(crate) permit: SendPermit,
    /// Whether it was handed over before.
    pub(crate) is_repeated: bool,
    generation: u64,
}

/// How a hand-over failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptFailure {
    /// This copy surely never executes.
    NotExecuted,
    /// This copy may still execute.
    Unknown,
}

/// Waiters to tell, in order; done outside of the outbox's lock.
pub(crate) type Told<W> = Vec<(W, WriteOutcome)>;

/// Another process uses this node's identity with a newer boot: nothing of ours executes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fenced;

/// Invariants:
/// - `closed` is contiguous in batch numbers and ends at `next_batch - 1`;
/// - `sent <= closed.len()`, and what is behind `sent` waits for a hand-over on the current route;
/// - `bytes` is the sum of the command bytes of `closed` and `open`.
pub(crate) struct Outbox<W, R> {
    node: NodeId,
    boot: Boot,
    limits: OutboxLimits,
    next_batch: u64,
    /// Raised when numbers are taken back, so that no connection relies on them.
    epoch: u64,
    open: Batch<W>,
    closed: VecDeque<Closed<W>>,
    sent: usize,
    generation: u64,
    bytes: usize,
    riders: BTreeMap<u64, Vec<R>>,
}

impl<W, R> Outbox<W, R> {
    /// An outbox of a process that has just raised its boot; its batches count from 1.
    pub(crate) fn new(node: NodeId, boot: Boot, limits: OutboxLimits) -> Self {
        Self {
            node,
            boot,
            limits,
            next_batch: 1,
            epoch: 0,
            open: Batch::new(),
            closed: VecDeque::new(),
            sent: 0,
            generation: 0,
            bytes: 0,
            riders: BTreeMap::new(),
        }
    }

    /// Queues one command that `encode` appends to the buffer that it is given.
    ///
    /// # Errors
    /// The window is full: the waiter comes back and the command is surely not executed.
    pub(crate) fn push(
        &mut self,
        order: &mut ConnectionOrder,
        deadline: Monotonic,
        waiter: W,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Result<(), W> {
        order.catch_up(self.epoch);
        let cut = order
            .last_ride
            .is_some_and(|ride| ride.get() >= self.next_batch);
        if cut || self.open_is_full() {
            self.close_open();
        }
        if self.bytes >= self.limits.bytes_max
            || self.closed.len() >= self.limits.sub_batch_count_max
        {
            return Err(waiter);
        }
        self.bytes += self.open.push(waiter, deadline, encode);
        order.last_write = Some(BatchNumber::new(self.next_batch));
        Ok(())
    }

    /// Lets a read ride on the connection's last write, if that has been handed to nobody yet.
    ///
    /// # Errors
    /// There is no such write; the rider comes back and must ask the quorum.
    pub(crate) fn ride(&mut self, order: &mut ConnectionOrder, rider: R) -> Result<(), R> {
        order.catch_up(self.epoch);
        let Some(batch) = order.last_write.filter(|batch| self.is_unsent(*batch)) else {
            return Err(rider);
        };
        self.riders.entry(batch.get()).or_default().push(rider);
        order.last_ride = Some(batch);
        Ok(())
    }

    /// The next sub-batch to hand to the leader, closing the open one when few are under way.
    pub(crate) fn next_to_send(&mut self) -> Option<Attempt> {
        if self.sent >= self.limits.sent_count_max {
            return None;
        }
        if self.sent == self.closed.len() && self.sent < self.limits.sent_before_collecting {
            self.close_open();
        }
        let closed = self
            .closed
            .iter_mut()
            .skip(self.sent)
            .find(|closed| !closed.answered);
        let Some(closed) = closed else {
            self.sent = self.closed.len();
            return None;
        };
        let permit = SendPermit::default();
        closed.uncertain.push(permit.clone());
        let is_repeated = std::mem::replace(&mut closed.handed_over, true);
        let sub_batch = closed.sub_batch.clone();
        self.sent = self
            .position(sub_batch.id.batch)
            .map_or(self.closed.len(), |at| at + 1);
        Some(Attempt {
            sub_batch,
            permit,
            is_repeated,
            generation: self.generation,
        })
    }

    /// Takes the answer that the state machine gave for one hand-over.
    ///
    /// # Errors
    /// [`Fenced`]: the process must stop.
    pub(crate) fn answered(
        &mut self,
        attempt: &Attempt,
        outcome: SubBatchOutcome,
        index: LogIndex,
    ) -> Result<Told<W>, Fenced> {
        let replies = match outcome {
            SubBatchOutcome::Executed(replies) | SubBatchOutcome::ExecutedEarlier(replies) => {
                Some(replies)
            }
            SubBatchOutcome::ExecutedForgotten => None,
            SubBatchOutcome::Gap { .. } => {
                self.attempt_failed(attempt, AttemptFailure::NotExecuted);
                return Ok(Vec::new());
            }
            SubBatchOutcome::StaleBoot => return Err(Fenced),
        };
        let Some(at) = self.position(attempt.sub_batch.id.batch) else {
            return Ok(Vec::new());
        };
        let Some(closed) = self.closed.get_mut(at) else {
            return Ok(Vec::new());
        };
        closed.answered = true;
        let pending = std::mem::take(&mut closed.pending);
        let mut replies = replies.map(Vec::into_iter);
        let told = pending
            .into_iter()
            .filter_map(|pending| {
                let reply = replies.as_mut().and_then(Iterator::next);
                let outcome = reply.map_or(WriteOutcome::Executed, |reply| WriteOutcome::Done {
                    reply,
                    index,
                });
                pending.waiter.map(|waiter| (waiter, outcome))
            })
            .collect();
        self.drop_answered();
        Ok(told)
    }

    /// Takes note that a hand-over failed; unless a later one is under way, all unanswered
    /// sub-batches are handed over again.
    pub(crate) fn attempt_failed(&mut self, attempt: &Attempt, failure: AttemptFailure) {
        let at = self.position(attempt.sub_batch.id.batch);
        if let Some(closed) = at.and_then(|at| self.closed.get_mut(at))
            && failure == AttemptFailure::NotExecuted
        {
            closed
                .uncertain
                .retain(|permit| !permit.is_same(&attempt.permit));
        }
        if attempt.generation == self.generation {
            self.rewind();
        }
    }

    /// Hands all unanswered sub-batches over again, in order: the route has changed.
    pub(crate) fn rewind(&mut self) {
        self.generation += 1;
        self.sent = 0;
    }

    /// The applier has passed this sub-batch: its riders may read.
    pub(crate) fn applied(&mut self, batch: BatchNumber) -> Vec<R> {
        self.riders.remove(&batch.get()).unwrap_or_default()
    }

    /// The applier has gone past everything up to this sub-batch without seeing it: its riders and
    /// those of the ones before it have no state to read.
    pub(crate) fn skipped(&mut self, last: BatchNumber) -> Vec<R> {
        let later = self.riders.split_off(&last.get().saturating_add(1));
        let skipped = std::mem::replace(&mut self.riders, later);
        skipped.into_values().flatten().collect()
    }

    /// Tells everyone whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Monotonic) -> Told<W> {
        let mut told = Vec::new();
        let late = |first: Option<Monotonic>| first.is_some_and(|first| first <= now);
        let first_late = self
            .closed
            .iter()
            .position(|closed| late(closed.deadline_first));
        if let Some(first_late) = first_late {
            self.withdraw(first_late);
        }
        let unsent_from = self.unsent_from();
        for (at, closed) in self.closed.iter_mut().enumerate() {
            if !late(closed.deadline_first) {
                continue;
            }
            if at < unsent_from {
                closed.tell_expired(now, &mut told);
            } else {
                self.bytes -= closed.remove_expired(now, &mut told);
            }
        }
        if late(self.open.deadline_first) {
            self.bytes -= self.open.remove_expired(now, &mut told);
        }
        told
    }

    /// Refuses all that was surely handed to nobody; what is uncertain keeps waiting. The riders
    /// of refused sub-batches come back and are refused with them.
    pub(crate) fn refuse_unsent(&mut self, refusal: Refusal) -> (Told<W>, Vec<R>) {
        let mut pending = Vec::new();
        self.withdraw(0);
        let unsent_from = self.unsent_from();
        for closed in self.closed.drain(unsent_from..) {
            self.bytes -= closed.sub_batch.commands.len();
            self.next_batch -= 1;
            pending.extend(closed.pending);
        }
        let open = std::mem::replace(&mut self.open, Batch::new());
        self.bytes -= open.commands.len();
        pending.extend(open.pending);
        self.sent = self.sent.min(self.closed.len());
        self.epoch += 1;
        let riders = self
            .riders
            .split_off(&self.next_batch)
            .into_values()
            .flatten()
            .collect();
        let told = pending
            .into_iter()
            .filter_map(|pending| Some((pending.waiter?, WriteOutcome::NotExecuted(refusal))))
            .collect();
        (told, riders)
    }

    /// Sub-batches that were closed and wait for their answer.
    pub(crate) fn unanswered_count(&self) -> usize {
        self.closed.len()
    }

    /// True when no command and no rider waits for anything.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.pending.is_empty() && self.riders.is_empty()
    }

    fn open_is_full(&self) -> bool {
        self.open.commands.len() >= self.limits.sub_batch_bytes_target
            || self.open.pending.len() >= self.limits.command_count_max
    }

    fn close_open(&mut self) {
        // A sub-batch whose commands have all expired still carries its riders through the quorum.
        let wanted = !self.open.pending.is_empty() || self.riders.contains_key(&self.next_batch);
        if !wanted || self.closed.len() >= self.limits.sub_batch_count_max {
            return;
        }
        let open = std::mem::replace(&mut self.open, Batch::new());
        let batch = self.next_batch;
        self.next_batch += 1;
        let floor = self
            .closed
            .front()
            .map_or(BatchNumber::new(batch), |oldest| oldest.sub_batch.id.batch);
        let id = SubBatchId {
            node: self.node,
            boot: self.boot,
            batch: BatchNumber::new(batch),
        };
        self.closed.push_back(Closed {
            sub_batch: SubBatch {
                id,
                floor,
                command_count: open.command_count,
                commands: open.commands.freeze(),
            },
            pending: open.pending,
            deadline_first: open.deadline_first,
            uncertain: Vec::new(),
            handed_over: false,
            answered: false,
        });
    }

    fn position(&self, batch: BatchNumber) -> Option<usize> {
        let first = self.closed.front()?.sub_batch.id.batch.get();
        let at = usize::try_from(batch.get().checked_sub(first)?).ok()?;
        (at < self.closed.len()).then_some(at)
    }

    /// Start of the tail of `closed` of which no copy may exist anywhere.
    fn unsent_from(&self) -> usize {
        let sent = self
            .closed
            .iter()
            .rposition(|closed| closed.answered || !closed.uncertain.is_empty());
        sent.map_or(0, |at| at + 1)
    }

    /// Takes back what was handed over but still waits on its way out, from the end of the queue to
    /// the place `from`. Links keep the order, so nothing that left lies behind what did not.
    fn withdraw(&mut self, from: usize) {
        let mut withdrawn = false;
        for closed in self.closed.iter_mut().skip(from).rev() {
            if closed.answered || !closed.uncertain.iter().all(SendPermit::withdraw) {
                break;
            }
            withdrawn |= !closed.uncertain.is_empty();
            closed.uncertain.clear();
        }
        if withdrawn {
            self.rewind();
        }
    }

    fn is_unsent(&self, batch: BatchNumber) -> bool {
        if batch.get() >= self.next_batch {
            return true;
        }
        self.position(batch)
            .is_some_and(|at| at >= self.unsent_from())
    }

    fn drop_answered(&mut self) {
        while let Some(oldest) = self.closed.pop_front_if(|closed| closed.answered) {
            self.bytes -= oldest.sub_batch.commands.len();
            self.sent = self.sent.saturating_sub(1);
        }
    }
}
