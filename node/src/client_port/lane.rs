//! One connection's writes and reads on their way, in the order that its client may rely on.
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
//!
//! The lane knows no protocol: `M` is how a session marks what it waits for, `R` what a read asks.
//! What became of each is told once, through [`Lane::next_told`], and reads that may be served come
//! out of [`Lane::next_ready`].

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use kelp_raft::{ReadError, StateError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::Status;
use slab::Slab;

use super::PortContext;
use super::mailbox::{Letter, Mailbox, ServedRead};
use crate::proposer::outbox::{ConnectionOrder, WriteOutcome};
use crate::proposer::{Ticket, Waiter};

/// Reads of one connection at the disk at once: enough to keep a disk busy, and few enough that
/// their replies, of which the budget hears only when they come, stay a few of the largest values.
const AT_DISK_COUNT_MAX: usize = 8;

/// What became of a write or a read.
pub(crate) enum Told {
    /// The write has this outcome.
    Written(WriteOutcome),
    /// The read has been to the disk.
    Served(Result<ServedRead, StateError>),
    /// It was not executed.
    Refused(LaneRefusal),
}

/// Why something was surely not executed before it left the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneRefusal {
    /// There has been no leader for too long.
    Leaderless,
    /// The node is stopping.
    Stopping,
    /// The deadline of a read has passed.
    LateRead,
    /// The deadline of a write has passed while it waited for an earlier read.
    LateWrite,
    /// The write before the read was not executed.
    RideLost,
}

impl LaneRefusal {
    /// What to tell a client, but for [`Leaderless`](Self::Leaderless), whose text the port knows.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Leaderless => "no leader",
            Self::Stopping => "this node is stopping, try another",
            Self::LateRead => "deadline passed before a quorum confirmed the read; try again",
            Self::LateWrite => {
                "deadline passed while the write waited for an earlier read of its connection; \
                 it was not executed, try again"
            }
            Self::RideLost => "the write before it on this connection was not executed; try again",
        }
    }
}

/// A reply that somebody else finds out. It must be finished, or its request is never answered.
pub(crate) struct Errand {
    token: u32,
    mailbox: Arc<Mailbox>,
}

impl Errand {
    /// Hands the reply over.
    pub(crate) fn finish(self, result: Result<ServedRead, StateError>) {
        let token = self.token;
        self.mailbox.post(Letter::Served { token, result });
    }
}

struct Write<M> {
    mark: M,
    command: Bytes,
    deadline: Monotonic,
}

struct ReadJob<M, R> {
    mark: M,
    read: R,
    deadline: Monotonic,
    /// Its deadline has passed and its client was told so; it only waits for its letter.
    answered: bool,
}

enum Held<M, R> {
    Write(Write<M>),
    Read(ReadJob<M, R>),
}

/// See the module.
pub(crate) struct Lane<M, R> {
    port: Arc<PortContext>,
    mailbox: Arc<Mailbox>,
    order: ConnectionOrder,
    writes: Slab<M>,
    rides: Slab<ReadJob<M, R>>,
    waiting: Vec<ReadJob<M, R>>,
    running: Vec<ReadJob<M, R>>,
    ready: VecDeque<(ReadJob<M, R>, StateView)>,
    /// Reads that are at the disk, or asked of others.
    errands: Slab<M>,
    held: VecDeque<Held<M, R>>,
    told: VecDeque<(M, Told)>,
    letters: Vec<Letter>,
}

impl<M: Copy, R> Lane<M, R> {
    pub(crate) fn new(port: Arc<PortContext>) -> Self {
        Self {
            port,
            mailbox: Arc::default(),
            order: ConnectionOrder::default(),
            writes: Slab::new(),
            rides: Slab::new(),
            waiting: Vec::new(),
            running: Vec::new(),
            ready: VecDeque::new(),
            errands: Slab::new(),
            held: VecDeque::new(),
            told: VecDeque::new(),
            letters: Vec::new(),
        }
    }

    /// Where letters for this connection arrive.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// How many writes and reads have not been told of yet.
    pub(crate) fn in_flight_count(&self) -> usize {
        self.writes.len()
            + self.rides.len()
            + self.waiting.len()
            + self.running.len()
            + self.ready.len()
            + self.errands.len()
            + self.held.len()
            + self.told.len()
    }

    /// True while something may pass its deadline here, or waits for room.
    pub(crate) fn is_timed(&self) -> bool {
        !(self.waiting.is_empty()
            && self.held.is_empty()
            && self.rides.is_empty()
            && self.ready.is_empty())
    }

    /// Takes the command that `encode` appends to the buffer that it is given.
    pub(crate) fn write(
        &mut self,
        mark: M,
        deadline: Monotonic,
        encode: impl FnOnce(&mut BytesMut),
    ) {
        let holds_writes =
            !self.held.is_empty() || !self.waiting.is_empty() || !self.running.is_empty();
        if holds_writes {
            let mut command = BytesMut::new();
            encode(&mut command);
            self.held.push_back(Held::Write(Write {
                mark,
                command: command.freeze(),
                deadline,
            }));
        } else {
            self.submit(mark, deadline, encode);
        }
    }

    pub(crate) fn read(&mut self, mark: M, deadline: Monotonic, read: R) {
        let job = ReadJob {
            mark,
            read,
            deadline,
            answered: false,
        };
        if self.held.is_empty() {
            self.place(job);
        } else {
            self.held.push_back(Held::Read(job));
        }
    }

