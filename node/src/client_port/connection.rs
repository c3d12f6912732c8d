//! The socket side of one client connection: bytes to frames, output to bytes, and the time limits.
//!
//! One task owns the connection. It reads only while the dialogue accepts input, so a client that
//! sends faster than it is served, or does not read its replies, is slowed down and not buffered.
//! The protocol is the dialogue's: a [`Dialogue`] makes requests of frames and knows the answers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use kelp_raft::{Raft, ReadError, StateView};
use kelp_seams::Monotonic;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::PortContext;
use super::farewell;
use super::mailbox::Mailbox;
use super::output::{BYTES_KEPT, Output};
use super::patience::{Overdue, Patience};
use super::seats::Stranger;

/// How often time limits and the budget are looked at while anything depends on them.
const TICK: Duration = Duration::from_millis(50);

/// A ReadIndex round that takes longer is tried again; it is several elections.
const ROUND_TIME_MAX: Duration = Duration::from_secs(2);

/// Pause after a failed round: an election takes hundreds of milliseconds.
const ROUND_PAUSE: Duration = Duration::from_millis(20);

/// First size of the input buffer, and its least growth. A length in a header alone allocates
/// nothing: the buffer at most doubles with the bytes that have come.
const INPUT_BYTES: usize = 16 << 10;

/// So much input is read also while the budget is exhausted, so that small requests are refused in
/// words instead of being left unread.
const INPUT_BYTES_FREE: usize = 64 << 10;

/// Whether the connection goes on after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Read on.
    Continue,
    /// Send what is in the output, then close.
    Close,
}

/// What a dialogue has made of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// It has taken a frame of so many bytes.
    Taken { bytes: usize, flow: Flow },
    /// The frame is not there yet; the input must have so many bytes, which is more than it has.
    Incomplete { needed: usize },
    /// There is no frame, and the last words are in the output.
    Broken,
}

/// One connection's side of a protocol. It knows no socket: the connection feeds it frames, letters
/// and rounds, and sends what stands in its output.
pub(crate) trait Dialogue {
    /// Where it is told what it waits for.
    fn mailbox(&self) -> &Mailbox;
    /// What is to be sent.
    fn output(&self) -> &Output;
    /// See [`Dialogue::output`].
    fn output_mut(&mut self) -> &mut Output;
    /// True once the client has shown who it is; it must do so in time.
    fn is_greeted(&self) -> bool;
    /// False while the connection has enough to do and its client must wait.
    fn accepts_input(&self) -> bool;
    /// True when every request has been answered.
    fn is_idle(&self) -> bool;
    /// True while a request may pass its deadline here, or waits for room.
    fn is_timed(&self) -> bool;
    /// Tells the budget what the connection holds, with an input buffer of this size.
    fn report_held(&mut self, input_bytes: usize);
    /// True while the connections of the node together may take more.
    fn has_room(&self) -> bool;
    /// Takes one frame at the start of the input, if it is there. After `Incomplete` it sees the
    /// same bytes again and more behind them.
    fn frame(&mut self, input: &[u8]) -> Frame;
    /// Says its last words to a client that ended its side inside this frame.
    fn cut_short(&mut self, input: &[u8]);
    /// Says its last words to a client that does not complete this frame.
    fn too_slow(&mut self, input: &[u8]);
    /// Handles what the proposer, the applier and reads from the disk have left.
    fn take_letters(&mut self);
    /// Moves on whatever can move: serves reads that have a view, releases what was held.
    fn advance(&mut self);
    /// True when a ReadIndex round should start; [`Dialogue::begin_round`] takes its readers.
    fn wants_round(&self) -> bool;
    /// The waiting reads share the round that starts now.
    fn begin_round(&mut self);
    /// Takes the result of the round; after a failure its readers wait for another.
    fn end_round(&mut self, result: Result<StateView, ReadError>);
    /// Refuses what has passed its deadline.
    fn expire(&mut self, now: Monotonic);
}

type Round = BoxFuture<'static, Result<StateView, ReadError>>;

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    ClientClosed,
    Refused,
    TooSlow,
    Drained,
}

enum Event {
    Letters,
    Sent { bytes: usize },
    Received { bytes: usize },
    RoundEnded(Result<StateView, ReadError>),
    Tick,
    StopAsked,
}

struct Connection<D> {
    port: Arc<PortContext>,
    dialogue: D,
    /// Until the client has shown who it is.
    stranger: Option<Stranger>,
    input: BytesMut,
    /// Bytes that the frame at the start of `input` needs; 0 when it was not looked at yet.
    needed: usize,
    /// The client sends nothing any more; it may still read.
    input_ended: bool,
    patience: Patience,
    flush_due: bool,
    /// Why the connection closes as soon as its output is sent.
    ending: Option<End>,
    draining: bool,
}

/// Serves one connection until it ends; `stop` asks it to answer what is in flight and close.
pub(crate) async fn serve<S, D>(
    stream: S,
    stranger: Option<Stranger>,
    dialogue: D,
    port: Arc<PortContext>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<End>
where
    S: AsyncRead + AsyncWrite,
    D: Dialogue,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut connection = Connection::new(port, dialogue, stranger);
    let mut round: Option<Round> = None;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    connection.draining = *stop.borrow_and_update();
    let end = loop {
        if let Some(end) = connection.end() {
            break end;
        }
        if round.is_none() && connection.dialogue.wants_round() {
            connection.dialogue.begin_round();
            round = Some(start_round(&connection.port));
        }
        let (may_read, may_write) = (connection.wants_input(), connection.wants_output());
        let is_timed = connection.is_timed();
        let Connection {
            dialogue, input, ..
        } = &mut connection;
        let event = tokio::select! {
            () = dialogue.mailbox().arrived() => Event::Letters,
            sent = send(&mut writer, dialogue.output()), if may_write => {
                Event::Sent { bytes: sent? }
            }
            received = receive(&mut reader, input), if may_read => {
                Event::Received { bytes: received? }
            }
            result = poll_round(&mut round), if round.is_some() => Event::RoundEnded(result),
            _ = tick.tick(), if is_timed => Event::Tick,
            Ok(()) = stop.changed() => Event::StopAsked,
        };
        if matches!(event, Event::RoundEnded(_)) {
            round = None;
        }
        connection.handle(event);
    };
    // The seat and the memory are for others now.
    drop(connection);
    farewell::part(&mut reader, &mut writer).await;
    Ok(end)
}

