//! Frames on their way out: small ones are copied together, large payloads are kept as they are.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

use super::frame::{FrameKind, put_header};

/// A payload from this size on is queued by reference; below it, one copy is cheaper than one more
/// write.
const COPY_BYTES_MAX: usize = 16 * 1024;

/// Chunks handed to one vectored write; more would not make its system call cheaper.
pub(super) const SLICES_MAX: usize = 16;

/// A queue of bytes to write, in order.
///
/// Invariants: no element of `chunks` is empty; `tail` comes after all of `chunks`; `bytes` counts
/// both.
#[derive(Default)]
pub(super) struct Output {
    chunks: VecDeque<Bytes>,
    tail: BytesMut,
    bytes: usize,
}

impl Output {
    /// Queues one frame.
    pub(super) fn push(&mut self, kind: FrameKind, id: u64, payload: &Bytes) {
        let before = self.tail.len();
        put_header(&mut self.tail, kind, id, payload.len());
        if payload.len() < COPY_BYTES_MAX {
            self.tail.extend_from_slice(payload);
            self.bytes += self.tail.len() - before;
            return;
        }
        self.bytes += self.tail.len() - before + payload.len();
        self.chunks.push_back(self.tail.split().freeze());
        self.chunks.push_back(payload.clone());
    }

    /// The next chunks to write, in order; how many of the slices are filled.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES_MAX]) -> usize {
        let chunks = self.chunks.iter().map(Bytes::as_ref);
        let tail = Some(self.tail.as_ref()).filter(|tail| !tail.is_empty());
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(chunks.chain(tail)) {
            *slice = IoSlice::new(chunk);
            count += 1;
        }
        count
    }

    /// Forgets the first `count` bytes, which were written.
    pub(super) fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(chunk) = self.chunks.front_mut() {
            let taken = count.min(chunk.len());
            chunk.advance(taken);
            count -= taken;
            if !chunk.is_empty() {
                return;
            }
            self.chunks.pop_front();
        }
        self.tail.advance(count);
    }

    /// Bytes that are queued.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