    /// What became of something; each is told once.
    pub(crate) fn next_told(&mut self) -> Option<(M, Told)> {
        self.told.pop_front()
    }

    /// A read that may be served from this view now.
    pub(crate) fn next_ready(&mut self) -> Option<(M, R, StateView)> {
        if self.errands.len() >= AT_DISK_COUNT_MAX {
            return None;
        }
        let (job, view) = self.ready.pop_front()?;
        Some((job.mark, job.read, view))
    }

    /// Serves a read that needs the disk where blocking harms nobody; the reply is told later.
    pub(crate) fn go_to_disk(
        &mut self,
        mark: M,
        serve: impl FnOnce(&mut BytesMut) -> Result<Status, StateError> + Send + 'static,
    ) {
        let errand = self.errand(mark);
        self.port.executor.run_blocking(Box::new(move || {
            let mut reply = BytesMut::new();
            let result = serve(&mut reply).map(|status| ServedRead { status, reply });
            errand.finish(result);
        }));
    }

    /// Lets somebody else find out what to reply; it is told once the errand is finished.
    pub(crate) fn errand(&mut self, mark: M) -> Errand {
        let token = self.errands.insert(mark);
        Errand {
            token: u32::try_from(token).expect("errands are few"),
            mailbox: Arc::clone(&self.mailbox),
        }
    }

    /// Handles what the proposer, the applier and reads from the disk have left.
    pub(crate) fn take_letters(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.mailbox.take(&mut letters);
        for letter in letters.drain(..) {
            match letter {
                Letter::Written { token, outcome } => {
                    let mark = self.writes.remove(slot(token));
                    self.told.push_back((mark, Told::Written(outcome)));
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
                        self.refuse(job.mark, LaneRefusal::RideLost);
                    }
                }
                Letter::Served { token, result } => {
                    let mark = self.errands.remove(slot(token));
                    self.told.push_back((mark, Told::Served(result)));
                }
            }
        }
        self.letters = letters;
    }

    /// Lets go what was held and need not be any more.
    pub(crate) fn release(&mut self) {
        while self.waiting.is_empty() && self.running.is_empty() {
            match self.held.pop_front() {
                Some(Held::Write(write)) => {
                    self.submit(write.mark, write.deadline, |buffer| {
                        buffer.extend_from_slice(&write.command);
                    });
                }
                Some(Held::Read(job)) => self.place(job),
                None => break,
            }
        }
    }

    /// True when a ReadIndex round should start; [`Lane::begin_round`] takes its readers.
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
        let refusal = match result {
            Ok(view) => {
                let ready = jobs.into_iter().map(|job| (job, view.clone()));
                self.ready.extend(ready);
                return;
            }
            Err(ReadError::Stopped) => LaneRefusal::Stopping,
            Err(_) if self.port.leadership.is_lost() => LaneRefusal::Leaderless,
            Err(_) => {
                let newer = std::mem::replace(&mut self.waiting, jobs);
                self.waiting.extend(newer);
                return;
            }
        };
        for job in jobs {
            self.refuse(job.mark, refusal);
        }
    }

    /// Refuses the reads, and the held writes, whose deadlines have passed.
    pub(crate) fn expire(&mut self, now: Monotonic) {
        let mut late = Vec::new();
        let mut keep = |mark: M, deadline: Monotonic, refusal: LaneRefusal| {
            if deadline <= now {
                late.push((mark, refusal));
            }
            deadline > now
        };
        self.waiting
            .retain(|job| keep(job.mark, job.deadline, LaneRefusal::LateRead));
        self.held.retain(|held| match held {
            Held::Read(job) => keep(job.mark, job.deadline, LaneRefusal::LateRead),
            Held::Write(write) => keep(write.mark, write.deadline, LaneRefusal::LateWrite),
        });
        for (_, job) in self.rides.iter_mut().filter(|(_, job)| !job.answered) {
            job.answered = !keep(job.mark, job.deadline, LaneRefusal::LateRead);
        }
        for (mark, refusal) in late {
            self.refuse(mark, refusal);
        }
    }

    fn submit(&mut self, mark: M, deadline: Monotonic, encode: impl FnOnce(&mut BytesMut)) {
        if self.port.leadership.is_lost() {
            return self.refuse(mark, LaneRefusal::Leaderless);
        }
        let token = self.writes.insert(mark);
        let ticket = self.ticket(token);
        let proposer = &self.port.proposer;
        if let Err(refusal) = proposer.write(&mut self.order, deadline, ticket, encode) {
            self.writes.remove(token);
            let outcome = WriteOutcome::NotExecuted(refusal);
            self.told.push_back((mark, Told::Written(outcome)));
        }
    }

    /// Finds a view for a read: that of its connection's last write, or that of the next round.
    fn place(&mut self, job: ReadJob<M, R>) {
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

    fn refuse(&mut self, mark: M, refusal: LaneRefusal) {
        self.told.push_back((mark, Told::Refused(refusal)));
    }

    fn ticket(&self, token: usize) -> Ticket {
        let token = u32::try_from(token).expect("requests in flight are bounded");
        Ticket {
            waiter: Arc::clone(&self.mailbox) as Arc<dyn Waiter>,
            token,
        }
    }
}

fn slot(token: u32) -> usize {
    usize::try_from(token).expect("a u32 fits into usize on every supported target")
}
