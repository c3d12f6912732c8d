//! What replicas say to each other: the envelope around every peer message and the bodies of the
//! messages of Raft. Layout: `docs/formats/peer.md`, part 2.
//!
//! The envelope is public because the node puts messages of its own (kinds 64 and above) into the
//! same connections. Bodies of Raft messages stay inside the crate: they mirror openraft's
//! requests field by field, but in a layout of ours, so that an openraft upgrade never changes
//! what old and new nodes say to each other.

mod append;
mod election;
mod read;
mod snapshot;

use bytes::{BufMut, Bytes, BytesMut};
use kelp_seams::WallMillis;

use crate::codec::{CodecError, Reader};
use crate::model::{GroupId, NodeId};
use crate::type_config::{self, LeaderId, LogId, Vote};

pub(crate) use append::{decode_append, decode_append_reply, encode_append, encode_append_reply};
pub(crate) use election::{
    decode_transfer, decode_transfer_reply, decode_vote, decode_vote_reply, encode_transfer,
    encode_transfer_reply, encode_vote, encode_vote_reply,
};
pub(crate) use read::{ReadIndexReply, decode_read_reply, encode_read_reply};
pub(crate) use snapshot::{
    BEGIN_BYTES_MAX, CHUNK_BYTES_MAX, Meta, Position, SnapshotBegin, SnapshotChunk, SnapshotReply,
    TransferId, decode_begin, decode_chunk, decode_finish, decode_snapshot_reply, encode_begin,
    encode_chunk, encode_finish, encode_snapshot_reply,
};

/// Version of the envelope and of all bodies.
pub const PEER_MESSAGE_VERSION: u8 = 1;

/// Kinds from here on belong to the node, below it to this crate.
pub const NODE_KIND_FIRST: u8 = 64;

/// Bytes before the body of a request.
const REQUEST_HEADER_BYTES: usize = 1 + 1 + 4;
/// Bytes before the body of a reply.
const REPLY_HEADER_BYTES: usize = 1 + 1 + 8;

/// Raft's kinds of peer message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RaftKind {
    Append = 1,
    Vote = 2,
    PreVote = 3,
    Transfer = 4,
    ReadIndex = 5,
    SnapshotBegin = 6,
    SnapshotChunk = 7,
    SnapshotFinish = 8,
}

impl RaftKind {
    pub(crate) fn from_u8(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Append,
            2 => Self::Vote,
            3 => Self::PreVote,
            4 => Self::Transfer,
            5 => Self::ReadIndex,
            6 => Self::SnapshotBegin,
            7 => Self::SnapshotChunk,
            8 => Self::SnapshotFinish,
            _ => return None,
        })
    }
}

/// Bytes that are not a peer message of a version that this node knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("peer message cannot be read: {0}")]
pub struct EnvelopeError(String);

impl From<CodecError> for EnvelopeError {
    fn from(error: CodecError) -> Self {
        Self(error.to_string())
    }
}

/// The envelope of a request between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRequest {
    /// What the body is; below [`NODE_KIND_FIRST`] Raft's.
    pub kind: u8,
    /// The Raft group that it is about.
    pub group: GroupId,
    /// The message itself.
    pub body: Bytes,
}

impl PeerRequest {
    /// Encodes the envelope with its body, which is copied.
    pub fn encode(&self) -> Bytes {
        let mut out = request_header(self.kind, self.group, self.body.len());
        out.put_slice(&self.body);
        out.freeze()
    }

    /// Decodes an envelope; the body shares `input`.
    pub fn decode(input: Bytes) -> Result<Self, EnvelopeError> {
        let mut reader = Reader::new(input);
        check_version(reader.u8("version")?)?;
        let kind = reader.u8("kind")?;
        let group = GroupId::new(reader.u32("group")?);
        Ok(Self {
            kind,
            group,
            body: reader.rest(),
        })
    }
}

/// The envelope of a reply between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerReply {
    /// The kind of the request that it answers.
    pub kind: u8,
    /// The replier's wall clock when it replied.
    pub wall: WallMillis,
    /// The message itself.
    pub body: Bytes,
}

impl PeerReply {
    /// Encodes the envelope with its body, which is copied.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(REPLY_HEADER_BYTES + self.body.len());
        out.put_u8(PEER_MESSAGE_VERSION);
        out.put_u8(self.kind);
        out.put_u64(self.wall.get());
        out.put_slice(&self.body);
        out.freeze()
    }

    /// Decodes an envelope; the body shares `input`.
    pub fn decode(input: Bytes) -> Result<Self, EnvelopeError> {
        let mut reader = Reader::new(input);
        check_version(reader.u8("version")?)?;
        let kind = reader.u8("kind")?;
        let wall = WallMillis::new(reader.u64("wall clock")?);
        Ok(Self {
            kind,
            wall,
            body: reader.rest(),
        })
    }
}

fn check_version(version: u8) -> Result<(), CodecError> {
    if version == PEER_MESSAGE_VERSION {
        return Ok(());
    }
    Err(CodecError::Undefined {
        field: "version",
        value: u64::from(version),
    })
}

/// Starts a request whose body of about `body_bytes` the caller appends.
pub(crate) fn request_header(kind: u8, group: GroupId, body_bytes: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(REQUEST_HEADER_BYTES + body_bytes);
    out.put_u8(PEER_MESSAGE_VERSION);
    out.put_u8(kind);
    out.put_u32(group.get());
    out
}

/// Bytes of an encoded vote.
const VOTE_BYTES: usize = 8 + 2 + 1;
/// Bytes of an encoded log id that is present.
const LOG_ID_BYTES: usize = 1 + 8 + 2 + 8;

pub(crate) fn put_vote(out: &mut BytesMut, vote: &Vote) {
    put_leader(out, &vote.leader_id);
    out.put_u8(u8::from(vote.committed));
}

pub(crate) fn read_vote(reader: &mut Reader) -> Result<Vote, CodecError> {
    let leader_id = read_leader(reader)?;
    let committed = reader.flag("vote committed")?;
    Ok(Vote {
        leader_id,
        committed,
    })
}

fn put_leader(out: &mut BytesMut, leader: &LeaderId) {
    out.put_u64(leader.term);
    out.put_u16(type_config::node_of(leader.node_id).get());
}

fn read_leader(reader: &mut Reader) -> Result<LeaderId, CodecError> {
    let term = reader.u64("term")?;
    let node = NodeId::new(reader.u16("leader")?);
    Ok(LeaderId {
        term,
        node_id: type_config::raft_node(node),
    })
}

fn put_log_id(out: &mut BytesMut, id: &LogId) {
    put_leader(out, &id.leader_id);
    out.put_u64(id.index);
}

fn read_log_id(reader: &mut Reader) -> Result<LogId, CodecError> {
    let leader = read_leader(reader)?;
    Ok(LogId::new(leader, reader.u64("log index")?))
}

fn put_optional_log_id(out: &mut BytesMut, id: Option<&LogId>) {
    out.put_u8(u8::from(id.is_some()));
    if let Some(id) = id {
        put_log_id(out, id);
    }
}

fn read_optional_log_id(reader: &mut Reader) -> Result<Option<LogId>, CodecError> {
    if reader.flag("log id present")? {
        read_log_id(reader).map(Some)
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
