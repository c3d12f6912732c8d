//! What became of the sub-batches of an entry.
//!
//! A node learns from the outcome whether its commands were executed by this entry, by an earlier
//! one, or not at all; `docs/formats/entry.md` draws the bytes that the peer link carries and the
//! chain hash covers.

use bytes::{BufMut, Bytes, BytesMut};

use super::LogIndex;
use super::codec::{DecodeError, SliceReader, length_u32};
use super::ids::{BatchNumber, Term};
use super::reply::{CommandReply, encode_replies, read_replies};

/// What became of one sub-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubBatchOutcome {
    /// Executed by this entry; one reply per command.
    Executed(Vec<CommandReply>),
    /// Executed by an earlier entry; these are the replies of that time.
    ExecutedEarlier(Vec<CommandReply>),
    /// Executed by an earlier entry, and below the floor of its node, so that the replies are gone.
    ExecutedForgotten,
    /// Not executed: a batch before it is missing.
    Gap {
        /// The batch that would be executed next.
        expected: BatchNumber,
    },
    /// Not executed, and never will be: its node has started again since.
    StaleBoot,
}

const KIND_EXECUTED: u8 = 1;
const KIND_EXECUTED_EARLIER: u8 = 2;
const KIND_EXECUTED_FORGOTTEN: u8 = 3;
const KIND_GAP: u8 = 4;
const KIND_STALE_BOOT: u8 = 5;

impl SubBatchOutcome {
    /// Appends the encoded outcome to `out`.
    pub fn encode_into(&self, out: &mut BytesMut) {
        match self {
            Self::Executed(replies) => {
                out.put_u8(KIND_EXECUTED);
                encode_replies(replies, out);
            }
            Self::ExecutedEarlier(replies) => {
                out.put_u8(KIND_EXECUTED_EARLIER);
                encode_replies(replies, out);
            }
            Self::ExecutedForgotten => out.put_u8(KIND_EXECUTED_FORGOTTEN),
            Self::Gap { expected } => {
                out.put_u8(KIND_GAP);
                out.put_u64(expected.get());
            }
            Self::StaleBoot => out.put_u8(KIND_STALE_BOOT),
        }
    }

    /// The encoded outcome.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode_into(&mut out);
        out.freeze()
    }

    /// Reads an outcome that takes up all of `bytes`; values share its memory.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "sub-batch outcome");
        let outcome = Self::read(&mut reader, bytes)?;
        reader.finish()?;
        Ok(outcome)
    }

    fn read(reader: &mut SliceReader<'_>, whole: &Bytes) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            KIND_EXECUTED => Self::Executed(read_replies(reader, whole)?),
            KIND_EXECUTED_EARLIER => Self::ExecutedEarlier(read_replies(reader, whole)?),
            KIND_EXECUTED_FORGOTTEN => Self::ExecutedForgotten,
            KIND_GAP => Self::Gap {
                expected: BatchNumber::new(reader.u64()?),
            },
            KIND_STALE_BOOT => Self::StaleBoot,
            _ => return Err(reader.malformed()),
        })
    }
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryOutcome {
    /// Where the entry stands in the log.
    pub index: LogIndex,
    /// The term in which it was proposed.
    pub term: Term,
    /// One outcome per sub-batch, in the entry's order.
    pub sub_batches: Vec<SubBatchOutcome>,
}

impl EntryOutcome {
    /// The encoded outcome.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u64(self.index.get());
        out.put_u64(self.term.get());
        out.put_u32(length_u32(self.sub_batches.len()));
        for outcome in &self.sub_batches {
            outcome.encode_into(&mut out);
        }
        out.freeze()
    }

    /// Reads an outcome that takes up all of `bytes`; values share its memory.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = SliceReader::new(bytes, "entry outcome");
        let index = LogIndex::new(reader.u64()?);
        let term = Term::new(reader.u64()?);
        let count = reader.length()?;
        if count > reader.remaining() {
            return Err(reader.malformed());
        }
        let mut sub_batches = Vec::with_capacity(count);
        for _ in 0..count {
            sub_batches.push(SubBatchOutcome::read(&mut reader, bytes)?);
        }
        reader.finish()?;
        Ok(Self {
            index,
            term,
            sub_batches,
        })
    }
}
