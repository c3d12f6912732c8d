//! Votes, pre-votes and leader transfer, and their replies.

use bytes::{BufMut, Bytes, BytesMut};
use openraft::raft::{
    TransferLeaderError, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};

use super::{
    LOG_ID_BYTES, RaftKind, VOTE_BYTES, put_optional_log_id, put_vote, read_optional_log_id,
    read_vote, request_header,
};
use crate::codec::{CodecError, Reader};
use crate::model::{GroupId, NodeId};
use crate::type_config::{TypeConfig, node_of, raft_node};

const ACCEPTED: u8 = 0;
const VOTE_CHANGED: u8 = 1;
const LOG_NOT_FLUSHED: u8 = 2;

/// Encodes a vote or pre-vote request, envelope included.
pub(crate) fn encode_vote(
    group: GroupId,
    kind: RaftKind,
    request: &VoteRequest<TypeConfig>,
) -> Bytes {
    let mut out = request_header(kind as u8, group, VOTE_BYTES + LOG_ID_BYTES + 1);
    put_vote(&mut out, &request.vote);
    put_optional_log_id(&mut out, request.last_log_id.as_ref());
    out.put_u8(u8::from(request.leadership_transfer));
    out.freeze()
}

/// Decodes the body of a vote or pre-vote request.
pub(crate) fn decode_vote(body: Bytes) -> Result<VoteRequest<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let vote = read_vote(&mut reader)?;
    let last_log_id = read_optional_log_id(&mut reader)?;
    let leadership_transfer = reader.flag("leadership transfer")?;
    reader.finish()?;
    Ok(VoteRequest {
        vote,
        last_log_id,
        leadership_transfer,
    })
}

/// Encodes the body of a vote reply.
pub(crate) fn encode_vote_reply(reply: &VoteResponse<TypeConfig>) -> Bytes {
    let mut out = BytesMut::with_capacity(VOTE_BYTES + 1 + LOG_ID_BYTES);
    put_vote(&mut out, &reply.vote);
    out.put_u8(u8::from(reply.vote_granted));
    put_optional_log_id(&mut out, reply.last_log_id.as_ref());
    out.freeze()
}

/// Decodes the body of a vote reply.
pub(crate) fn decode_vote_reply(body: Bytes) -> Result<VoteResponse<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let vote = read_vote(&mut reader)?;
    let vote_granted = reader.flag("vote granted")?;
    let last_log_id = read_optional_log_id(&mut reader)?;
    reader.finish()?;
    Ok(VoteResponse {
        vote,
        vote_granted,
        last_log_id,
    })
}

/// Encodes a transfer request, envelope included.
pub(crate) fn encode_transfer(
    group: GroupId,
    request: &TransferLeaderRequest<TypeConfig>,
) -> Bytes {
    let mut out = request_header(
        RaftKind::Transfer as u8,
        group,
        VOTE_BYTES + 2 + LOG_ID_BYTES,
    );
    put_vote(&mut out, request.from_leader());
    out.put_u16(node_of(*request.to_node_id()).get());
    put_optional_log_id(&mut out, request.last_log_id());
    out.freeze()
}

/// Decodes the body of a transfer request.
pub(crate) fn decode_transfer(
    body: Bytes,
) -> Result<TransferLeaderRequest<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let from = read_vote(&mut reader)?;
    let to = raft_node(NodeId::new(reader.u16("transfer target")?));
    let last_log_id = read_optional_log_id(&mut reader)?;
    reader.finish()?;
    Ok(TransferLeaderRequest::new(from, to, last_log_id))
}

/// Encodes the body of a transfer reply.
pub(crate) fn encode_transfer_reply(reply: &TransferLeaderResponse<TypeConfig>) -> Bytes {
    let mut out = BytesMut::with_capacity(1 + 2 * LOG_ID_BYTES);
    match reply {
        Ok(()) => out.put_u8(ACCEPTED),
        Err(TransferLeaderError::VoteChanged { expected, actual }) => {
            out.put_u8(VOTE_CHANGED);
            put_vote(&mut out, expected);
            put_vote(&mut out, actual);
        }
        Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
            out.put_u8(LOG_NOT_FLUSHED);
            put_optional_log_id(&mut out, expected.as_ref());
            put_optional_log_id(&mut out, actual.as_ref());
        }
    }
    out.freeze()
}

/// Decodes the body of a transfer reply.
pub(crate) fn decode_transfer_reply(
    body: Bytes,
) -> Result<TransferLeaderResponse<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let reply = match reader.u8("transfer outcome")? {
        ACCEPTED => Ok(()),
        VOTE_CHANGED => Err(TransferLeaderError::VoteChanged {
            expected: read_vote(&mut reader)?,
            actual: read_vote(&mut reader)?,
        }),
        LOG_NOT_FLUSHED => Err(TransferLeaderError::LogNotFlushed {
            expected: read_optional_log_id(&mut reader)?,
            actual: read_optional_log_id(&mut reader)?,
        }),
        other => {
            let value = u64::from(other);
            return Err(CodecError::Undefined {
                field: "transfer outcome",
                value,
            });
        }
    };
    reader.finish()?;
    Ok(reply)
}
