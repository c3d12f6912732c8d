//! The socket side of one client connection: bytes to frames, output to bytes, and the time limits.
//!
//! One task owns the connection. It reads only while the session accepts input, so a client that
//! sends faster than it is served, or does not read its replies, is slowed down and not buffered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use kelp_raft::{Raft, ReadError, StateView};
use kelp_seams::Monotonic;
use kelp_wire::{Decode, FrameError, FrameFault, FrameLimits, Opcode, RequestId, decode_request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::PortContext;
use super::session::{Flow, Session};

/// A frame that has begun must be complete within this time; so must the hello.
const FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// A client that takes no byte of its replies for this long is gone.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);

/// How often the time limits are looked at.
const TICK: Duration = Duration::from_millis(50);

/// A ReadIndex round that takes longer is tried again; it is several elections.
const ROUND_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause after a failed round: an election takes hundreds of milliseconds.
const ROUND_PAUSE: Duration = Duration::from_millis(20);

/// First size of the input buffer, and its least growth. A length in a header alone allocates
/// nothing: the buffer at most doubles with the bytes that have come.
const INPUT_BYTES: usize = 16 << 10;

/// An input buffer that a large frame has blown up over this size is given back.
const INPUT_BYTES_KEPT: usize = 256 << 10;

type Round = BoxFuture<'static, Result<StateView, ReadError>>;

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    ClientClosed,
    Refused,
    TooSlow,
    Drained,
}

enum Event {
    Letters,
    Sent { flush_due: bool },
    Received { bytes: usize },
    RoundEnded(Result<StateView, ReadError>),
    Tick,
    StopAsked,
}

struct Connection {
    port: Arc<PortContext>,
    session: Session,
    input: BytesMut,
    /// Bytes that the frame at the start of `input` needs; 0 when it was not looked at yet.
    needed: usize,
    /// Since when an incomplete frame, or the hello, is awaited.
    incomplete_since: Option<Monotonic>,
    /// Since when the client has not taken the output that waits for it.
    unsent_since: Option<Monotonic>,
    flush_due: bool,
    /// Why the connection closes as soon as its output is sent.
    ending: Option<End>,
    draining: bool,
}

/// Serves one connection until it ends; `stop` asks it to answer what is in flight and close.
pub(super) async fn serve<S>(
    stream: S,
    port: Arc<PortContext>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<End>
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut connection = Connection::new(port);
    let mut share = connection.port.budget.share();
    let mut round: Option<Round> = None;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    connection.draining = *stop.borrow_and_update();
    while connection.end().is_none() {
        if round.is_none() && connection.session.wants_round() {
            connection.session.begin_round();
            round = Some(start_round(&connection.port));
        }
        share.set(connection.held_bytes());
        let (may_read, may_write) = (connection.wants_input(), connection.wants_output());
        let Connection { session, input, .. } = &mut connection;
        let event = tokio::select! {
            () = session.mailbox.arrived() => Event::Letters,
            sent = send(&mut writer, &mut session.output), if may_write => Event::Sent { flush_due: sent? },
            received = receive(&mut reader, input), if may_read => Event::Received { bytes: received? },
            result = poll_round(&mut round), if round.is_some() => Event::RoundEnded(result),
            _ = tick.tick() => Event::Tick,
            Ok(()) = stop.changed() => Event::StopAsked,
        };
        if matches!(event, Event::RoundEnded(_)) {
            round = None;
        }
        connection.handle(event);
    }
    let _ = tokio::time::timeout(FRAME_TIME_MAX, writer.shutdown()).await;
    Ok(connection.end().unwrap_or(End::ClientClosed))
}

impl Connection {
    fn new(port: Arc<PortContext>) -> Self {
        let now = port.clock.monotonic();
        Self {
            session: Session::new(Arc::clone(&port)),
            port,
            input: BytesMut::with_capacity(INPUT_BYTES),
            needed: 0,
            incomplete_since: Some(now),
            unsent_since: None,
            flush_due: false,
            ending: None,
            draining: false,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Letters => self.session.take_letters(),
            Event::Sent { flush_due } => {
                self.flush_due = flush_due;
                self.unsent_since = None;
            }
            Event::Received { bytes: 0 } => self.ending = Some(End::ClientClosed),
            Event::Received { .. } => {}
            Event::RoundEnded(result) => self.session.end_round(result),
            Event::Tick => self.check_times(),
            Event::StopAsked => self.draining = true,
        }
        self.parse();
        self.session.advance();
    }

