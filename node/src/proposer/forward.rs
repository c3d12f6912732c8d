//! The messages of the node: how it hands a sub-batch to the leader's proposer, and how a new node
//! learns that others have a log already.
//!
//! The bytes are drawn in docs/formats/peer.md, part 3. The sub-batch travels exactly as it will
//! stand in the log entry; the answer is what the state machine said of it, or why it never got
//! there.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kelp_raft::{
    EnvelopeError, GroupId, LogIndex, NODE_KIND_FIRST, NodeId, PeerReply, PeerRequest, SubBatch,
    SubBatchOutcome,
};
use kelp_seams::WallMillis;

use super::packer::{HandOverError, HandOverResult};

#[cfg(test)]
mod tests;

/// Kind of a forwarded sub-batch.
pub(crate) const FORWARD: u8 = NODE_KIND_FIRST;

/// Kind of the question whether a node has a log.
pub(crate) const HAS_LOG: u8 = NODE_KIND_FIRST + 1;

const OUTCOME: u8 = 0;
const NOT_LEADER: u8 = 1;
const OVERLOADED: u8 = 2;
const UNKNOWN: u8 = 3;
const UNREADABLE: u8 = 4;

/// Stands for "no leader known"; node ids start at 1.
const NO_NODE: u16 = 0;

/// Bytes that are not a message of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForwardError {
    #[error("malformed forward message: {0}")]
    Malformed(&'static str),
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    #[error("malformed outcome in a forward message")]
    Outcome(#[from] kelp_raft::DecodeError),
}

pub(crate) fn encode_request(group: GroupId, sub_batch: &SubBatch) -> Bytes {
    PeerRequest {
        kind: FORWARD,
        group,
        body: sub_batch.encode(),
    }
    .encode()
}

/// Why the body of a forward request is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// Another version wrote it: its sender is to be told.
    #[error("unreadable sub-batch")]
    Unreadable(#[from] kelp_raft::DecodeError),
    /// The sender speaks for somebody else: it is to be cut off.
    #[error("the sub-batch is another node's")]
    OfAnother,
}

/// Decodes the body of a forward request and checks that it speaks for its sender only.
pub(crate) fn decode_request(from: NodeId, body: &Bytes) -> Result<SubBatch, RequestError> {
    let sub_batch = SubBatch::decode(body)?;
    if sub_batch.id.node != from {
        return Err(RequestError::OfAnother);
    }
    sub_batch.check_commands()?;
    Ok(sub_batch)
}

pub(crate) fn encode_reply(wall: WallMillis, result: &HandOverResult) -> Bytes {
    let mut body = BytesMut::new();
    match result {
        Ok((outcome, index)) => {
            body.put_u8(OUTCOME);
            body.put_u64(index.get());
            outcome.encode_into(&mut body);
        }
        Err(HandOverError::NotLeader { leader }) => {
            body.put_u8(NOT_LEADER);
            body.put_u16(leader.map_or(NO_NODE, NodeId::get));
        }
        Err(HandOverError::Overloaded) => body.put_u8(OVERLOADED),
        Err(HandOverError::Unknown) => body.put_u8(UNKNOWN),
        Err(HandOverError::Unreadable) => body.put_u8(UNREADABLE),
    }
    PeerReply {
        kind: FORWARD,
        wall,
        body: body.freeze(),
    }
    .encode()
}

/// The question whether a node has a log; it has no body.
pub(crate) fn encode_has_log(group: GroupId) -> Bytes {
    PeerRequest {
        kind: HAS_LOG,
        group,
        body: Bytes::new(),
    }
    .encode()
}

pub(crate) fn encode_has_log_reply(wall: WallMillis, has_log: bool) -> Bytes {
    PeerReply {
        kind: HAS_LOG,
        wall,
        body: Bytes::copy_from_slice(&[u8::from(has_log)]),
    }
    .encode()
}

pub(crate) fn decode_has_log_reply(reply: Bytes) -> Result<bool, ForwardError> {
    let PeerReply { kind, body, .. } = PeerReply::decode(reply)?;
    match (kind, &body[..]) {
        (HAS_LOG, [0]) => Ok(false),
        (HAS_LOG, [1]) => Ok(true),
        _ => Err(ForwardError::Malformed(
            "the reply does not say whether there is a log",
        )),
    }
}

/// Decodes a reply; the inner result is the leader's answer.
pub(crate) fn decode_reply(reply: Bytes) -> Result<HandOverResult, ForwardError> {
    let PeerReply { kind, mut body, .. } = PeerReply::decode(reply)?;
    if kind != FORWARD {
        return Err(ForwardError::Malformed("the reply is of another kind"));
    }
    let result = match body
        .try_get_u8()
        .map_err(|_| ForwardError::Malformed("the reply is empty"))?
    {
        OUTCOME => {
            let index = body
                .try_get_u64()
                .map_err(|_| ForwardError::Malformed("the outcome has no index"))?;
            return Ok(Ok((SubBatchOutcome::decode(&body)?, LogIndex::new(index))));
        }
        NOT_LEADER => {
            let leader = body
                .try_get_u16()
                .map_err(|_| ForwardError::Malformed("the refusal names no leader"))?;
            Err(HandOverError::NotLeader {
                leader: (leader != NO_NODE).then(|| NodeId::new(leader)),
            })
        }
        OVERLOADED => Err(HandOverError::Overloaded),
        UNKNOWN => Err(HandOverError::Unknown),
        UNREADABLE => Err(HandOverError::Unreadable),
        _ => return Err(ForwardError::Malformed("the reply has an unknown shape")),
    };
    if body.has_remaining() {
        return Err(ForwardError::Malformed("bytes follow the reply"));
    }
    Ok(result)
}