impl<D: Dialogue> Connection<D> {
    fn new(port: Arc<PortContext>, dialogue: D, stranger: Option<Stranger>) -> Self {
        let mut connection = Self {
            dialogue,
            port,
            stranger,
            input: BytesMut::with_capacity(INPUT_BYTES),
            needed: 0,
            input_ended: false,
            patience: Patience::default(),
            flush_due: false,
            ending: None,
            draining: false,
        };
        connection.watch();
        connection
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Letters => self.dialogue.take_letters(),
            Event::Sent { bytes } => {
                self.flush_due = bytes > 0;
                self.dialogue.output_mut().sent(bytes);
                self.patience.output_was_taken();
            }
            Event::Received { bytes: 0 } => self.input_ended = true,
            Event::Received { .. } => {}
            Event::RoundEnded(result) => self.dialogue.end_round(result),
            Event::Tick => self.check_times(),
            Event::StopAsked => self.draining = true,
        }
        self.parse();
        self.dialogue.advance();
        if self.stranger.is_some() && self.dialogue.is_greeted() {
            self.stranger = None;
        }
        self.dialogue.report_held(self.input.capacity());
        self.watch();
    }

    /// Hands every complete frame in the input to the dialogue, as long as that accepts more.
    fn parse(&mut self) {
        let mut consumed = 0;
        while self.ending.is_none()
            && self.dialogue.accepts_input()
            && self.input.len() - consumed >= self.needed
        {
            match self.dialogue.frame(&self.input[consumed..]) {
                Frame::Taken { bytes, flow } => {
                    consumed += bytes;
                    self.needed = 0;
                    if flow == Flow::Close {
                        self.ending = Some(End::Refused);
                    }
                }
                Frame::Incomplete { needed } => {
                    self.needed = needed;
                    break;
                }
                Frame::Broken => self.ending = Some(End::Refused),
            }
        }
        if consumed > 0 {
            self.patience.frame_came();
        }
        self.input.advance(consumed);
        if self.input_ended && self.ending.is_none() && self.lacks_input() {
            if !self.input.is_empty() {
                self.dialogue.cut_short(&self.input);
            }
            self.ending = Some(End::ClientClosed);
        }
        if self.input.is_empty() && self.input.capacity() > BYTES_KEPT {
            self.input = BytesMut::with_capacity(INPUT_BYTES);
        }
    }

    /// True when nothing more can be made of the input.
    fn lacks_input(&self) -> bool {
        self.input.is_empty() || self.input.len() < self.needed
    }

    /// Lets the clocks run for what the client owes, and only for that.
    fn watch(&mut self) {
        let frame_begun = !self.input.is_empty() && self.input.len() < self.needed;
        // Want of room is no excuse: clients that keep the room with halves would keep it for ever.
        let frame = (frame_begun || !self.dialogue.is_greeted()) && self.awaits_input();
        let output = self.wants_output();
        let clock = self.port.clock.as_ref();
        self.patience.watch(frame, output, || clock.monotonic());
    }

    fn check_times(&mut self) {
        let now = self.port.clock.monotonic();
        match self.patience.overdue(now) {
            Some(Overdue::Frame) if self.ending.is_none() => {
                self.dialogue.too_slow(&self.input);
                self.ending = Some(End::TooSlow);
            }
            Some(Overdue::Output) => {
                self.dialogue.output_mut().clear();
                self.flush_due = false;
                self.ending = Some(End::TooSlow);
            }
            _ => {}
        }
        self.dialogue.expire(now);
    }

    /// True while something depends on the time, or on room that others may make. Nothing does on
    /// an idle connection.
    fn is_timed(&self) -> bool {
        self.patience.is_running() || self.dialogue.is_timed() || !self.has_room_for_input()
    }

    fn wants_input(&self) -> bool {
        self.awaits_input() && self.has_room_for_input()
    }

    /// True when it is for the client to go on.
    fn awaits_input(&self) -> bool {
        self.ending.is_none()
            && !self.input_ended
            && !self.draining
            && self.dialogue.accepts_input()
    }

    fn has_room_for_input(&self) -> bool {
        self.input.len() < INPUT_BYTES_FREE || self.dialogue.has_room()
    }

    fn wants_output(&self) -> bool {
        self.flush_due || !self.dialogue.output().is_empty()
    }

    /// Why the connection is over, once nothing is left to send.
    fn end(&self) -> Option<End> {
        if self.wants_output() {
            return None;
        }
        // What was asked before the end still gets its answer; deadlines bound the wait.
        let over = self.dialogue.is_idle() || self.ending == Some(End::TooSlow);
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

/// Sends what it can and says how much; with nothing to send it flushes, and that is 0.
async fn send<W: AsyncWrite + Unpin>(writer: &mut W, output: &Output) -> io::Result<usize> {
    if output.is_empty() {
        writer.flush().await?;
        return Ok(0);
    }
    match writer.write(&output.bytes).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        sent => Ok(sent),
    }
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
