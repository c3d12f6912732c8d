//! A snapshot on its way to a node whose next entry the leader has discarded.
//!
//! Three requests, begin, chunk and finish, and one kind of reply to all of them. The receiver
//! says where it is; the sender goes on there, also after a broken connection.

use bytes::{BufMut, Bytes, BytesMut};
use openraft::SnapshotMeta;
use openraft::type_config::alias::SnapshotMetaOf;

use super::{
    LOG_ID_BYTES, RaftKind, VOTE_BYTES, put_log_id, put_vote, read_log_id, read_vote,
    request_header,
};
use crate::codec::{CodecError, Reader};
use crate::model::GroupId;
use crate::payload;
use crate::type_config::{LogPayload, StoredMembership, TypeConfig, Vote};

/// Longest description of a state, as the engine bounds it.
const DESCRIPTION_BYTES_MAX: usize = 16 << 20;

/// Longest begin request: the frame of the peer links, less its own head and the envelope's.
pub(crate) const BEGIN_BYTES_MAX: usize = (17 << 20) - 64;

/// Most bytes of a file in one chunk. Enough to keep a fast link busy, little enough that sender
/// and receiver hold a transfer in a few megabytes and a slow link shows progress.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Longest text that says why a transfer failed.
const REASON_BYTES_MAX: usize = 512;

const POSITION: u8 = 0;
const VOTE: u8 = 1;
const UNKNOWN: u8 = 2;
const WORKING: u8 = 3;
const FAILED: u8 = 4;

/// The position of a snapshot in the log and its membership.
pub(crate) type Meta = SnapshotMetaOf<TypeConfig>;

/// Announces a snapshot, or takes up the transfer of one that broke off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotBegin {
    /// The leader's vote.
    pub(crate) vote: Vote,
    /// What the snapshot is; both of its log ids are present.
    pub(crate) meta: Meta,
    /// The engine's description of the files.
    pub(crate) description: Bytes,
}

/// A place in the files of a snapshot, which are sent one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The file; their count when all are there.
    pub(crate) file: u32,
    /// Bytes of it that come before.
    pub(crate) offset: u64,
}

/// Names a transfer to its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransferId(pub(crate) u64);

/// A piece of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotChunk {
    /// The transfer, as the receiver named it.
    pub(crate) transfer: TransferId,
    /// Where the piece starts.
    pub(crate) at: Position,
    /// The piece.
    pub(crate) bytes: Bytes,
}

/// What the receiver answers to each of the three requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SnapshotReply {
    /// Send from here on; when that is the end of the last file, finish.
    Position(TransferId, Position),
    /// The receiver's vote. To a finish: the snapshot is installed or not needed, unless the vote
    /// is newer than the sender's. To the others: it is newer.
    Vote(Vote),
    /// The transfer is not known, or no longer: begin again.
    Unknown,
    /// Files are being checked or installed: ask again.
    Working,
    /// The transfer failed and is forgotten, for this reason.
    Failed(String),
}

/// Encodes a whole begin request, envelope included.
///
/// # Panics
///
/// When a log id of `meta` is missing: a snapshot always covers the first membership.
pub(crate) fn encode_begin(group: GroupId, begin: &SnapshotBegin) -> Bytes {
    let membership = begin.meta.last_membership.membership().clone();
    let membership = payload::encode(&LogPayload::Membership(membership));
    let body_bytes =
        VOTE_BYTES + 2 * LOG_ID_BYTES + 4 + membership.len() + 4 + begin.description.len();
    let mut out = request_header(RaftKind::SnapshotBegin as u8, group, body_bytes);
    put_vote(&mut out, &begin.vote);
    let last = begin.meta.last_log_id.as_ref();
    put_log_id(&mut out, last.expect("a snapshot covers an entry"));
    let position = begin.meta.last_membership.log_id().as_ref();
    put_log_id(&mut out, position.expect("a snapshot covers a membership"));
    put_bytes(&mut out, &membership);
    put_bytes(&mut out, &begin.description);
    out.freeze()
}

/// Decodes the body of a begin request; the description shares `body`.
pub(crate) fn decode_begin(body: Bytes) -> Result<SnapshotBegin, CodecError> {
    let mut reader = Reader::new(body);
    let vote = read_vote(&mut reader)?;
    let last = read_log_id(&mut reader)?;
    let position = read_log_id(&mut reader)?;
    let membership = read_bytes(&mut reader, "membership")?;
    let membership = payload::decode_membership(membership)?;
    let description = read_bytes(&mut reader, "description")?;
    if description.len() > DESCRIPTION_BYTES_MAX {
        return Err(CodecError::TooLarge("description"));
    }
    reader.finish()?;
    Ok(SnapshotBegin {
        vote,
        meta: SnapshotMeta {
            last_log_id: Some(last),
            last_membership: StoredMembership::new(Some(position), membership),
        },
        description,
    })
}

