//! One dialled connection: a queue of calls and the task that carries them.
//!
//! ```text
//!          call            dialled              broken
//!   Idle ------> Dialling ---------> Open ---------------> Idle
//!     ^              | failed          | broken at once
//!     |              v                 v
//!     +-- time --- Waiting: calls fail at once
//! ```
//!
//! The task sleeps until there is a call, dials, and then drives the connection in one loop: take
//! all that is queued, write it together, read replies, complete their calls. When the connection
//! breaks, sent calls fail as lost and unsent ones as unreachable; nothing is sent twice.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use kelp_client::BoxStream;
use kelp_raft::{BusError, NodeId, PeerClass, SendPermit};
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout, timeout_at};
use tokio_rustls::TlsStream;

use super::book::{PeerRecord, lock};
use super::calls::Calls;
use super::context::LinkContext;
use super::frame::{Frame, FrameError, FrameKind, Hello, Refusal, VERSION, Welcome, payload_fits};
use super::patience::Patience;
use super::pipe::{FramePipe, invalid};
use super::secret::HeldSecret;

/// Bytes taken from the calls into the output at a time, so that a deadline can still withdraw what
/// lies behind.
const OUTPUT_BYTES_TARGET: usize = 1024 * 1024;

/// First pause after repeated failures; it doubles up to [`PeerLimits::backoff_max`].
const BACKOFF_MIN: Duration = Duration::from_millis(25);

/// A connection that lived shorter than this counts as a failed dial, so that a peer that closes at
/// once is not dialled in a loop.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// Failures in a row after which an operator is told, once: a restart of the peer causes one.
const FAILURES_REPORTED: u32 = 3;

/// One connection to one peer, whether it is open or not.
pub(super) struct Link {
    peer: NodeId,
    class: PeerClass,
    record: Arc<PeerRecord>,
    context: Arc<LinkContext>,
    state: Mutex<State>,
    /// Wakes the task when a call is queued.
    waker: AtomicWaker,
}

struct State {
    calls: Calls,
    phase: Phase,
    /// Somebody wants the connection for itself: it is dialled without a call.
    wanted: bool,
}

enum Phase {
    /// Idle, dialling or open: calls are queued.
    Ready,
    /// The peer could not be reached; calls fail at once until the time has come.
    Waiting { until: Instant, reason: String },
    /// The links were stopped.
    Stopped,
}

type PeerStream = TlsStream<BoxStream>;

impl Link {
    pub(super) fn new(
        peer: NodeId,
        class: PeerClass,
        record: Arc<PeerRecord>,
        context: Arc<LinkContext>,
    ) -> Self {
        let calls = Calls::new(context.limits.queue_bytes);
        let state = State {
            calls,
            phase: Phase::Ready,
            wanted: false,
        };
        Self {
            peer,
            class,
            record,
            context,
            state: Mutex::new(state),
            waker: AtomicWaker::new(),
        }
    }

    /// Queues a call; it is in its place in the order when this returns.
    pub(super) fn enqueue(
        &self,
        request: Bytes,
        permit: SendPermit,
    ) -> Result<(u64, oneshot::Receiver<Result<Bytes, BusError>>), BusError> {
        if !payload_fits(request.len()) {
            let bytes = request.len();
            return Err(BusError::Unreachable(format!(
                "request of {bytes} bytes is over the limit"
            )));
        }
        let queued = {
            let mut state = lock(&self.state);
            match &state.phase {
                Phase::Stopped => return Err(BusError::Unreachable("links are stopped".into())),
                Phase::Waiting { until, reason } if Instant::now() < *until => {
                    return Err(BusError::Unreachable(reason.clone()));
                }
                Phase::Ready | Phase::Waiting { .. } => state.calls.enqueue(request, permit)?,
            }
        };
        self.waker.wake();
        Ok(queued)
    }

    /// Dials if the connection is not open, unless a pause after failures is under way.
    pub(super) fn want(&self) {
        {
            let mut state = lock(&self.state);
            match &state.phase {
                Phase::Stopped => return,
                Phase::Waiting { until, .. } if Instant::now() < *until => return,
                Phase::Ready | Phase::Waiting { .. } => state.wanted = true,
            }
        }
        self.waker.wake();
    }

