//! What must hold for a conditional write to be executed.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{DecodeError, SliceReader, length_u32, shared};
use super::ids::Revision;

const KIND_REVISION: u8 = 1;
const KIND_VALUE: u8 = 2;
const KIND_EXISTS: u8 = 3;
const KIND_ABSENT: u8 = 4;

/// What must hold of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It was last written at this revision; [`Revision::ABSENT`]: it does not exist.
    Revision(Revision),
    /// It has exactly this value.
    Value(Bytes),
    /// It exists.
    Exists,
    /// It does not exist.
    Absent,
}

impl Condition {
    /// The same condition, borrowed.
    pub fn borrow(&self) -> ConditionRef<'_> {
        match self {
            Self::Revision(revision) => ConditionRef::Revision(*revision),
            Self::Value(value) => ConditionRef::Value(value),
            Self::Exists => ConditionRef::Exists,
            Self::Absent => ConditionRef::Absent,
        }
    }
}

/// What must hold of a key, with the value where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionRef<'a> {
    /// It was last written at this revision; [`Revision::ABSENT`]: it does not exist.
    Revision(Revision),
    /// It has exactly this value.
    Value(&'a [u8]),
    /// It exists.
    Exists,
    /// It does not exist.
    Absent,
}

impl<'a> ConditionRef<'a> {
    /// Whether a key that was last written at this revision, with this value, fulfils it; `None`
    /// stands for a key that does not exist.
    pub fn holds(&self, found: Option<(Revision, &[u8])>) -> bool {
        match (self, found) {
            (Self::Revision(expected), Some((revision, _))) => *expected == revision,
            (Self::Revision(expected), None) => *expected == Revision::ABSENT,
            (Self::Value(expected), Some((_, value))) => *expected == value,
            (Self::Value(_) | Self::Exists, None) | (Self::Absent, Some(_)) => false,
            (Self::Exists, Some(_)) | (Self::Absent, None) => true,
        }
    }

    /// The same condition with its own bytes, which it shares with `whole`.
    pub(super) fn share(&self, whole: &Bytes) -> Condition {
        match self {
            Self::Revision(revision) => Condition::Revision(*revision),
            Self::Value(value) => Condition::Value(shared(whole, value)),
            Self::Exists => Condition::Exists,
            Self::Absent => Condition::Absent,
        }
    }

    pub(super) const fn encoded_bytes(&self) -> usize {
        match self {
            Self::Revision(_) => 1 + 8,
            Self::Value(value) => 1 + 4 + value.len(),
            Self::Exists | Self::Absent => 1,
        }
    }

    pub(super) fn encode_into(&self, out: &mut BytesMut) {
        match self {
            Self::Revision(revision) => {
                out.put_u8(KIND_REVISION);
                out.put_u64(revision.get());
            }
            Self::Value(value) => {
                out.put_u8(KIND_VALUE);
                out.put_u32(length_u32(value.len()));
                out.put_slice(value);
            }
            Self::Exists => out.put_u8(KIND_EXISTS),
            Self::Absent => out.put_u8(KIND_ABSENT),
        }
    }

    pub(super) fn read(reader: &mut SliceReader<'a>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            KIND_REVISION => Self::Revision(Revision::new(reader.u64()?)),
            KIND_VALUE => {
                let value_bytes = reader.length()?;
                Self::Value(reader.take(value_bytes)?)
            }
            KIND_EXISTS => Self::Exists,
            KIND_ABSENT => Self::Absent,
            _ => return Err(reader.malformed()),
        })
    }
}