/// Encodes a whole chunk, envelope included.
pub(crate) fn encode_chunk(group: GroupId, chunk: &SnapshotChunk) -> Bytes {
    let body_bytes = 8 + 4 + 8 + chunk.bytes.len();
    let mut out = request_header(RaftKind::SnapshotChunk as u8, group, body_bytes);
    out.put_u64(chunk.transfer.0);
    put_position(&mut out, chunk.at);
    out.put_slice(&chunk.bytes);
    out.freeze()
}

/// Decodes the body of a chunk; its bytes share `body`.
pub(crate) fn decode_chunk(body: Bytes) -> Result<SnapshotChunk, CodecError> {
    let mut reader = Reader::new(body);
    let transfer = TransferId(reader.u64("transfer")?);
    let at = read_position(&mut reader)?;
    let bytes = reader.rest();
    if bytes.is_empty() {
        return Err(CodecError::Truncated("chunk"));
    }
    if bytes.len() > CHUNK_BYTES_MAX {
        return Err(CodecError::TooLarge("chunk"));
    }
    Ok(SnapshotChunk {
        transfer,
        at,
        bytes,
    })
}

/// Encodes a whole finish request, envelope included.
pub(crate) fn encode_finish(group: GroupId, transfer: TransferId) -> Bytes {
    let mut out = request_header(RaftKind::SnapshotFinish as u8, group, 8);
    out.put_u64(transfer.0);
    out.freeze()
}

/// Decodes the body of a finish request.
pub(crate) fn decode_finish(body: Bytes) -> Result<TransferId, CodecError> {
    let mut reader = Reader::new(body);
    let transfer = TransferId(reader.u64("transfer")?);
    reader.finish()?;
    Ok(transfer)
}

/// Encodes the body of a reply; a long reason is cut.
pub(crate) fn encode_snapshot_reply(reply: &SnapshotReply) -> Bytes {
    let mut out = BytesMut::with_capacity(32);
    match reply {
        SnapshotReply::Position(transfer, at) => {
            out.put_u8(POSITION);
            out.put_u64(transfer.0);
            put_position(&mut out, *at);
        }
        SnapshotReply::Vote(vote) => {
            out.put_u8(VOTE);
            put_vote(&mut out, vote);
        }
        SnapshotReply::Unknown => out.put_u8(UNKNOWN),
        SnapshotReply::Working => out.put_u8(WORKING),
        SnapshotReply::Failed(reason) => {
            out.put_u8(FAILED);
            let end = reason.floor_char_boundary(REASON_BYTES_MAX);
            out.put_slice(&reason.as_bytes()[..end]);
        }
    }
    out.freeze()
}

/// Decodes the body of a reply.
pub(crate) fn decode_snapshot_reply(body: Bytes) -> Result<SnapshotReply, CodecError> {
    let mut reader = Reader::new(body);
    let reply = match reader.u8("snapshot outcome")? {
        POSITION => {
            let transfer = TransferId(reader.u64("transfer")?);
            SnapshotReply::Position(transfer, read_position(&mut reader)?)
        }
        VOTE => SnapshotReply::Vote(read_vote(&mut reader)?),
        UNKNOWN => SnapshotReply::Unknown,
        WORKING => SnapshotReply::Working,
        FAILED => {
            let count = reader.remaining();
            if count > REASON_BYTES_MAX {
                return Err(CodecError::TooLarge("reason"));
            }
            let bytes = reader.bytes(count, "reason")?;
            let text = std::str::from_utf8(&bytes).map_err(|_| CodecError::NotText("reason"))?;
            SnapshotReply::Failed(text.to_owned())
        }
        other => {
            return Err(CodecError::Undefined {
                field: "snapshot outcome",
                value: u64::from(other),
            });
        }
    };
    reader.finish()?;
    Ok(reply)
}

fn put_position(out: &mut BytesMut, at: Position) {
    out.put_u32(at.file);
    out.put_u64(at.offset);
}

fn read_position(reader: &mut Reader) -> Result<Position, CodecError> {
    Ok(Position {
        file: reader.u32("file")?,
        offset: reader.u64("offset")?,
    })
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).expect("both parts are bounded to a few megabytes"));
    out.put_slice(bytes);
}

fn read_bytes(reader: &mut Reader, field: &'static str) -> Result<Bytes, CodecError> {
    let count = reader.u32(field)?;
    let count = usize::try_from(count).map_err(|_| CodecError::TooLarge(field))?;
    reader.bytes(count, field)
}
