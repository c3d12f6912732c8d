//! What a connection has to send, and how much memory that takes.

use bytes::{Buf, BytesMut};

/// An empty buffer that has grown over this size is given back. With input and output kept at this
/// size, a thousand idle connections hold half of the default budget.
pub(crate) const BYTES_KEPT: usize = 64 << 10;

/// A buffer that answers are appended to and sent bytes are taken from.
///
/// Invariants: `front` bytes before the start of `bytes` belong to the same allocation, as long as
/// the capacity of `bytes` is `capacity`; with another one it has been allocated or moved anew.
#[derive(Default)]
pub(crate) struct Output {
    /// Answers are appended here; nothing is taken away but by [`Output::sent`].
    pub(crate) bytes: BytesMut,
    front: usize,
    capacity: usize,
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a reply that was encoded elsewhere; copied only when others wait before it.
    pub(crate) fn append(&mut self, reply: BytesMut) {
        if self.bytes.is_empty() && self.allocated() <= BYTES_KEPT {
            *self = Self {
                bytes: reply,
                ..Self::default()
            };
        } else {
            self.bytes.extend_from_slice(&reply);
        }
    }

    /// Takes away what the socket has taken.
    pub(crate) fn sent(&mut self, bytes: usize) {
        let front = self.allocated() - self.bytes.capacity();
        self.bytes.advance(bytes);
        self.front = front + bytes;
        self.capacity = self.bytes.capacity();
        if self.bytes.is_empty() && self.allocated() > BYTES_KEPT {
            *self = Self::default();
        }
    }

    /// Forgets what was not sent.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of memory: also those that were sent and those not filled yet.
    pub(crate) fn allocated(&self) -> usize {
        let capacity = self.bytes.capacity();
        if capacity == self.capacity {
            capacity + self.front
        } else {
            capacity
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_bytes_still_count_until_their_memory_is_given_back() {
        let mut output = Output::default();
        output.bytes.extend_from_slice(&vec![0; 1 << 20]);
        let allocated = output.allocated();
        assert!(allocated >= 1 << 20);
        output.sent(1_000_000);
        assert_eq!(output.allocated(), allocated);
        output.sent(40_000);
        assert_eq!(output.allocated(), allocated);
        output.sent((1 << 20) - 1_040_000);
        assert_eq!(output.allocated(), 0, "an empty large buffer is given back");
    }

    #[test]
    fn a_small_buffer_is_used_again() {
        let mut output = Output::default();
        output.bytes.reserve(4_096);
        let allocated = output.allocated();
        for _ in 0..100 {
            output.bytes.extend_from_slice(&[1; 3_000]);
            assert_eq!(output.allocated(), allocated);
            output.sent(3_000);
            assert_eq!(output.allocated(), allocated);
        }
    }
}
