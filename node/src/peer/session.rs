//! One accepted connection: requests in, in order; replies out, whenever they are ready.
//!
//! Each request is handed to the handler and its future is polled once, right there, so that first
//! polls happen in the order of arrival. A future that is not ready joins the others that run;
//! replies carry the request's id and overtake each other, because a slow read index must not hold
//! up a vote. Reading stops while too much is running or waits to be written: then the peer's own
//! queue fills, and its limit speaks.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};
use kelp_raft::{HandleError, NodeId, PeerClass, PeerHandler};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::PeerLimits;
use super::book::PeerRecord;
use super::frame::{Frame, FrameError, FrameKind, Refusal, payload_fits};
use super::patience::Patience;
use super::pipe::{FramePipe, invalid};

/// Requests of one connection that may be running. A request is a batch, so this is far above what
/// pipelines need.
const RUNNING_MAX: usize = 4096;

/// Bytes of requests of one connection that may be running: the forwarding window of a node, four
/// times.
const RUNNING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Replies that may wait to be written. A peer that does not read its replies gets no further ones.
const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A peer pings every interval; after this many silences without a byte its connection is taken for
/// dead.
const SILENCES_MAX: u32 = 4;

type Reply = Result<Bytes, HandleError>;

/// A request whose reply is not ready yet.
struct Running {
    id: u64,
    bytes: usize,
    future: BoxFuture<'static, Reply>,
}

impl Future for Running {
    type Output = (u64, usize, Reply);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (id, bytes) = (self.id, self.bytes);
        let future = self.future.as_mut();
        future.poll(context).map(|reply| (id, bytes, reply))
    }
}

/// The state of one accepted connection.
///
/// Invariant: `running_bytes` is the sum of the requests in `running`.
pub(super) struct Session<S> {
    pipe: FramePipe<S>,
    from: NodeId,
    class: PeerClass,
    handler: Arc<dyn PeerHandler>,
    record: Arc<PeerRecord>,
    running: FuturesUnordered<Running>,
    running_bytes: usize,
    ticks: Interval,
    /// Renewed when bytes arrive.
    until_heard: Patience,
    /// Renewed when bytes leave, and while there are none to write.
    until_written: Patience,
    counted: (u64, u64),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) fn new(
        pipe: FramePipe<S>,
        from: NodeId,
        class: PeerClass,
        handler: Arc<dyn PeerHandler>,
        record: Arc<PeerRecord>,
        limits: &PeerLimits,
    ) -> Self {
        let mut ticks = interval(limits.ping_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let patience = || Patience::new(limits.silence * SILENCES_MAX, limits.ping_interval);
        Self {
            pipe,
            from,
            class,
            handler,
            record,
            running: FuturesUnordered::new(),
            running_bytes: 0,
            ticks,
            until_heard: patience(),
            until_written: patience(),
            counted: (0, 0),
        }
    }

    /// Serves until the peer closes (`Ok`) or something is wrong with it.
    pub(super) async fn run(mut self) -> io::Result<()> {
        let end = poll_fn(|context| self.poll(context)).await;
        self.count_traffic();
        end
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let finished = self.collect_replies(context)?;
            let arrived = match self.read_requests(context)? {
                Requests::Closed => return Poll::Ready(Ok(())),
                Requests::None => false,
                Requests::Some => true,
            };
            let before = self.pipe.output_bytes();
            let written = self.pipe.poll_write(context)?.is_ready();
            if written || self.pipe.output_bytes() < before {
                self.until_written.renew();
            }
            while self.ticks.poll_tick(context).is_ready() {
                self.check_progress()?;
            }
            self.count_traffic();
            // Writing may have made the room for which reading had stopped, and whoever waits must
            // have been polled.
            let was_full = before >= OUTPUT_BYTES_MAX && !self.is_full();
            if !finished && !arrived && !was_full {
                return Poll::Pending;
            }
        }
    }

    fn is_full(&self) -> bool {
        self.running.len() >= RUNNING_MAX
            || self.running_bytes >= RUNNING_BYTES_MAX
            || self.pipe.output_bytes() >= OUTPUT_BYTES_MAX
    }

    /// Queues the replies that have become ready; whether there were any.
    fn collect_replies(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut any = false;
        while self.pipe.output_bytes() < OUTPUT_BYTES_MAX {
            let running = Pin::new(&mut self.running);
            let Poll::Ready(Some((id, bytes, reply))) = running.poll_next(context) else {
                break;
            };
            any = true;
            self.running_bytes -= bytes;
            self.push_reply(id, reply)?;
        }
        Ok(any)
    }

    fn read_requests(&mut self, context: &mut Context<'_>) -> io::Result<Requests> {
        let mut requests = Requests::None;
        let before = self.pipe.read_bytes();
        while !self.is_full() {
            match self.pipe.poll_frame(context)? {
                Poll::Ready(Some(frame)) => {
                    requests = Requests::Some;
                    self.receive(frame, context)?;
                }
                Poll::Ready(None) => return Ok(Requests::Closed),
                Poll::Pending => break,
            }
        }
        if self.pipe.read_bytes() > before {
            self.until_heard.renew();
            self.record.heard();
        }
        Ok(requests)
    }

    fn receive(&mut self, frame: Frame, context: &mut Context<'_>) -> io::Result<()> {
        match frame.kind {
            FrameKind::Request => {
                let (id, bytes) = (frame.id, frame.payload.len());
                let mut future = self.handler.handle(self.from, self.class, frame.payload);
                // The first poll, in order of arrival. It may be polled again at once by its new
                // owner.
                if let Poll::Ready(reply) = future.as_mut().poll(context) {
                    return self.push_reply(id, reply);
                }
                self.running_bytes += bytes;
                self.running.push(Running { id, bytes, future });
                Ok(())
            }
            FrameKind::Ping => {
                self.pipe.push(FrameKind::Pong, frame.id, &Bytes::new());
                Ok(())
            }
            FrameKind::Refusal => Err(io::Error::other(Refusal::decode(&frame.payload))),
            kind => Err(invalid(FrameError::Unexpected(kind))),
        }
    }

    fn push_reply(&mut self, id: u64, reply: Reply) -> io::Result<()> {
        let reply = reply.map_err(io::Error::other)?;
        if !payload_fits(reply.len()) {
            let bytes = reply.len();
            return Err(io::Error::other(format!(
                "reply of {bytes} bytes is over the limit"
            )));
        }
        self.pipe.push(FrameKind::Reply, id, &reply);
        Ok(())
    }

    /// Gives up on a peer that neither pings nor reads.
    fn check_progress(&mut self) -> io::Result<()> {
        // A full session does not read, so it cannot hear either.
        if self.is_full() {
            self.until_heard.renew();
        } else if self.until_heard.tick() {
            return Err(io::Error::other("peer was silent for too long"));
        }
        if self.until_written.tick() {
            return Err(io::Error::other("peer does not read its replies"));
        }
        Ok(())
    }

    fn count_traffic(&mut self) {
        let (sent, received) = (self.pipe.written_bytes(), self.pipe.read_bytes());
        let record = &self.record;
        record
            .sent_bytes
            .fetch_add(sent - self.counted.0, Ordering::Relaxed);
        record
            .received_bytes
            .fetch_add(received - self.counted.1, Ordering::Relaxed);
        self.counted = (sent, received);
    }
}

/// What reading found.
enum Requests {
    None,
    Some,
    Closed,
}
