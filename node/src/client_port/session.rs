//! One connection's requests of the binary protocol, and their answers.
//!
//! Writes and reads take the connection's [`Lane`], which keeps their order; a read that comes out of
//! it with a view is answered from memory, or goes to the disk where blocking harms nobody. Replies
//! may overtake each other; clients match them by request id.
//!
//! The session knows no socket: the connection feeds it frames, letters and rounds, and sends
//! what stands in its output.

mod request;

use std::error::Error;
use std::sync::Arc;

use kelp_raft::{ReadError, StateError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::{
    Decode, FrameError, FrameFault, FrameLimits, Opcode, RequestId, Status, decode_request,
};

use super::PortContext;
use super::answer;
use super::connection::{Dialogue, Frame};
use super::holdings::Holdings;
use super::lane::{Lane, LaneRefusal, Told};
use super::mailbox::{Mailbox, ServedRead};
use super::output::Output;
use super::patience::FRAME_TIME_MAX;
use super::read::Read;
use super::seats::Seat;
use crate::proposer::outbox::WriteOutcome;

const BROKEN_READ: &str = "this node cannot read its storage; try another node";

/// What identifies a request in its answer and in the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMark {
    pub(crate) id: RequestId,
    pub(crate) opcode: Opcode,
    pub(crate) started: Monotonic,
    pub(crate) bytes: usize,
}

/// See the module.
pub(crate) struct Session {
    port: Arc<PortContext>,
    lane: Lane<RequestMark, Read>,
    holdings: Holdings,
    /// Taken by the hello.
    seat: Option<Seat>,
}

impl Dialogue for Session {
    fn mailbox(&self) -> &Mailbox {
        self.lane.mailbox()
    }

    fn output(&self) -> &Output {
        &self.holdings.output
    }

    fn output_mut(&mut self) -> &mut Output {
        &mut self.holdings.output
    }

    /// Until the client has said hello, frames are small.
    fn is_greeted(&self) -> bool {
        self.seat.is_some()
    }

    fn accepts_input(&self) -> bool {
        self.holdings.accepts_input(self.lane.in_flight_count())
    }

    fn is_idle(&self) -> bool {
        self.lane.in_flight_count() == 0
    }

    fn is_timed(&self) -> bool {
        self.lane.is_timed()
    }

    fn report_held(&mut self, input_bytes: usize) {
        self.holdings.report(input_bytes);
    }

    fn has_room(&self) -> bool {
        self.holdings.has_room()
    }

    fn frame(&mut self, input: &[u8]) -> Frame {
        let limits = if self.is_greeted() {
            FrameLimits::FULL
        } else {
            FrameLimits::BEFORE_HELLO
        };
        match decode_request(input, &limits) {
            Ok(Decode::Frame {
                consumed,
                id,
                opcode,
                request,
            }) => {
                let flow = self.request(id, opcode, consumed, request);
                Frame::Taken {
                    bytes: consumed,
                    flow,
                }
            }
            Ok(Decode::Incomplete { needed }) => Frame::Incomplete { needed },
            Err(error) => {
                tracing::debug!(%error, "client sent a malformed frame");
                self.give_up(&error);
                Frame::Broken
            }
        }
    }

    fn cut_short(&mut self, input: &[u8]) {
        self.give_up(&FrameError::within(input, FrameFault::CutShort));
    }

    fn too_slow(&mut self, input: &[u8]) {
        let fault = FrameFault::Incomplete {
            seconds_max: FRAME_TIME_MAX.as_secs(),
        };
        self.give_up(&FrameError::within(input, fault));
    }

    fn take_letters(&mut self) {
        self.lane.take_letters();
        self.tell_all();
    }

    fn advance(&mut self) {
        while self.holdings.may_serve()
            && let Some((mark, read, view)) = self.lane.next_ready()
        {
            self.serve(mark, read, view);
        }
        self.lane.release();
        self.tell_all();
    }

    fn wants_round(&self) -> bool {
        self.lane.wants_round()
    }

    fn begin_round(&mut self) {
        self.lane.begin_round();
    }

    fn end_round(&mut self, result: Result<StateView, ReadError>) {
        self.lane.end_round(result);
        self.tell_all();
    }

    fn expire(&mut self, now: Monotonic) {
        self.lane.expire(now);
        self.tell_all();
    }
}

impl Session {
    pub(crate) fn new(port: Arc<PortContext>) -> Self {
        Self {
            lane: Lane::new(Arc::clone(&port)),
            holdings: Holdings::new(&port),
            port,
            seat: None,
        }
    }

    /// Sends the one error frame.
    fn give_up(&mut self, error: &FrameError) {
        self.port.metrics.refused(error.status());
        error.encode(&mut self.holdings.output.bytes);
    }

    /// Answers everything of which the lane knows the end.
    fn tell_all(&mut self) {
        while let Some((mark, told)) = self.lane.next_told() {
            match told {
                Told::Written(outcome) => self.tell(mark, &outcome),
                Told::Served(result) => self.served(mark, result),
                Told::Refused(LaneRefusal::Leaderless) => {
                    let hints = self.port.view.hints();
                    self.refuse(mark, Status::NoLeader, &hints.no_leader_text);
                }
                Told::Refused(refusal) => {
                    self.refuse(mark, Status::Unavailable, refusal.text());
                }
            }
        }
    }

    /// Answers from memory, or sends the read to the disk.
    fn serve(&mut self, mark: RequestMark, read: Read, view: StateView) {
        match read.serve_cached(&view, mark, &mut self.holdings.output.bytes) {
            Ok(Some(status)) => self.finished(mark, status),
            Ok(None) => self
                .lane
                .go_to_disk(mark, move |reply| read.serve(&view, mark, reply)),
            Err(error) => self.refuse_broken(mark, &error),
        }
    }

    fn served(&mut self, mark: RequestMark, result: Result<ServedRead, StateError>) {
        match result {
            Ok(ServedRead { status, reply }) => {
                self.holdings.output.append(reply);
                self.finished(mark, status);
            }
            Err(error) => self.refuse_broken(mark, &error),
        }
    }

    fn refuse_broken(&mut self, mark: RequestMark, error: &StateError) {
        let error: &(dyn Error + 'static) = error;
        tracing::error!(error, "a read failed in the storage engine");
        self.refuse(mark, Status::Unavailable, BROKEN_READ);
    }

    fn tell(&mut self, mark: RequestMark, outcome: &WriteOutcome) {
        let out = &mut self.holdings.output.bytes;
        let status = answer::write_outcome(out, mark, outcome, &self.port);
        self.finished(mark, status);
    }

    fn answer(&mut self, mark: RequestMark, value: &[u8]) {
        answer::value(&mut self.holdings.output.bytes, mark, value);
        self.finished(mark, Status::Ok);
    }

    fn refuse(&mut self, mark: RequestMark, status: Status, text: &str) {
        let out = &mut self.holdings.output.bytes;
        answer::refusal(out, mark, status, text, &self.port);
        self.finished(mark, status);
    }

    fn finished(&mut self, mark: RequestMark, status: Status) {
        self.holdings.in_flight_bytes -= mark.bytes;
        let elapsed = self
            .port
            .clock
            .monotonic()
            .saturating_duration_since(mark.started);
        self.port
            .metrics
            .request_finished(mark.opcode, status, elapsed);
    }
}
