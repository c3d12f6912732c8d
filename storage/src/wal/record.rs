//! What the records of the write-ahead log say.
//!
//! Pure encoding and decoding; format page: docs/formats/wal.md.

use bytes::Bytes;

use crate::codec::{Reader, Small};
use crate::log::{EntryTerm, LogIndex, LogNumber, LogPosition};

/// The longest vote: openraft's needs 17 bytes.
pub(crate) const VOTE_BYTES_MAX: usize = 64;
/// What precedes the entry's bytes in an append record.
pub(crate) const APPEND_PREFIX_BYTES: usize = 32;

const KIND_APPEND: u8 = 1;
const KIND_TRUNCATE_SUFFIX: u8 = 2;
const KIND_DISCARD_PREFIX: u8 = 3;
const KIND_PUT_VOTE: u8 = 4;
const KIND_PUT_COMMITTED: u8 = 5;
const KIND_HEAD: u8 = 6;

/// Room for every record but an append's payload: a head of 8 + 9 + 64 + 5 * 25 bytes is longest.
pub(crate) type EncodedRecord = Small<256>;

/// A vote with the order that storage gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredVote {
    /// 1 for the first vote of a log, then one more for each.
    pub(crate) sequence: u64,
    pub(crate) vote: Bytes,
}

/// All that is known of a log at one point of the write-ahead log, but its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) vote: Option<StoredVote>,
    pub(crate) committed: Option<LogPosition>,
    pub(crate) purged: Option<LogPosition>,
    /// The first and the last entry present.
    pub(crate) entries: Option<(LogPosition, LogPosition)>,
}

/// A change of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Append {
        position: LogPosition,
        payload: &'a [u8],
    },
    TruncateSuffix {
        from: LogIndex,
    },
    DiscardPrefix {
        through: LogPosition,
    },
    PutVote(StoredVote),
    PutCommitted(LogPosition),
    Head(Head),
}

/// What is encoded before an entry's payload.
pub(crate) fn append_prefix(log: LogNumber, position: LogPosition) -> EncodedRecord {
    let mut out = start(KIND_APPEND, log);
    push_position(&mut out, position);
    out
}

impl Record<'_> {
    /// The record without the payload of an append.
    pub(crate) fn encode(&self, log: LogNumber) -> EncodedRecord {
        match self {
            Self::Append { position, .. } => append_prefix(log, *position),
            Self::TruncateSuffix { from } => {
                let mut out = start(KIND_TRUNCATE_SUFFIX, log);
                out.push_u64(from.get());
                out
            }
            Self::DiscardPrefix { through } => {
                let mut out = start(KIND_DISCARD_PREFIX, log);
                push_position(&mut out, *through);
                out
            }
            Self::PutVote(vote) => {
                let mut out = start(KIND_PUT_VOTE, log);
                push_vote(&mut out, vote);
                out
            }
            Self::PutCommitted(committed) => {
                let mut out = start(KIND_PUT_COMMITTED, log);
                push_position(&mut out, *committed);
                out
            }
            Self::Head(head) => encode_head(log, head),
        }
    }
}

impl<'a> Record<'a> {
    /// The log and the change that a payload describes; none when it is no record.
    pub(crate) fn decode(payload: &'a [u8]) -> Option<(LogNumber, Self)> {
        let mut reader = Reader::new(payload);
        let kind = reader.u8()?;
        if reader.array()? != [0; 3] {
            return None;
        }
        let log = LogNumber::new(reader.u32()?);
        let record = match kind {
            KIND_APPEND => {
                let position = take_position(&mut reader)?;
                return Some((
                    log,
                    Self::Append {
                        position,
                        payload: reader.rest(),
                    },
                ));
            }
            KIND_TRUNCATE_SUFFIX => Self::TruncateSuffix {
                from: LogIndex::new(reader.u64()?),
            },
            KIND_DISCARD_PREFIX => Self::DiscardPrefix {
                through: take_position(&mut reader)?,
            },
            KIND_PUT_VOTE => Self::PutVote(take_vote(&mut reader)?),
            KIND_PUT_COMMITTED => Self::PutCommitted(take_position(&mut reader)?),
            KIND_HEAD => Self::Head(decode_head(&mut reader)?),
            _ => return None,
        };
        reader.rest().is_empty().then_some((log, record))
    }
}

fn start(kind: u8, log: LogNumber) -> EncodedRecord {
    let mut out = EncodedRecord::new();
    out.push(&[kind, 0, 0, 0]);
    out.push_u32(log.get());
    out
}

fn push_position(out: &mut EncodedRecord, position: LogPosition) {
    out.push_u64(position.index.get());
    out.push_u64(position.term.term);
    out.push_u64(position.term.leader);
}

fn take_position(reader: &mut Reader<'_>) -> Option<LogPosition> {
    let index = LogIndex::new(reader.u64()?);
    let term = EntryTerm {
        term: reader.u64()?,
        leader: reader.u64()?,
    };
    // The last index of the range would have no successor.
    (index.get() < u64::MAX).then_some(LogPosition { index, term })
}

fn push_vote(out: &mut EncodedRecord, vote: &StoredVote) {
    out.push_u64(vote.sequence);
    out.push_u8(u8::try_from(vote.vote.len()).expect("put_vote checks the length"));
    out.push(&vote.vote);
}

fn take_vote(reader: &mut Reader<'_>) -> Option<StoredVote> {
    let sequence = reader.u64()?;
    let length = usize::from(reader.u8()?);
    // The last number of the range would have no successor.
    if sequence == 0 || sequence == u64::MAX || length > VOTE_BYTES_MAX {
        return None;
    }
    Some(StoredVote {
        sequence,
        vote: Bytes::copy_from_slice(reader.take(length)?),
    })
}

fn encode_head(log: LogNumber, head: &Head) -> EncodedRecord {
    let mut out = start(KIND_HEAD, log);
    match &head.vote {
        Some(vote) => {
            out.push_u8(1);
            push_vote(&mut out, vote);
        }
        None => out.push_u8(0),
    }
    let (first, last) = head.entries.unzip();
    for position in [head.committed, head.purged, first, last] {
        match position {
            Some(position) => {
                out.push_u8(1);
                push_position(&mut out, position);
            }
            None => out.push_u8(0),
        }
    }
    out
}

fn decode_head(reader: &mut Reader<'_>) -> Option<Head> {
    let vote = match reader.u8()? {
        0 => None,
        1 => Some(take_vote(reader)?),
        _ => return None,
    };
    let mut positions = [None; 4];
    for position in &mut positions {
        *position = match reader.u8()? {
            0 => None,
            1 => Some(take_position(reader)?),
            _ => return None,
        };
    }
    let [committed, purged, first, last] = positions;
    let entries = match (first, last) {
        (None, None) => None,
        (Some(first), Some(last)) if first.index <= last.index => Some((first, last)),
        _ => return None,
    };
    Some(Head {
        vote,
        committed,
        purged,
        entries,
    })
}

#[cfg(test)]
mod tests;
