//! What a command answered, and the one encoding of a list of answers.
//!
//! The encoded list is what the state keeps for repeated sub-batches, what the chain hash covers
//! and what the peer link carries, so it is small: a put that answers with the next revision costs
//! two bytes.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{DecodeError, SliceReader, length_u32, shared};
use super::ids::Revision;

/// How a command ended. The numbers are part of the log format; see `docs/formats/entry.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ReplyStatus {
    /// Done.
    Ok = 0,
    /// The key does not exist; nothing was changed.
    NotFound = 1,
    /// A condition did not hold; nothing was changed.
    ConditionFalse = 2,
    /// The key holds another type than the command works on.
    WrongType = 3,
    /// The value is not a number.
    NotANumber = 4,
    /// The command was executed earlier; its answer is no longer kept.
    ExecutedForgotten = 5,
    /// The session of the command was forgotten; nothing was executed.
    SessionExpired = 6,
    /// The result would be over the largest or under the smallest integer.
    OutOfRange = 7,
    /// The commands before it have made the entry do all that an entry may; nothing was changed,
    /// another entry can.
    TryAgain = 8,
    /// The body is not laid out as the opcode says.
    Malformed = 16,
    /// This version of the state machine does not execute the opcode.
    UnknownOpcode = 17,
    /// A flag is not one of the opcode's.
    UnknownFlags = 18,
    /// The key is empty.
    KeyEmpty = 19,
    /// The key is over the replicated limit.
    KeyTooLong = 20,
    /// The value is over the replicated limit.
    ValueTooLarge = 21,
    /// The user may not do this.
    Forbidden = 22,
}

impl ReplyStatus {
    const ALL: [Self; 16] = [
        Self::Ok,
        Self::NotFound,
        Self::ConditionFalse,
        Self::WrongType,
        Self::NotANumber,
        Self::ExecutedForgotten,
        Self::SessionExpired,
        Self::OutOfRange,
        Self::TryAgain,
        Self::Malformed,
        Self::UnknownOpcode,
        Self::UnknownFlags,
        Self::KeyEmpty,
        Self::KeyTooLong,
        Self::ValueTooLarge,
        Self::Forbidden,
    ];

    /// The number of the status in the formats.
    pub const fn get(self) -> u8 {
        self as u8
    }

    /// The status of a number, if it is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.get() == number)
    }

    /// Whether the command was refused for what it is, so that sending it again cannot help.
    pub const fn is_refusal(self) -> bool {
        self.get() >= Self::Malformed.get()
    }
}

/// The answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandReply {
    /// How the command ended.
    pub status: ReplyStatus,
    /// The revision of the key after the command; [`Revision::ABSENT`] when there is none to tell.
    pub revision: Revision,
    /// What the command answers beside its status; often empty.
    pub value: Bytes,
}

impl CommandReply {
    /// A reply without revision and value.
    pub const fn of(status: ReplyStatus) -> Self {
        Self {
            status,
            revision: Revision::ABSENT,
            value: Bytes::new(),
        }
    }

    /// A success at `revision`, without value.
    pub const fn done(revision: Revision) -> Self {
        Self {
            status: ReplyStatus::Ok,
            revision,
            value: Bytes::new(),
        }
    }
}

const REPLIES_VERSION: u8 = 1;
const REPLY_BYTES_MIN: usize = 2;

/// The revision is that of the reply before it, plus one for each reply between them.
const SHAPE_REVISION_FOLLOWS: u8 = 1;
/// The revision is written out.
const SHAPE_REVISION_GIVEN: u8 = 2;
/// A value is written out.
const SHAPE_VALUE: u8 = 4;

/// Appends a list of replies to `out`.
pub fn encode_replies(replies: &[CommandReply], out: &mut BytesMut) {
    out.reserve(5 + 8 + replies.len() * REPLY_BYTES_MIN);
    out.put_u8(REPLIES_VERSION);
    out.put_u32(length_u32(replies.len()));
    let mut expected = Revision::ABSENT;
    for reply in replies {
        let revision_shape = if reply.revision == Revision::ABSENT {
            0
        } else if reply.revision == expected {
            SHAPE_REVISION_FOLLOWS
        } else {
            expected = reply.revision;
            SHAPE_REVISION_GIVEN
        };
        let value_shape = if reply.value.is_empty() {
            0
        } else {
            SHAPE_VALUE
        };
        out.put_slice(&[revision_shape | value_shape, reply.status.get()]);
        if revision_shape == SHAPE_REVISION_GIVEN {
            out.put_u64(reply.revision.get());
        }
        if value_shape != 0 {
            out.put_u32(length_u32(reply.value.len()));
            out.put_slice(&reply.value);
        }
        expected = Revision::new(expected.get().wrapping_add(1));
    }
}

/// Reads a list of replies that takes up all of `bytes`; values share its memory.
pub fn decode_replies(bytes: &Bytes) -> Result<Vec<CommandReply>, DecodeError> {
    let mut reader = SliceReader::new(bytes, "reply list");
    let replies = read_replies(&mut reader, bytes)?;
    reader.finish()?;
    Ok(replies)
}

/// Reads a list of replies from `reader`, which reads `whole`.
pub(crate) fn read_replies(
    reader: &mut SliceReader<'_>,
    whole: &Bytes,
) -> Result<Vec<CommandReply>, DecodeError> {
    let version = reader.u8()?;
    if version != REPLIES_VERSION {
        return Err(DecodeError::Version {
            what: "reply list",
            version,
        });
    }
    let count = reader.length()?;
    if count > reader.remaining() / REPLY_BYTES_MIN {
        return Err(reader.malformed());
    }
    let mut replies = Vec::with_capacity(count);
    let mut expected = 0_u64;
    for _ in 0..count {
        let [shape, status] = reader.array()?;
        let status = ReplyStatus::from_number(status).ok_or(reader.malformed())?;
        let revision = match shape & !SHAPE_VALUE {
            0 => 0,
            SHAPE_REVISION_FOLLOWS => expected,
            SHAPE_REVISION_GIVEN => {
                expected = reader.u64()?;
                expected
            }
            _ => return Err(reader.malformed()),
        };
        let value = if shape & SHAPE_VALUE == 0 {
            Bytes::new()
        } else {
            let value_bytes = reader.length()?;
            shared(whole, reader.take(value_bytes)?)
        };
        replies.push(CommandReply {
            status,
            revision: Revision::new(revision),
            value,
        });
        expected = expected.wrapping_add(1);
    }
    Ok(replies)
}
