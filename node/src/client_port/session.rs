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
//! A read that rides does not hold later writes back: the proposer cuts the sub-batch behind it.
//! Replies may overtake each other; clients match them by request id.
//!
//! The session knows no socket: the connection feeds it frames, letters and rounds, and sends
//! what stands in `output`.

mod request;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use kelp_raft::{CommandHead, Operation, OperationRef, ReadError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::{Opcode, RequestId, Status};
use slab::Slab;

use super::PortContext;
use super::answer;
use super::mailbox::{Letter, Mailbox};
use super::read::Read;
use crate::proposer::outbox::{ConnectionOrder, WriteOutcome};
use crate::proposer::{Ticket, Waiter};

/// Requests in flight on one connection; far more than keeps two cores busy, and few enough that a
/// connection's bookkeeping stays under a megabyte.
const IN_FLIGHT_COUNT_MAX: usize = 4_096;

/// Bytes of requests in flight on one connection: a few of the largest values.
const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;

/// With this much unsent output the connection produces no more until its client reads.
const OUTPUT_HIGH_WATER: usize = 1 << 20;

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
    pub(super) output: BytesMut,
    order: ConnectionOrder,
    greeted: bool,
    writes: Slab<RequestMark>,
    rides: Slab<ReadJob>,
    waiting: Vec<ReadJob>,
    running: Vec<ReadJob>,
    ready: VecDeque<(ReadJob, StateView)>,
    held: VecDeque<Held>,
    in_flight_bytes: usize,
    letters: Vec<Letter>,
}

impl Session {
    pub(crate) fn new(port: Arc<PortContext>) -> Self {
        Self {
            port,
            mailbox: Arc::new(Mailbox::default()),
            output: BytesMut::new(),
            order: ConnectionOrder::default(),
            greeted: false,
            writes: Slab::new(),
            rides: Slab::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            ready: VecDeque::new(),
            held: VecDeque::new(),
            in_flight_bytes: 0,
            letters: Vec::new(),
        }
    }

    /// True once the client has said hello; until then frames are small.
    pub(crate) fn is_greeted(&self) -> bool {
        self.greeted
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

    /// Bytes that the session holds for requests in flight and unsent output.
    pub(crate) fn held_bytes(&self) -> usize {
        self.in_flight_bytes + self.output.len()
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
                        let text = self.port.view.no_leader_text();
                        self.refuse(job.mark, Status::NoLeader, &text);
                    }
                }
            }
        }
        self.letters = letters;
    }

    /// Moves on whatever can move: serves reads that have a view, releases what was held.
    pub(crate) fn advance(&mut self) {
        while self.output.len() < OUTPUT_HIGH_WATER
            && let Some((job, view)) = self.ready.pop_front()
        {
            self.serve(&job, &view);
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
                let text = self.port.view.no_leader_text();
                for job in jobs {
                    self.refuse(job.mark, Status::NoLeader, &text);
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
        let text = "deadline passed before a quorum confirmed the read; try again";
        let mut late = Vec::new();
        self.waiting.retain(|job| keep(job, now, &mut late));
        self.held.retain(|held| match held {
            Held::Read(job) => keep(job, now, &mut late),
            Held::Write(write) if write.deadline <= now => {
                late.push(write.mark);
                false
            }
            Held::Write(_) => true,
        });
        for (_, job) in &mut self.rides {
            if !job.answered && job.deadline <= now {
                job.answered = true;
                late.push(job.mark);
            }
        }
        for mark in late {
            self.refuse(mark, Status::Unavailable, text);
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
            let text = self.port.view.no_leader_text();
            self.refuse(mark, Status::NoLeader, &text);
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

    fn serve(&mut self, job: &ReadJob, view: &StateView) {
        match job.read.serve(view, job.mark, &mut self.output) {
            Ok(status) => self.finished(job.mark, status),
            Err(error) => {
                tracing::error!(%error, "a read failed in the storage engine");
                self.refuse(
                    job.mark,
                    Status::Unavailable,
                    "this node cannot read its storage; try another node",
                );
            }
        }
    }

    fn tell(&mut self, mark: RequestMark, outcome: &WriteOutcome) {
        let status = answer::write_outcome(&mut self.output, mark, outcome, &self.port);
        self.finished(mark, status);
    }

    fn answer(&mut self, mark: RequestMark, value: &[u8]) {
        answer::value(&mut self.output, mark, value);
        self.finished(mark, Status::Ok);
    }

    fn refuse(&mut self, mark: RequestMark, status: Status, text: &str) {
        answer::refusal(&mut self.output, mark, status, text, &self.port);
        self.finished(mark, status);
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
