//! A stream of frames over a stream of bytes, for one task that reads and writes.
//!
//! One task drives both directions, so the TLS session needs no lock. Reading and writing are
//! `poll` functions that the owner calls in its own loop; the owner decides when to stop reading.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::frame::{
    FRAME_BYTES_MAX, Frame, FrameError, FrameKind, GREETING_BYTES_MAX, bytes_missing, decode_frame,
};
use super::output::{Output, SLICES_MAX};

/// Room of a block for reading: four TLS records.
const READ_BYTES: usize = 64 * 1024;

/// A block with less room than this is left; below it, reads become too small.
const SPARE_BYTES_MIN: usize = 4 * 1024;

/// Room made at once for a frame whose length is announced; a longer frame gets more as its bytes
/// arrive.
const RESERVE_BYTES_MAX: usize = 1024 * 1024;

/// Frames in both directions over one stream.
///
/// Until [`FramePipe::lift_limit`], frames are limited to the size of a greeting, because the peer
/// is not yet known.
pub(super) struct FramePipe<S> {
    stream: S,
    input: BytesMut,
    output: Output,
    length_max: usize,
    needs_flush: bool,
    read_bytes: u64,
    written_bytes: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FramePipe<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: Output::default(),
            length_max: GREETING_BYTES_MAX,
            needs_flush: false,
            read_bytes: 0,
            written_bytes: 0,
        }
    }

    /// Allows frames of full size: the peer has proved who it is.
    pub(super) fn lift_limit(&mut self) {
        self.length_max = FRAME_BYTES_MAX;
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    #[cfg(test)]
    pub(super) fn into_stream(self) -> S {
        self.stream
    }

    /// Queues a frame; [`FramePipe::poll_write`] sends it.
    pub(super) fn push(&mut self, kind: FrameKind, id: u64, payload: &Bytes) {
        self.output.push(kind, id, payload);
    }

    /// Bytes queued and not yet handed to the stream.
    pub(super) fn output_bytes(&self) -> usize {
        self.output.len()
    }

    /// Bytes read from the stream so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Bytes handed to the stream so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// The next frame; `None` when the peer closed the connection between two frames.
    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Frame>>> {
        loop {
            if let Some(frame) = decode_frame(&mut self.input, self.length_max).map_err(invalid)? {
                return Poll::Ready(Ok(Some(frame)));
            }
            self.make_room();
            let read = pin!(self.stream.read_buf(&mut self.input)).poll(context);
            let count = ready!(read)?;
            if count == 0 {
                return Poll::Ready(self.end_of_stream());
            }
            self.read_bytes += u64::try_from(count).unwrap_or(0);
        }
    }

    /// Makes room for the next read. A block is used up before the next one is allocated: frames
    /// are slices of their block, and one that is kept for long must not pin a block of its own.
    fn make_room(&mut self) {
        let missing = bytes_missing(&self.input).min(RESERVE_BYTES_MAX);
        let spare = self.input.capacity() - self.input.len();
        if spare < missing.max(SPARE_BYTES_MIN) {
            self.input.reserve(missing.max(READ_BYTES));
        }
    }

    fn end_of_stream(&self) -> io::Result<Option<Frame>> {
        if self.input.is_empty() {
            return Ok(None);
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// Writes all that is queued and flushes; ready when nothing is left.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = self.output.slices(&mut slices);
            let stream = Pin::new(&mut self.stream);
            let count = ready!(stream.poll_write_vectored(context, &slices[..filled]))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(count);
            self.written_bytes += u64::try_from(count).unwrap_or(0);
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads one frame; a closed connection is an error. Used while greetings are exchanged.
    pub(super) async fn read_frame(&mut self) -> io::Result<Frame> {
        let frame = std::future::poll_fn(|context| self.poll_frame(context)).await?;
        frame.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Writes one frame and flushes. Used while greetings are exchanged.
    pub(super) async fn write_frame(&mut self, kind: FrameKind, payload: &Bytes) -> io::Result<()> {
        self.push(kind, 0, payload);
        std::future::poll_fn(|context| self.poll_write(context)).await
    }

    /// Tells the peer that no more bytes come.
    pub(super) async fn shutdown(&mut self) -> io::Result<()> {
        let stream = &mut self.stream;
        std::future::poll_fn(|context| Pin::new(&mut *stream).poll_shutdown(context)).await
    }
}

pub(super) fn invalid(error: FrameError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
