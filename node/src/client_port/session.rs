//! One connection's requests, in the order that its client may rely on.
//!
//! Writes of a connection execute in the order of arrival. A read sees every earlier write of its
//! connection and none of its later ones:
//!
//! ```text
//! write -> no read outstanding: to the proposer            otherwise: held
//! read  -> last write unsent: rides on it                  otherwise: next ReadIndex round,
//!                                                          once the earlier writes have outcomes
//! held  -> released in order when no read is outstanding
//! ```
//!
//! A read with a view is answered from memory, or goes to the disk where blocking harms nobody.
//!
//! A read that rides does not hold later writes back: the proposer cuts the sub-batch behind it.
//! Replies may overtake each other; clients match them by request id.
//!
//! The session knows no socket: the connection feeds it frames, letters and rounds, and sends
//! what stands in `output`.

mod request;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use kelp_raft::{CommandHead, Operation, OperationRef, ReadError, StateError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::{Opcode, RequestId, Status};
use slab::Slab;

use super::PortContext;
use super::answer;
use super::budget::Share;
use super::mailbox::{Letter, Mailbox, ServedRead};
use super::output::Output;
use super::read::Read;
use super::seats::Seat;
use crate::proposer::outbox::{ConnectionOrder, WriteOutcome};
use crate::proposer::{Ticket, Waiter};

/// Requests in flight on one connection; far more than keeps two cores busy, and few enough that a
/// connection's bookkeeping stays under a megabyte.
const IN_FLIGHT_COUNT_MAX: usize = 4_096;

/// Bytes of requests in flight on one connection: a few of the largest values.
const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;

/// With this much unsent output the connection produces no more until its client reads.
const OUTPUT_HIGH_WATER: usize = 1 << 20;

/// Reads of one connection at the disk at once: enough to keep a disk busy, and few enough that their
/// replies, of which the budget hears only when they arrive, stay a few of the largest values.
const AT_DISK_COUNT_MAX: usize = 8;

const BROKEN_READ: &str = "this node cannot read its storage; try another node";

const LATE_READ: &str = "deadline passed before a quorum confirmed the read; try again";

const LATE_WRITE: &str = "deadline passed while the write waited for an earlier read of its \
                          connection; it was not executed, try again";

const RIDE_LOST: &str = "the write before it on this connection was not executed; try again";

/// Whether the connection goes on after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Read on.
    Continue,
    /// Send what is in `output`, then close.
    Close,
}

/// What identifies a request in its answer and in the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMark {
    pub(crate) id: RequestId,
    pub(crate) opcode: Opcode,
    pub(crate) started: Monotonic,
    pub(crate) bytes: usize,
}

struct Write {
    mark: RequestMark,
    database: u8,
    operation: Operation,
    deadline: Monotonic,
}

struct ReadJob {
    mark: RequestMark,
    read: Read,
    deadline: Monotonic,
    /// Its deadline has passed and its client was told so; it only waits for its letter.
    answered: bool,
}

enum Held {
    Write(Write),
    Read(ReadJob),
}

/// See the module.
pub(crate) struct Session {
    port: Arc<PortContext>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) output: Output,
    order: ConnectionOrder,
    /// Taken by the hello.
    seat: Option<Seat>,
    share: Share,
    input_bytes: usize,
    writes: Slab<RequestMark>,
    rides: Slab<ReadJob>,
    waiting: Vec<ReadJob>,
    running: Vec<ReadJob>,
    ready: VecDeque<(ReadJob, StateView)>,
    /// Reads that are at the disk.
    at_disk: Slab<RequestMark>,
    held: VecDeque<Held>,
    in_flight_bytes: usize,
    letters: Vec<Letter>,
}

impl Session {
    pub(crate) fn new(port: Arc<PortContext>) -> Self {
        Self {
            share: port.budget.share(),
            port,
            mailbox: Arc::new(Mailbox::default()),
            output: Output::default(),
            order: ConnectionOrder::default(),
            seat: None,
            input_bytes: 0,
            writes: Slab::new(),
            rides: Slab::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            ready: VecDeque::new(),
            at_disk: Slab::new(),
            held: VecDeque::new(),
            in_flight_bytes: 0,
            letters: Vec::new(),
        }
    }

    /// True once the client has said hello; until then frames are small.
    pub(crate) fn is_greeted(&self) -> bool {
        self.seat.is_some()
    }

    /// False while the connection has enough to do and its client must wait.
    pub(crate) fn accepts_input(&self) -> bool {
        self.in_flight_count() < IN_FLIGHT_COUNT_MAX
            && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX
            && self.output.len() < OUTPUT_HIGH_WATER
    }