    /// Waits for the reply to a queued call.
    pub(super) async fn reply(
        &self,
        id: u64,
        receiver: oneshot::Receiver<Result<Bytes, BusError>>,
        deadline: Instant,
    ) -> Result<Bytes, BusError> {
        match timeout_at(deadline, receiver).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => Err(BusError::Lost("links are stopped".to_owned())),
            Err(_) => Err(lock(&self.state).calls.expire(id)),
        }
    }

    /// Lets the next call dial at once, because the peer's address has changed.
    pub(super) fn forget_failures(&self) {
        let mut state = lock(&self.state);
        if matches!(state.phase, Phase::Waiting { .. }) {
            state.phase = Phase::Ready;
        }
    }

    fn fail_all(&self, phase: Phase, reason: &str) {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.calls.fail_all(reason);
    }

    /// The link's task: runs until it is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        let _stopped = StopGuard(&self);
        let mut failures = 0;
        loop {
            self.call_queued().await;
            let lived_from;
            let reason = match self.dial().await {
                Err(reason) => {
                    self.record.dial_failed(&reason);
                    lived_from = None;
                    reason
                }
                Ok(pipe) => {
                    lived_from = Some(Instant::now());
                    if failures >= FAILURES_REPORTED {
                        let (peer, class) = (self.peer.get(), self.class);
                        tracing::info!(peer, ?class, "peer is reached again");
                    }
                    self.drive(pipe).await
                }
            };
            if lived_from.is_some_and(|from| from.elapsed() >= LIFE_MIN) {
                failures = 0;
            } else {
                failures += 1;
            }
            let (peer, class) = (self.peer.get(), self.class);
            if failures == FAILURES_REPORTED {
                tracing::warn!(peer, ?class, reason, "peer cannot be reached");
            } else {
                tracing::debug!(peer, ?class, reason, failures, "peer link is down");
            }
            self.fail_all(self.next_phase(failures, &reason), &reason);
        }
    }

    /// After the first failure the next call dials at once: most often a peer has just restarted.
    fn next_phase(&self, failures: u32, reason: &str) -> Phase {
        if failures <= 1 {
            return Phase::Ready;
        }
        let doublings = (failures - 2).min(16);
        let longest = BACKOFF_MIN.saturating_mul(1 << doublings);
        let longest = longest.min(self.context.limits.backoff_max);
        // Between half and all of it, so that the nodes of a cluster do not dial in step.
        let span = u64::try_from(longest.as_millis() / 2).unwrap_or(0).max(1);
        let jitter = Duration::from_millis(self.context.rng.next_u64() % span);
        Phase::Waiting {
            until: Instant::now() + longest / 2 + jitter,
            reason: reason.to_owned(),
        }
    }

    async fn call_queued(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            let mut state = lock(&self.state);
            if std::mem::take(&mut state.wanted) || state.calls.has_unsent() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    async fn dial(&self) -> Result<FramePipe<PeerStream>, String> {
        match timeout(self.context.limits.dial, self.try_dial()).await {
            Ok(dialled) => dialled,
            Err(_) => Err("dialling took too long".to_owned()),
        }
    }

    async fn try_dial(&self) -> Result<FramePipe<PeerStream>, String> {
        let Some(address) = self.record.address() else {
            return Err("no address is known".to_owned());
        };
        let context = &self.context;
        let stream = context.transport.connect(&address).await;
        let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        let stream = context.tls.connect(self.peer, stream).await;
        let stream = stream.map_err(|error| format!("tls with {address} failed: {error}"))?;
        let mut pipe = FramePipe::new(stream);
        let greeted = self.greet(&mut pipe).await;
        greeted.map_err(|error| format!("greeting of {address} failed: {error}"))?;
        pipe.lift_limit();
        Ok(pipe)
    }

    async fn greet(&self, pipe: &mut FramePipe<PeerStream>) -> io::Result<()> {
        let tls = &self.context.tls;
        let hello = Hello {
            version_min: VERSION,
            version_max: VERSION,
            class: self.class,
            cluster: tls.cluster(),
            node: tls.node(),
            target: self.peer,
            boot: self.context.boot,
            directory: self.context.directory,
        };
        let mut payload = BytesMut::new();
        hello.encode(&mut payload);
        pipe.write_frame(FrameKind::Hello, &payload.freeze())
            .await?;
        let answer = pipe.read_frame().await?;
        match answer.kind {
            FrameKind::Welcome => {
                let welcome = Welcome::decode(&answer.payload).map_err(invalid)?;
                if welcome.cluster != tls.cluster() || welcome.node != self.peer {
                    return Err(io::Error::other("the welcome is from another node"));
                }
                if welcome.version != VERSION {
                    let version = welcome.version;
                    return Err(io::Error::other(format!("version {version} is unknown")));
                }
                let checked = self.context.check_directory(self.peer, welcome.directory);
                if let Err(refusal) = checked {
                    // So that it learns why, also when it dials nobody itself.
                    let mut payload = BytesMut::new();
                    refusal.encode(&mut payload);
                    pipe.write_frame(FrameKind::Refusal, &payload.freeze())
                        .await?;
                    pipe.shutdown().await?;
                    return Err(io::Error::other(refusal));
                }
                Ok(())
            }
            FrameKind::Refusal => {
                let refusal = Refusal::decode(&answer.payload);
                self.context.refused_by(self.peer, &refusal);
                Err(io::Error::other(refusal))
            }
            kind => Err(invalid(FrameError::Unexpected(kind))),
        }
    }

    /// Carries calls over an open connection until it breaks; returns the reason.
    async fn drive(&self, pipe: FramePipe<PeerStream>) -> String {
        let open = self.record.dialled(self.class);
        let _secret = self.hold_secret(&pipe);
        let mut driver = Driver::new(self, pipe);
        let broken = poll_fn(|context| driver.poll(context)).await;
        driver.count_traffic();
        let reason = broken.to_string();
        open.failed(&reason);
        reason
    }

    /// Keeps what both ends of a control connection know for the heartbeats to this peer.
    fn hold_secret(&self, pipe: &FramePipe<PeerStream>) -> Option<HeldSecret> {
        if self.class != PeerClass::Control {
            return None;
        }
        match self.context.tls.secret(pipe.stream(), self.peer) {
            Ok(secret) => Some(self.record.hold_dialled_secret(secret)),
            Err(error) => {
                tracing::warn!(peer = self.peer.get(), %error, "no secret for heartbeats");
                None
            }
        }
    }
}

