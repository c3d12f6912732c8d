//! The value of a user's key as the engine holds it: kind, flags, revision, deadline, bytes.

use bytes::{BufMut, Bytes, BytesMut};

use crate::model::{DecodeError, Revision, SliceReader, StampMillis};

/// Kind, flags, revision and deadline.
pub(crate) const RECORD_HEAD_BYTES: usize = 1 + 1 + 8 + 8;

/// A plain value. The kinds 2 to 6 are kept for hashes, lists, sets, sorted sets and streams.
const KIND_PLAIN: u8 = 1;

/// What stands for "no deadline".
const NO_DEADLINE: u64 = 0;

/// What a user's key holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was last written.
    pub revision: Revision,
    /// When it ceases to exist, by the replicated clock.
    pub expire_at: Option<StampMillis>,
    /// The value.
    pub value: Bytes,
}

impl Record {
    /// The encoded record.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(RECORD_HEAD_BYTES + self.value.len());
        put_record_head(self.revision, self.expire_at, &mut out);
        out.put_slice(&self.value);
        out.freeze()
    }

    /// Reads a record; the value shares the memory of `bytes`.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "record");
        let [kind, flags] = reader.array()?;
        let revision = Revision::new(reader.u64()?);
        let deadline = reader.u64()?;
        if kind != KIND_PLAIN || flags != 0 {
            return Err(reader.malformed());
        }
        let expire_at = (deadline != NO_DEADLINE).then_some(StampMillis::new(deadline));
        Ok(Self {
            revision,
            expire_at,
            value: bytes.slice(RECORD_HEAD_BYTES..),
        })
    }

    /// Whether the record does not exist any more at `clock`.
    pub fn is_dead_at(&self, clock: StampMillis) -> bool {
        self.expire_at.is_some_and(|deadline| deadline <= clock)
    }
}

/// Appends the head of a plain record; the value is to follow.
pub(crate) fn put_record_head(
    revision: Revision,
    expire_at: Option<StampMillis>,
    out: &mut BytesMut,
) {
    let mut head = [0; RECORD_HEAD_BYTES];
    head[0] = KIND_PLAIN;
    head[2..10].copy_from_slice(&revision.get().to_be_bytes());
    let deadline = expire_at.map_or(NO_DEADLINE, StampMillis::get);
    head[10..].copy_from_slice(&deadline.to_be_bytes());
    out.put_slice(&head);
}