    /// True when every request has been answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight_count() == 0
    }

    /// True while a request may pass its deadline here, or waits for room.
    pub(crate) fn is_timed(&self) -> bool {
        !(self.waiting.is_empty()
            && self.held.is_empty()
            && self.rides.is_empty()
            && self.ready.is_empty())
    }

    /// Tells the budget what the connection holds, with an input buffer of this size.
    pub(crate) fn report_held(&mut self, input_bytes: usize) {
        self.input_bytes = input_bytes;
        self.share.set(self.held_bytes());
    }

    /// True while the connections of the node together may take more.
    pub(crate) fn has_room(&self) -> bool {
        self.share.has_room(self.held_bytes())
    }

    fn held_bytes(&self) -> usize {
        self.in_flight_bytes + self.output.allocated() + self.input_bytes
    }

    /// A reply may be large. One at a time goes out in any case, so that a connection gets on
    /// although others hold all there is; more only while there is room for them.
    fn may_serve(&self) -> bool {
        self.output.is_empty() || (self.output.len() < OUTPUT_HIGH_WATER && self.has_room())
    }

    /// Handles what the proposer and the applier have left.
    pub(crate) fn take_letters(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.take(&mut letters);
        for letter in letters.drain(..) {
            match letter {
                Letter::Written { token, outcome } => {
                    let mark = self.writes.remove(slot(token));
                    self.tell(mark, &outcome);
                }
                Letter::View { token, view } => {
                    let job = self.rides.remove(slot(token));
                    if !job.answered {
                        self.ready.push_back((job, view));
                    }
                }
                Letter::RideLost { token } => {
                    // A round to the quorum could show it writes that came after it.
                    let job = self.rides.remove(slot(token));
                    if !job.answered {
                        self.refuse(job.mark, Status::Unavailable, RIDE_LOST);
                    }
                }
                Letter::Served { token, result } => {
                    let mark = self.at_disk.remove(slot(token));
                    self.served(mark, result);
                }
            }
        }
        self.letters = letters;
    }

    /// Moves on whatever can move: serves reads that have a view, releases what was held.
    pub(crate) fn advance(&mut self) {
        while self.may_serve()
            && self.at_disk.len() < AT_DISK_COUNT_MAX
            && let Some((job, view)) = self.ready.pop_front()
        {
            self.serve(job, view);
        }
        while self.waiting.is_empty() && self.running.is_empty() {
            match self.held.pop_front() {
                Some(Held::Write(write)) => {
                    self.submit(
                        write.mark,
                        write.database,
                        write.operation.borrow(),
                        write.deadline,
                    );
                }
                Some(Held::Read(job)) => self.place(job),
                None => break,
            }
        }
    }

    /// True when a ReadIndex round should start; [`Session::begin_round`] takes its readers.
    pub(crate) fn wants_round(&self) -> bool {
        self.running.is_empty() && !self.waiting.is_empty() && self.writes.is_empty()
    }

    /// The waiting reads share the round that starts now.
    pub(crate) fn begin_round(&mut self) {
        debug_assert!(self.running.is_empty(), "one round at a time");
        std::mem::swap(&mut self.waiting, &mut self.running);
    }

    /// Takes the result of the round; after a failure its readers wait for another.
    pub(crate) fn end_round(&mut self, result: Result<StateView, ReadError>) {
        let jobs = std::mem::take(&mut self.running);
        match result {
            Ok(view) => self
                .ready
                .extend(jobs.into_iter().map(|job| (job, view.clone()))),
            Err(ReadError::Stopped) => {
                for job in jobs {
                    self.refuse(
                        job.mark,
                        Status::Unavailable,
                        "this node is stopping, try another",
                    );
                }
            }
            Err(_) if self.port.leadership.is_lost() => {
                for job in jobs {
                    self.refuse_leaderless(job.mark);
                }
            }
            Err(_) => {
                let newer = std::mem::replace(&mut self.waiting, jobs);
                self.waiting.extend(newer);
            }
        }
    }

    /// Refuses the reads, and the held writes, whose deadlines have passed.
    pub(crate) fn expire(&mut self, now: Monotonic) {
        let mut late_reads = Vec::new();
        let mut late_writes = Vec::new();
        self.waiting.retain(|job| keep(job, now, &mut late_reads));
        self.held.retain(|held| match held {
            Held::Read(job) => keep(job, now, &mut late_reads),
            Held::Write(write) if write.deadline <= now => {
                late_writes.push(write.mark);
                false
            }
            Held::Write(_) => true,
        });
        for (_, job) in &mut self.rides {
            if !job.answered && job.deadline <= now {
                job.answered = true;
                late_reads.push(job.mark);
            }
        }
        for mark in late_reads {
            self.refuse(mark, Status::Unavailable, LATE_READ);
        }
        for mark in late_writes {
            self.refuse(mark, Status::Unavailable, LATE_WRITE);
        }
    }

    fn holds_writes(&self) -> bool {
        !self.held.is_empty() || !self.waiting.is_empty() || !self.running.is_empty()
    }

    fn submit(
        &mut self,
        mark: RequestMark,
        database: u8,
        operation: OperationRef<'_>,
        deadline: Monotonic,
    ) {
        if self.port.leadership.is_lost() {
            self.refuse_leaderless(mark);
            return;
        }
        let token = self.writes.insert(mark);
        let ticket = self.ticket(token);
        let head = CommandHead::new(operation.opcode(), database);
        let written = self
            .port
            .proposer
            .write(&mut self.order, deadline, ticket, |buffer| {
                head.encode_into(operation.body_bytes(), buffer);
                operation.encode_body_into(buffer);
            });
        if let Err(refusal) = written {
            self.writes.remove(token);
            let outcome = WriteOutcome::NotExecuted(refusal);
            self.tell(mark, &outcome);
        }
    }

    /// Finds a view for a read: that of its connection's last write, or that of the next round.
    fn place(&mut self, job: ReadJob) {
        if !self.waiting.is_empty() {
            self.waiting.push(job);
            return;
        }
        let token = self.rides.insert(job);
        let ticket = self.ticket(token);
        if !self.port.proposer.ride(&mut self.order, ticket) {
            let job = self.rides.remove(token);
            self.waiting.push(job);
        }
    }

    /// Answers from memory, or sends the read to the disk.
    fn serve(&mut self, job: ReadJob, view: StateView) {
        let ReadJob { mark, read, .. } = job;
        match read.serve_cached(&view, mark, &mut self.output.bytes) {
            Ok(Some(status)) => self.finished(mark, status),
            Ok(None) => self.go_to_disk(mark, read, view),
            Err(error) => self.refuse_broken(mark, &error),
        }
    }

    fn go_to_disk(&mut self, mark: RequestMark, read: Read, view: StateView) {
        let token = self.at_disk.insert(mark);
        let token = u32::try_from(token).expect("reads at the disk are few");
        let mailbox = Arc::clone(&self.mailbox);
        self.port.executor.run_blocking(Box::new(move || {
            let mut reply = BytesMut::new();
            let result = read
                .serve(&view, mark, &mut reply)
                .map(|status| ServedRead { status, reply });
            mailbox.post(Letter::Served { token, result });
        }));
    }

    fn served(&mut self, mark: RequestMark, result: Result<ServedRead, StateError>) {
        match result {
            Ok(ServedRead { status, reply }) => {
                self.output.append(reply);
                self.finished(mark, status);
            }
            Err(error) => self.refuse_broken(mark, &error),
        }
    }

    fn refuse_broken(&mut self, mark: RequestMark, error: &StateError) {
        tracing::error!(%error, "a read failed in the storage engine");
        self.refuse(mark, Status::Unavailable, BROKEN_READ);
    }

    fn tell(&mut self, mark: RequestMark, outcome: &WriteOutcome) {
        let status = answer::write_outcome(&mut self.output.bytes, mark, outcome, &self.port);
        self.finished(mark, status);
    }

    fn answer(&mut self, mark: RequestMark, value: &[u8]) {
        answer::value(&mut self.output.bytes, mark, value);
        self.finished(mark, Status::Ok);
    }

    fn refuse(&mut self, mark: RequestMark, status: Status, text: &str) {
        answer::refusal(&mut self.output.bytes, mark, status, text, &self.port);
        self.finished(mark, status);
    }

    fn refuse_leaderless(&mut self, mark: RequestMark) {
        let hints = self.port.view.hints();
        self.refuse(mark, Status::NoLeader, &hints.no_leader_text);
    }

    fn finished(&mut self, mark: RequestMark, status: Status) {
        self.in_flight_bytes -= mark.bytes;
        let elapsed = self
            .port
            .clock
            .monotonic()
            .saturating_duration_since(mark.started);
        self.port
            .metrics
            .request_finished(mark.opcode, status, elapsed);
    }

    fn ticket(&self, token: usize) -> Ticket {
        let token = u32::try_from(token).expect("requests in flight are bounded");
        Ticket {
            waiter: Arc::clone(&self.mailbox) as Arc<dyn Waiter>,
            token,
        }
    }

    fn in_flight_count(&self) -> usize {
        self.writes.len()
            + self.rides.len()
            + self.waiting.len()
            + self.running.len()
            + self.ready.len()
            + self.at_disk.len()
            + self.held.len()
    }
}

/// Keeps what is in time; notes the others.
fn keep(job: &ReadJob, now: Monotonic, late: &mut Vec<RequestMark>) -> bool {
    if job.deadline <= now {
        late.push(job.mark);
    }
    job.deadline > now
}

fn slot(token: u32) -> usize {
    usize::try_from(token).expect("a u32 fits into usize on every supported target")
}
