//! One connection's commands, and their replies in the order of the commands.
//!
//! A command is answered at once, or takes the connection's [`Lane`]; its reply waits in its slot
//! for those before it. Two commands keep the ones behind them from being read until they are done:
//! clearing a database, which takes several entries of the log, and a scan whose place another node
//! knows.
//!
//! The session knows no socket: the connection feeds it bytes, letters and rounds, and sends what
//! stands in its output.

mod client;
mod flush;
mod greetings;
mod guard;
mod keys;
mod server;

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use kelp_raft::{ReadError, StateError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::{
    RespArguments, RespEncoder, RespLimits, RespParser, RespStep, RespVersion, Status,
};

use super::RedisContext;
use super::answer::{self, Answer};
use super::commands::{self, COMMANDS, Kind, Spec};
use super::read::{Access, ReadJob, ScanJob};
use super::slots::Slots;
use crate::client_port::connection::{Dialogue, Flow, Frame};
use crate::client_port::holdings::Holdings;
use crate::client_port::lane::{Lane, Told};
use crate::client_port::mailbox::{Mailbox, ServedRead};
use crate::client_port::output::Output;
use crate::client_port::patience::FRAME_TIME_MAX;
use crate::client_port::seats::Seat;
use crate::proposer::outbox::WriteOutcome;

pub(super) use client::Client;
use flush::Flush;
pub(super) use greetings::DATABASE_COUNT;

/// Time for a command: Redis clients name no deadline.
const DEADLINE: Duration = Duration::from_secs(5);

const BROKEN_READ: &str = "ERR this node cannot read its storage; try another node";

/// What is waited for on behalf of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Write(Answer),
    Read,
    /// Another node's answer to where a scan stands.
    Cursor,
    /// A piece of the range that is cleared.
    Flush,
}

/// What identifies a command in its reply and in the metrics.
#[derive(Clone, Copy, Debug)]
struct Mark {
    slot: u64,
    /// The place in the table of commands.
    command: usize,
    version: RespVersion,
    wait: Wait,
    started: Monotonic,
    bytes: usize,
}

/// See the module.
pub(super) struct Session {
    context: Arc<RedisContext>,
    client: Client,
    parser: RespParser,
    version: RespVersion,
    database: u8,
    lane: Lane<Mark, ReadJob>,
    slots: Slots,
    holdings: Holdings,
    flush: Option<Flush>,
    /// A MULTI was refused, and its end has not come.
    in_transaction: bool,
    /// A scan that waits to hear where it stands.
    scan: Option<ScanJob>,
    _seat: Seat,
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

    fn is_greeted(&self) -> bool {
        true
    }

    fn accepts_input(&self) -> bool {
        self.flush.is_none() && self.scan.is_none() && self.holdings.accepts_input(self.slots.len())
    }

    fn is_idle(&self) -> bool {
        self.slots.len() == 0
    }

    fn is_timed(&self) -> bool {
        self.lane.is_timed()
    }

    fn report_held(&mut self, input_bytes: usize) {
        self.holdings.report(input_bytes + self.parser.allocated());
    }

    fn has_room(&self) -> bool {
        self.holdings.has_room()
    }

    fn frame(&mut self, input: &[u8]) -> Frame {
        let fresh = RespParser::new(RespLimits::NODE);
        let mut parser = std::mem::replace(&mut self.parser, fresh);
        let frame = match parser.parse(input) {
            Ok(RespStep::Command {
                consumed,
                arguments,
            }) => {
                let flow = match arguments.get(0) {
                    Some(name) => self.command(name, arguments, consumed),
                    None => Flow::Continue,
                };
                Frame::Taken {
                    bytes: consumed,
                    flow,
                }
            }
            Ok(RespStep::Incomplete { needed }) => Frame::Incomplete { needed },
            Err(error) => {
                tracing::debug!(%error, "redis client sent a malformed command");
                self.last_words(&format!("ERR {error}"));
                Frame::Broken
            }
        };
        self.parser = parser;
        frame
    }

    /// Nobody is left to be told.
    fn cut_short(&mut self, _input: &[u8]) {}

    fn too_slow(&mut self, _input: &[u8]) {
        let seconds = FRAME_TIME_MAX.as_secs();
        self.last_words(&format!(
            "ERR Protocol error: the command was not complete within {seconds} s"
        ));
    }