    /// Hands every complete frame in the input to the session, as long as that accepts more.
    fn parse(&mut self) {
        let mut consumed = 0;
        while self.ending.is_none()
            && self.session.accepts_input()
            && self.input.len() - consumed >= self.needed
        {
            let limits = if self.session.is_greeted() {
                FrameLimits::FULL
            } else {
                FrameLimits::BEFORE_HELLO
            };
            match decode_request(&self.input[consumed..], &limits) {
                Ok(Decode::Frame {
                    consumed: bytes,
                    id,
                    opcode,
                    request,
                }) => {
                    consumed += bytes;
                    self.needed = 0;
                    if self.session.request(id, opcode, bytes, request) == Flow::Close {
                        self.ending = Some(End::Refused);
                    }
                }
                Ok(Decode::Incomplete { needed }) => {
                    self.needed = needed;
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "client sent a malformed frame");
                    error.encode(&mut self.session.output);
                    self.ending = Some(End::Refused);
                }
            }
        }
        self.input.advance(consumed);
        let frame_begun = !self.input.is_empty() && self.input.len() < self.needed;
        if !frame_begun && self.session.is_greeted() {
            self.incomplete_since = None;
        } else if consumed > 0 || self.incomplete_since.is_none() {
            self.incomplete_since = Some(self.port.clock.monotonic());
        }
        if self.input.is_empty() && self.input.capacity() > INPUT_BYTES_KEPT {
            self.input = BytesMut::with_capacity(INPUT_BYTES);
        }
    }

    fn check_times(&mut self) {
        let now = self.port.clock.monotonic();
        let over = |since: Option<Monotonic>, limit| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
        };
        if over(self.incomplete_since, FRAME_TIME_MAX) && self.ending.is_none() {
            let fault = FrameFault::Incomplete {
                seconds_max: FRAME_TIME_MAX.as_secs(),
            };
            FrameError {
                id: RequestId::new(0),
                opcode: Opcode::UNKNOWN,
                fault,
            }
            .encode(&mut self.session.output);
            self.ending = Some(End::TooSlow);
        }
        if over(self.unsent_since, WRITE_STALL_MAX) {
            self.session.output.clear();
            self.flush_due = false;
            self.ending = Some(End::TooSlow);
        } else if !self.session.output.is_empty() {
            self.unsent_since.get_or_insert(now);
        }
        self.session.expire(now);
    }

    fn wants_input(&self) -> bool {
        let room = self.input.len() < INPUT_BYTES_KEPT || !self.port.budget.is_exhausted();
        self.ending.is_none() && !self.draining && self.session.accepts_input() && room
    }

    fn wants_output(&self) -> bool {
        self.flush_due || !self.session.output.is_empty()
    }

    fn held_bytes(&self) -> usize {
        self.session.held_bytes() + self.input.capacity()
    }

    /// Why the connection is over, once nothing is left to send.
    fn end(&self) -> Option<End> {
        if self.ending == Some(End::ClientClosed) {
            return self.ending;
        }
        if self.wants_output() {
            return None;
        }
        // What was asked before the end still gets its answer; deadlines bound the wait.
        let over = self.session.is_idle() || self.ending == Some(End::TooSlow);
        self.ending
            .or(self.draining.then_some(End::Drained))
            .filter(|_| over)
    }
}

async fn poll_round(round: &mut Option<Round>) -> Result<StateView, ReadError> {
    match round {
        Some(round) => round.await,
        None => std::future::pending().await,
    }
}

/// Sends what it can; true when a flush is still due.
async fn send<W: AsyncWrite + Unpin>(writer: &mut W, output: &mut BytesMut) -> io::Result<bool> {
    if !output.is_empty() {
        let sent = writer.write_buf(output).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        return Ok(true);
    }
    writer.flush().await?;
    Ok(false)
}

async fn receive<R: AsyncRead + Unpin>(reader: &mut R, input: &mut BytesMut) -> io::Result<usize> {
    if input.capacity() - input.len() < INPUT_BYTES / 4 {
        input.reserve(input.len().max(INPUT_BYTES));
    }
    reader.read_buf(input).await
}

fn start_round(port: &Arc<PortContext>) -> Round {
    let port = Arc::clone(port);
    Box::pin(async move {
        let view = read_view(&port.raft).await;
        if view.is_err() {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        view
    })
}

async fn read_view(raft: &Raft) -> Result<StateView, ReadError> {
    let point = raft.read_index(ROUND_TIME_MAX).await?;
    raft.wait_applied(point.index, ROUND_TIME_MAX).await?;
    Ok(raft.state().view())
}
