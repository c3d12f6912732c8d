//! Puts and deletes that are one command: all of them are executed, under one revision, or none.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{SliceReader, length_u32};
use super::command::{CommandHead, CommandOpcode, CommandRef};
use super::operation::{OperationError, OperationRef};
use super::sub_batch::AppendError;

/// Bytes of the count in front of the parts.
const COUNT_BYTES: usize = 2;

/// Opcode, flags and length of a part's body.
const PART_HEAD_BYTES: usize = 1 + 1 + 4;

/// Collects the parts of a [`Batch`], in order.
#[derive(Debug)]
pub struct BatchBuilder {
    count: u16,
    bytes: BytesMut,
}

impl BatchBuilder {
    /// A batch of nothing, which is not yet one.
    pub fn new() -> Self {
        let mut bytes = BytesMut::new();
        bytes.put_bytes(0, COUNT_BYTES);
        Self { count: 0, bytes }
    }

    /// Adds: `key` has `value`.
    ///
    /// # Errors
    /// [`AppendError::Full`]: there are as many parts as a batch can hold.
    ///
    /// # Panics
    /// If the key is longer than the format allows: the door refuses those.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), AppendError> {
        self.append(&OperationRef::Put { key, value })
    }

    /// Adds: `key` is absent; otherwise like [`put`](Self::put).
    ///
    /// # Errors
    /// See [`put`](Self::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<(), AppendError> {
        self.append(&OperationRef::Delete { key })
    }

    /// Bytes of the batch so far.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The batch; `None` when nothing was added.
    pub fn finish(mut self) -> Option<Batch> {
        self.bytes[..COUNT_BYTES].copy_from_slice(&self.count.to_be_bytes());
        (self.count > 0).then(|| Batch {
            bytes: self.bytes.freeze(),
        })
    }

    fn append(&mut self, part: &OperationRef<'_>) -> Result<(), AppendError> {
        self.count = self.count.checked_add(1).ok_or(AppendError::Full)?;
        let body_bytes = part.body_bytes();
        self.bytes.reserve(PART_HEAD_BYTES + body_bytes);
        self.bytes.put_slice(&[part.opcode().get(), 0]);
        self.bytes.put_u32(length_u32(body_bytes));
        part.encode_body_into(&mut self.bytes);
        Ok(())
    }
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// A batch with its own bytes.
///
/// Invariant: the bytes are those of at least one part, each a put or a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub(super) bytes: Bytes,
}

impl Batch {
    /// The same batch, borrowed.
    pub fn borrow(&self) -> BatchRef<'_> {
        BatchRef { bytes: &self.bytes }
    }
}

/// A batch whose bytes are still where they were read; see [`Batch`] for the invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRef<'a> {
    bytes: &'a [u8],
}

impl<'a> BatchRef<'a> {
    /// The encoded body.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        let count = self
            .bytes
            .first_chunk()
            .map_or(0, |count| u16::from_be_bytes(*count));
        usize::from(count)
    }

    /// The parts in order, each a put or a delete.
    pub fn parts(&self) -> impl Iterator<Item = OperationRef<'a>> + use<'a> {
        let mut reader = SliceReader::new(&self.bytes[COUNT_BYTES..], "batch");
        std::iter::from_fn(move || read_part(&mut reader).ok())
    }

    /// Reads the body of a command, to the end.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, OperationError> {
        let mut reader = SliceReader::new(bytes, "batch");
        let count = reader.u16().map_err(|_| OperationError::Body)?;
        for _ in 0..count {
            read_part(&mut reader)?;
        }
        if count == 0 || !reader.is_empty() {
            return Err(OperationError::Body);
        }
        Ok(Self { bytes })
    }
}

fn read_part<'a>(reader: &mut SliceReader<'a>) -> Result<OperationRef<'a>, OperationError> {
    let malformed = |_| OperationError::Body;
    let opcode = CommandOpcode::new(reader.u8().map_err(malformed)?);
    let flags = reader.u8().map_err(malformed)?;
    let body_bytes = reader.length().map_err(malformed)?;
    let body = reader.take(body_bytes).map_err(malformed)?;
    if !matches!(opcode, CommandOpcode::PUT | CommandOpcode::DELETE) {
        return Err(OperationError::Body);
    }
    let head = CommandHead {
        flags,
        ..CommandHead::new(opcode, 0)
    };
    OperationRef::decode(&CommandRef { head, body })
}
