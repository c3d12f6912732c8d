//! The one task of a connection: writes what callers queued, reads replies, watches the clock.
//!
//! A poll reads until the socket is empty, then writes, then sets the alarm. Before it takes a new
//! batch it yields once to the other ready tasks: those that were just woken by replies mostly send
//! again, and their frames then share one write.
//!
//! The task ends when the connection does: by an error, or when the last handle is dropped.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use kelp_wire::{DecodeResponse, FrameLimits, RequestId, Response, decode_response};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use super::reply::VALUE_COPY_BYTES_MAX;
use super::shared::{Inbox, PING_ID, Shared};
use super::vigil::{Finding, Vigil};
use super::{CloseReason, ConnectionOptions, tls_fault};
use crate::transport::BoxStream;

/// Free space in the read buffer before each read: a batch of a few hundred small replies.
const READ_BYTES: usize = 64 * 1024;

/// A write buffer that a burst has grown beyond this is not kept.
const WRITE_BUFFER_BYTES_KEPT: usize = 1024 * 1024;

pub(super) struct Driver {
    shared: Arc<Shared>,
    stream: BoxStream,
    incoming: BytesMut,
    /// The batch that is being written; `written` of it has gone out.
    writing: BytesMut,
    written: usize,
    /// Bytes of all batches that have gone to the socket.
    handed: u64,
    needs_flush: bool,
    /// Whether this poll follows a yield, so that a batch may be taken now.
    has_yielded: bool,
    /// Whether the socket refused bytes since the last sign of life.
    was_blocked: bool,
    alarm: Pin<Box<Sleep>>,
    vigil: Vigil,
    wakers: Vec<Waker>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, stream: BoxStream, options: &ConnectionOptions) -> Self {
        let now = Instant::now();
        Self {
            shared,
            stream,
            incoming: BytesMut::new(),
            writing: BytesMut::new(),
            written: 0,
            handed: 0,
            needs_flush: false,
            has_yielded: false,
            was_blocked: false,
            alarm: Box::pin(sleep_until(now)),
            vigil: Vigil::new(now, options.ping_after, options.silence_max),
            wakers: Vec::new(),
        }
    }

    /// Does what can be done now; an error ends the connection.
    fn advance(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        if let Some(reason) = self.shared.closed() {
            return Err(reason);
        }
        self.read(context)?;
        self.write(context)?;
        // Last, because it must see the deadline of every request that the write step took.
        self.watch_clock(context)
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        loop {
            self.incoming.reserve(READ_BYTES);
            let read = pin!(self.stream.read_buf(&mut self.incoming)).poll(context);
            match read {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(CloseReason::ClosedByNode),
                Poll::Ready(Ok(_)) => {
                    self.note_life();
                    self.deliver()?;
                }
                Poll::Ready(Err(error)) => return Err(failed(&error)),
            }
        }
    }

    /// Hands every whole frame in the read buffer to its caller.
    fn deliver(&mut self) -> Result<(), CloseReason> {
        let incoming = &mut self.incoming;
        self.shared.accept_all(&mut self.wakers, |inbox| {
            while deliver_one(incoming, inbox)? {}
            Ok(())
        })
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        loop {
            if self.written == self.writing.len() && !self.next_batch(context) {
                break;
            }
            let rest = &self.writing[self.written..];
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return Err(CloseReason::ClosedByNode),
                Poll::Ready(Ok(bytes)) => {
                    self.written += bytes;
                    self.handed += u64::try_from(bytes).expect("a batch is at most a few MiB");
                    self.needs_flush = true;
                    if self.was_blocked {
                        self.note_life();
                    }
                }
                Poll::Ready(Err(error)) => return Err(failed(&error)),
                Poll::Pending => {
                    self.was_blocked = true;
                    self.shared.listen(context.waker());
                    break;
                }
            }
        }
        if self.needs_flush {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.needs_flush = false,
                Poll::Ready(Err(error)) => return Err(failed(&error)),
                Poll::Pending => {}
            }
        }
        Ok(())
    }

    /// Takes the frames that wait, unless there are none or the other tasks shall run first.
    fn next_batch(&mut self, context: &mut Context<'_>) -> bool {
        self.written = 0;
        self.writing.clear();
        if self.writing.capacity() > WRITE_BUFFER_BYTES_KEPT {
            self.writing = BytesMut::new();
        }
        if !self.has_yielded && self.shared.has_output() {
            self.has_yielded = true;
            context.waker().wake_by_ref();
            return false;
        }
        self.has_yielded = false;
        self.shared.take_output(&mut self.writing, context.waker())
    }

    fn note_life(&mut self) {
        self.vigil.note_life(Instant::now());
        self.was_blocked = false;
    }

    fn watch_clock(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        while let Some(due) = self.next_alarm() {
            if self.alarm.deadline() != due {
                self.alarm.as_mut().reset(due);
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                break;
            }
            self.ring(context)?;
        }
        Ok(())
    }

    /// When to look at the clock next; `None` while the node owes nothing.
    fn next_alarm(&self) -> Option<Instant> {
        let watch = self.shared.watch();
        let quiet = watch.owes_since.map(|since| self.vigil.next_look(since));
        match (watch.deadline_min, quiet) {
            (Some(deadline), Some(quiet)) => Some(deadline.min(quiet)),
            (deadline, quiet) => deadline.or(quiet),
        }
    }

    fn ring(&mut self, context: &mut Context<'_>) -> Result<(), CloseReason> {
        let now = Instant::now();
        self.shared.expire(now, self.handed, &mut self.wakers)?;
        let Some(since) = self.shared.watch().owes_since else {
            return Ok(());
        };
        match self.vigil.look(now, since) {
            Finding::Well => {}
            Finding::Doubtful => {
                self.shared.ping();
                context.waker().wake_by_ref();
            }
            Finding::Dead => return Err(CloseReason::Silent),
        }
        Ok(())
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.advance(context) {
            Ok(()) => Poll::Pending,
            Err(reason) => {
                self.shared.close(&reason, self.handed);
                // A farewell for TLS; whoever cannot take it at once does not get it.
                let _farewell = Pin::new(&mut self.stream).poll_shutdown(context);
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Driver {
    /// The runtime may end before the connection does: nobody may wait for ever.
    fn drop(&mut self) {
        self.shared.close(&CloseReason::Dropped, self.handed);
    }
}

fn failed(error: &std::io::Error) -> CloseReason {
    let message = error.to_string();
    match tls_fault(error) {
        Some(_) => CloseReason::Tls { message },
        None => CloseReason::Failed { message },
    }
}

/// Hands the first frame of the buffer to its caller; false when it is not whole yet.
fn deliver_one(incoming: &mut BytesMut, inbox: &mut Inbox<'_>) -> Result<bool, CloseReason> {
    let limits = FrameLimits::FULL;
    let decoded = decode_response(incoming, &limits).map_err(CloseReason::BadFrame)?;
    let DecodeResponse::Frame { consumed, response } = decoded else {
        return Ok(false);
    };
    if response.value.len() <= VALUE_COPY_BYTES_MAX || response.more {
        accept(inbox, &response, Bytes::copy_from_slice)?;
        incoming.advance(consumed);
        return Ok(true);
    }
    let frame = incoming.split_to(consumed).freeze();
    let decoded = decode_response(&frame, &limits).map_err(CloseReason::BadFrame)?;
    if let DecodeResponse::Frame { response, .. } = decoded {
        accept(inbox, &response, |value| frame.slice_ref(value))?;
    }
    Ok(true)
}

fn accept(
    inbox: &mut Inbox<'_>,
    response: &Response<'_>,
    own: impl FnOnce(&[u8]) -> Bytes,
) -> Result<(), CloseReason> {
    if response.id == PING_ID {
        return Ok(());
    }
    if response.id == RequestId::new(0) {
        return Err(CloseReason::GivenUpByNode {
            message: String::from_utf8_lossy(response.value).into_owned(),
        });
    }
    inbox.accept(response, own)
}