    fn take_letters(&mut self) {
        self.lane.take_letters();
        self.tell_all();
    }

    fn advance(&mut self) {
        while self.holdings.may_serve()
            && let Some((mark, job, view)) = self.lane.next_ready()
        {
            self.serve(mark, job, view);
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
    pub(super) fn new(context: Arc<RedisContext>, client: Client, seat: Seat) -> Self {
        let port = &context.port;
        Self {
            client,
            parser: RespParser::new(RespLimits::NODE),
            version: RespVersion::default(),
            database: 0,
            lane: Lane::new(Arc::clone(port)),
            slots: Slots::default(),
            holdings: Holdings::new(port),
            flush: None,
            in_transaction: false,
            scan: None,
            _seat: seat,
            context,
        }
    }

    /// Takes one command of so many bytes.
    fn command(&mut self, name: &[u8], arguments: RespArguments<'_>, bytes: usize) -> Flow {
        if guard::is_http(name) {
            return self.leave_browser();
        }
        let found = commands::find(name);
        let mark = Mark {
            slot: self.slots.open(),
            command: found.map_or(COMMANDS.len(), |(place, _)| place),
            version: self.version,
            wait: Wait::Read,
            started: self.context.port.clock.monotonic(),
            bytes,
        };
        self.holdings.in_flight_bytes += bytes;
        if self.refuses_transaction(name, mark) {
            return Flow::Continue;
        }
        let Some((_, spec)) = found else {
            self.error(mark, &unknown_command(name, arguments));
            return Flow::Continue;
        };
        if !spec.takes(arguments.len()) {
            self.error(mark, &wrong_count(spec.name));
            return Flow::Continue;
        }
        if !self.has_room() && spec.keys.first != 0 {
            let text = "TRYAGAIN this node holds too many bytes of requests and replies";
            self.error(mark, text);
            return Flow::Continue;
        }
        self.dispatch(mark, spec, arguments)
    }

    fn dispatch(&mut self, mark: Mark, spec: &Spec, arguments: RespArguments<'_>) -> Flow {
        match spec.kind {
            Kind::Get | Kind::StrLen | Kind::Type | Kind::MGet | Kind::Exists => {
                self.read_keys(mark, spec.kind, arguments);
            }
            Kind::DbSize => self.database_size(mark),
            Kind::Scan => self.scan(mark, arguments),
            Kind::Set => self.set(mark, arguments),
            Kind::SetNx => self.set_if_absent(mark, arguments),
            Kind::MSet => self.set_all(mark, arguments),
            Kind::Del => self.delete(mark, arguments),
            Kind::Append => self.append(mark, arguments),
            Kind::Incr | Kind::Decr | Kind::IncrBy | Kind::DecrBy => {
                self.add(mark, spec.kind, arguments);
            }
            Kind::FlushDb | Kind::FlushAll => self.flush(mark, spec.kind, arguments),
            Kind::Ping => self.ping(mark, arguments),
            Kind::Echo => {
                let text = arguments.get(1).unwrap_or_default();
                self.reply(mark, |encoder| encoder.bulk(text));
            }
            Kind::Hello => self.hello(mark, arguments),
            Kind::Auth => self.auth(mark, arguments),
            Kind::Select => self.select(mark, arguments),
            Kind::Reset => self.reset(mark),
            Kind::Quit => {
                self.reply(mark, |encoder| encoder.simple("OK"));
                return Flow::Close;
            }
            Kind::Client => self.client_command(mark, arguments),
            Kind::Command => self.command_command(mark, arguments),
            Kind::Config => self.config(mark, arguments),
            Kind::Info => self.info(mark, arguments),
        }
        Flow::Continue
    }

    /// Answers everything of which the lane knows the end.
    fn tell_all(&mut self) {
        while let Some((mark, told)) = self.lane.next_told() {
            match (told, mark.wait) {
                (Told::Written(outcome), Wait::Flush) => self.go_on_flushing(mark, &outcome),
                (Told::Written(outcome), Wait::Write(answer)) => {
                    self.written(mark, answer, &outcome);
                }
                (Told::Served(result), Wait::Cursor) => self.go_on_scanning(mark, result),
                (Told::Served(result), _) => self.served(mark, result),
                (Told::Refused(refusal), _) => {
                    self.flush = self.flush.take().filter(|_| mark.wait != Wait::Flush);
                    let text = answer::lane_text(refusal, &self.context.port);
                    self.error(mark, &text);
                }
                (Told::Written(_), Wait::Read | Wait::Cursor) => {
                    unreachable!("a write waits for its outcome")
                }
            }
        }
    }

    fn written(&mut self, mark: Mark, answer: Answer, outcome: &WriteOutcome) {
        let context = Arc::clone(&self.context);
        self.encode(mark, |encoder| {
            answer::write_outcome(encoder, answer, outcome, &context.port)
        });
    }

    /// Answers from memory, or sends the read to the disk.
    fn serve(&mut self, mark: Mark, job: ReadJob, view: StateView) {
        let mut failure = None;
        let output = &mut self.holdings.output;
        let served = self.slots.answer(mark.slot, output, |out| {
            let served = job.serve(&view, Access::Memory, out);
            served.unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
        });
        match (served, failure) {
            (Some(status), _) => self.finished(mark, status == Status::Ok),
            (None, Some(error)) => self.served(mark, Err(error)),
            (None, None) => self.lane.go_to_disk(mark, move |reply| {
                let status = job.serve(&view, Access::Disk, reply)?;
                Ok(status.expect("nothing is out of reach at the disk"))
            }),
        }
    }

    fn served(&mut self, mark: Mark, result: Result<ServedRead, StateError>) {
        match result {
            Ok(ServedRead { status, reply }) => {
                let output = &mut self.holdings.output;
                self.slots.answer_with(mark.slot, output, reply);
                self.finished(mark, status == Status::Ok);
            }
            Err(error) => {
                let error: &(dyn Error + 'static) = &error;
                tracing::error!(error, "a read failed in the storage engine");
                self.error(mark, BROKEN_READ);
            }
        }
    }

    /// Replies with a success.
    fn reply(&mut self, mark: Mark, encode: impl FnOnce(&mut RespEncoder<'_>)) {
        self.encode(mark, |encoder| {
            encode(encoder);
            true
        });
    }

    fn error(&mut self, mark: Mark, text: &str) {
        self.encode(mark, |encoder| {
            encoder.error(text);
            false
        });
    }

    /// Replies with what `encode` appends, and says whether that is a success.
    fn encode(&mut self, mark: Mark, encode: impl FnOnce(&mut RespEncoder<'_>) -> bool) {
        let output = &mut self.holdings.output;
        let good = self.slots.answer(mark.slot, output, |out| {
            Some(encode(&mut RespEncoder::new(out, mark.version)))
        });
        self.finished(mark, good == Some(true));
    }

    /// Says why the connection closes, behind the replies that are due.
    fn last_words(&mut self, text: &str) {
        let slot = self.slots.open();
        let (version, output) = (self.version, &mut self.holdings.output);
        self.slots.answer(slot, output, |out| {
            RespEncoder::new(out, version).error(text);
            Some(())
        });
        self.holdings.waiting_bytes = self.slots.bytes();
        self.context.metrics.failed();
    }

    fn finished(&mut self, mark: Mark, good: bool) {
        self.holdings.in_flight_bytes -= mark.bytes;
        self.holdings.waiting_bytes = self.slots.bytes();
        let now = self.context.port.clock.monotonic();
        let elapsed = now.saturating_duration_since(mark.started);
        self.context.metrics.finished(mark.command, elapsed);
        if !good {
            self.context.metrics.failed();
        }
    }
}

/// Redis' own words for a command that nobody knows, within its own bounds.
fn unknown_command(name: &[u8], arguments: RespArguments<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 128;
    let shown = |bytes: &[u8], most: usize| {
        let bytes = bytes.get(..most).unwrap_or(bytes);
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut list = String::new();
    for argument in arguments.from(1) {
        if list.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let argument = shown(argument, SHOWN_BYTES_MAX - list.len());
        write!(list, "'{argument}' ").expect("a string takes all writes");
    }
    let name = shown(name, SHOWN_BYTES_MAX);
    format!("ERR unknown command '{name}', with args beginning with: {list}")
}

fn wrong_count(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}
