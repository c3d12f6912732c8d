//! Frames on their way out: small ones are copied together, large payloads are kept as they are.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::frame::{FrameKind, put_header};

/// A payload from this size on is queued by reference; below it, one copy is cheaper than one more
/// write.
const COPY_BYTES_MAX: usize = 16 * 1024;

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

    /// The next bytes to write; empty when nothing is queued.
    pub(super) fn front(&self) -> &[u8] {
        self.chunks.front().map_or(&self.tail, Bytes::as_ref)
    }

    /// Forgets the first `count` bytes of [`Output::front`], which were written.
    pub(super) fn advance(&mut self, count: usize) {
        self.bytes -= count;
        let Some(chunk) = self.chunks.front_mut() else {
            self.tail.advance(count);
            return;
        };
        chunk.advance(count);
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
    }

    /// Bytes that are queued.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}