/// Fails what is queued when the task ends, also when it is aborted.
struct StopGuard<'a>(&'a Link);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.fail_all(Phase::Stopped, "links are stopped");
    }
}

/// The loop over one open connection.
struct Driver<'a> {
    link: &'a Link,
    pipe: FramePipe<PeerStream>,
    ticks: Interval,
    patience: Patience,
    /// Id and time of the ping that is on its way.
    ping: Option<(u64, Instant)>,
    pings: u64,
    counted: (u64, u64),
}

impl<'a> Driver<'a> {
    fn new(link: &'a Link, pipe: FramePipe<PeerStream>) -> Self {
        let limits = &link.context.limits;
        let mut ticks = interval(limits.ping_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            link,
            pipe,
            ticks,
            patience: Patience::new(limits.silence, limits.ping_interval),
            ping: None,
            pings: 0,
            counted: (0, 0),
        }
    }

    /// Ready when the connection is broken.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.link.waker.register(context.waker());
        loop {
            // Reading comes before the tick: what has arrived is a sign of life.
            let read = match self.read_all(context) {
                Ok(read) => read,
                Err(error) => return Poll::Ready(error),
            };
            while self.ticks.poll_tick(context).is_ready() {
                if let Err(error) = self.tick() {
                    return Poll::Ready(error);
                }
            }
            let more = self.fill_output();
            let before = self.pipe.written_bytes();
            let written = match self.pipe.poll_write(context) {
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            // While the system's buffer is full, bytes leave only as fast as the peer takes them.
            if !written && self.pipe.written_bytes() > before {
                self.patience.renew();
            }
            self.count_traffic();
            let again = read || (more && written);
            if !again {
                return Poll::Pending;
            }
        }
    }

    /// Moves queued calls into the output; whether some are left.
    fn fill_output(&mut self) -> bool {
        let mut state = lock(&self.link.state);
        while self.pipe.output_bytes() < OUTPUT_BYTES_TARGET {
            let Some((id, request)) = state.calls.take_unsent() else {
                return false;
            };
            self.pipe.push(FrameKind::Request, id, &request);
        }
        state.calls.has_unsent()
    }

    /// Handles the frames that have arrived; whether there were any. The stream yields by itself
    /// when it has given enough in one poll.
    fn read_all(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut any = false;
        let before = self.pipe.read_bytes();
        loop {
            match self.pipe.poll_frame(context)? {
                Poll::Ready(Some(frame)) => {
                    any = true;
                    self.receive(frame)?;
                }
                Poll::Ready(None) => return Err(io::Error::other("peer closed the connection")),
                Poll::Pending => break,
            }
        }
        if self.pipe.read_bytes() > before {
            self.patience.renew();
            self.link.record.heard();
        }
        Ok(any)
    }

    fn receive(&mut self, frame: Frame) -> io::Result<()> {
        match frame.kind {
            FrameKind::Reply => {
                let mut state = lock(&self.link.state);
                if state.calls.complete(frame.id, frame.payload) {
                    return Ok(());
                }
                Err(io::Error::other("peer replied to a call that was not made"))
            }
            FrameKind::Pong => {
                if let Some((id, sent)) = self.ping
                    && id == frame.id
                {
                    self.ping = None;
                    self.link.record.set_round_trip(sent.elapsed());
                }
                Ok(())
            }
            kind => Err(invalid(FrameError::Unexpected(kind))),
        }
    }

    /// Sends a ping unless one is on its way, and gives up on a peer that was silent for too long.
    fn tick(&mut self) -> io::Result<()> {
        if self.patience.tick() {
            return Err(io::Error::other("peer was silent for too long"));
        }
        if self.ping.is_none() {
            self.pings += 1;
            self.ping = Some((self.pings, Instant::now()));
            self.pipe.push(FrameKind::Ping, self.pings, &Bytes::new());
        }
        Ok(())
    }

    fn count_traffic(&mut self) {
        let (sent, received) = (self.pipe.written_bytes(), self.pipe.read_bytes());
        let record = &self.link.record;
        record
            .sent_bytes
            .fetch_add(sent - self.counted.0, Ordering::Relaxed);
        record
            .received_bytes
            .fetch_add(received - self.counted.1, Ordering::Relaxed);
        self.counted = (sent, received);
    }
}
