//! The parts of the outbox: the open sub-batch, which collects, and closed ones, which wait for an
//! answer.

use bytes::BytesMut;
use kelp_raft::{SendPermit, SubBatch};
use kelp_seams::Monotonic;

use super::{Refusal, Told, WriteOutcome};

pub(super) struct Pending<W> {
    /// `None` once it has been told that the outcome is unknown.
    pub(super) waiter: Option<W>,
    pub(super) deadline: Monotonic,
    pub(super) command_end: usize,
}

pub(super) struct Batch<W> {
    pub(super) commands: BytesMut,
    pub(super) pending: Vec<Pending<W>>,
    pub(super) command_count: u32,
    pub(super) deadline_first: Option<Monotonic>,
}

pub(super) struct Closed<W> {
    pub(super) sub_batch: SubBatch,
    /// Emptied when the waiters have been told.
    pub(super) pending: Vec<Pending<W>>,
    pub(super) deadline_first: Option<Monotonic>,
    /// Hand-overs of which nobody knows whether they execute.
    pub(super) uncertain: Vec<SendPermit>,
    /// Whether it was ever handed over.
    pub(super) handed_over: bool,
    pub(super) answered: bool,
}

impl<W> Batch<W> {
    pub(super) fn new() -> Self {
        Self {
            commands: BytesMut::new(),
            pending: Vec::new(),
            command_count: 0,
            deadline_first: None,
        }
    }

    /// Adds one command, which `encode` appends, and returns its length.
    pub(super) fn push(
        &mut self,
        waiter: W,
        deadline: Monotonic,
        encode: impl FnOnce(&mut BytesMut),
    ) -> usize {
        let before = self.commands.len();
        encode(&mut self.commands);
        let command_end = self.commands.len();
        self.command_count += 1;
        self.deadline_first = Some(
            self.deadline_first
                .map_or(deadline, |first| first.min(deadline)),
        );
        self.pending.push(Pending {
            waiter: Some(waiter),
            deadline,
            command_end,
        });
        command_end - before
    }

    /// Removes the commands whose deadline has passed and returns how many bytes that freed.
    pub(super) fn remove_expired(&mut self, now: Monotonic, told: &mut Told<W>) -> usize {
        let before = self.commands.len();
        let old = std::mem::take(&mut self.commands);
        let mut start = 0;
        for mut pending in std::mem::take(&mut self.pending) {
            let command = &old[start..pending.command_end];
            start = pending.command_end;
            if pending.deadline <= now {
                self.command_count -= 1;
                let outcome = WriteOutcome::NotExecuted(Refusal::DeadlinePassed);
                told.extend(pending.waiter.map(|waiter| (waiter, outcome)));
            } else {
                self.commands.extend_from_slice(command);
                pending.command_end = self.commands.len();
                self.pending.push(pending);
            }
        }
        self.deadline_first = first_deadline(&self.pending);
        before - self.commands.len()
    }
}

impl<W> Closed<W> {
    /// Tells the waiters whose deadlines have passed that nobody knows their outcome. The commands
    /// stay: what was handed over once is handed over unchanged.
    pub(super) fn tell_expired(&mut self, now: Monotonic, told: &mut Told<W>) {
        for pending in self
            .pending
            .iter_mut()
            .filter(|pending| pending.deadline <= now)
        {
            told.extend(
                pending
                    .waiter
                    .take()
                    .map(|waiter| (waiter, WriteOutcome::Unknown)),
            );
        }
        self.deadline_first = first_deadline(&self.pending);
    }

    /// Removes the commands whose deadlines have passed; nobody was handed them. Returns the bytes
    /// freed.
    pub(super) fn remove_expired(&mut self, now: Monotonic, told: &mut Told<W>) -> usize {
        let mut batch = Batch {
            commands: BytesMut::from(&self.sub_batch.commands[..]),
            pending: std::mem::take(&mut self.pending),
            command_count: self.sub_batch.command_count,
            deadline_first: None,
        };
        let freed = batch.remove_expired(now, told);
        self.sub_batch.commands = batch.commands.freeze();
        self.sub_batch.command_count = batch.command_count;
        self.pending = batch.pending;
        self.deadline_first = batch.deadline_first;
        freed
    }
}

fn first_deadline<W>(pending: &[Pending<W>]) -> Option<Monotonic> {
    pending
        .iter()
        .filter(|pending| pending.waiter.is_some())
        .map(|pending| pending.deadline)
        .min()
}
