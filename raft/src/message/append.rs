//! Append entries and its reply: log entries on their way to a follower, or a heartbeat.

use bytes::{BufMut, Bytes, BytesMut};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};

use super::{
    LOG_ID_BYTES, RaftKind, VOTE_BYTES, put_leader, put_optional_log_id, put_vote, read_leader,
    read_optional_log_id, read_vote, request_header,
};
use crate::codec::{CodecError, Reader};
use crate::model::GroupId;
use crate::payload;
use crate::type_config::{LogId, RaftEntry, TypeConfig};

/// Bytes of an entry before its payload: term, leader, index, payload length.
const ENTRY_HEADER_BYTES: usize = 8 + 2 + 8 + 4;

const SUCCESS: u8 = 0;
const PARTIAL: u8 = 1;
const CONFLICT: u8 = 2;
const HIGHER_VOTE: u8 = 3;

/// Encodes a whole append request, envelope included.
///
/// # Panics
///
/// When the entries do not follow the previous log id without a gap: sending them would corrupt
/// the log of the follower.
pub(crate) fn encode_append(group: GroupId, request: &AppendEntriesRequest<TypeConfig>) -> Bytes {
    let payloads: Vec<Bytes> = request
        .entries
        .iter()
        .map(|entry| payload::encode(&entry.payload))
        .collect();
    let entry_bytes: usize = payloads
        .iter()
        .map(|bytes| ENTRY_HEADER_BYTES + bytes.len())
        .sum();
    let body_bytes = VOTE_BYTES + 2 * LOG_ID_BYTES + 4 + entry_bytes;
    let mut out = request_header(RaftKind::Append as u8, group, body_bytes);
    put_vote(&mut out, &request.vote);
    put_optional_log_id(&mut out, request.prev_log_id.as_ref());
    put_optional_log_id(&mut out, request.leader_commit.as_ref());
    out.put_u32(u32::try_from(payloads.len()).expect("entries per request are bounded"));
    let first = next_index(request.prev_log_id.as_ref());
    for (expected, (entry, bytes)) in (first..).zip(request.entries.iter().zip(&payloads)) {
        assert_eq!(
            entry.log_id.index, expected,
            "entries to send must be contiguous"
        );
        put_leader(&mut out, &entry.log_id.leader_id);
        out.put_u64(entry.log_id.index);
        out.put_u32(u32::try_from(bytes.len()).expect("a payload is bounded to a few megabytes"));
        out.put_slice(bytes);
    }
    out.freeze()
}

/// Decodes the body of an append request; payloads share `body`.
pub(crate) fn decode_append(body: Bytes) -> Result<AppendEntriesRequest<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let vote = read_vote(&mut reader)?;
    let prev_log_id = read_optional_log_id(&mut reader)?;
    let leader_commit = read_optional_log_id(&mut reader)?;
    let count = reader.u32("entry count")?;
    let count = usize::try_from(count).map_err(|_| CodecError::TooLarge("entry count"))?;
    if count > reader.remaining() / ENTRY_HEADER_BYTES {
        return Err(CodecError::Truncated("entries"));
    }
    let mut entries = Vec::with_capacity(count);
    let mut expected = next_index(prev_log_id.as_ref());
    for _ in 0..count {
        let leader = read_leader(&mut reader)?;
        let index = reader.u64("log index")?;
        if index != expected {
            return Err(CodecError::Undefined {
                field: "log index",
                value: index,
            });
        }
        expected = index
            .checked_add(1)
            .ok_or(CodecError::TooLarge("log index"))?;
        let bytes = reader.u32("payload length")?;
        let bytes = usize::try_from(bytes).map_err(|_| CodecError::TooLarge("payload"))?;
        let payload = payload::decode(reader.bytes(bytes, "payload")?)?;
        entries.push(RaftEntry {
            log_id: LogId::new(leader, index),
            payload,
        });
    }
    reader.finish()?;
    Ok(AppendEntriesRequest {
        vote,
        prev_log_id,
        entries,
        leader_commit,
    })
}

fn next_index(id: Option<&LogId>) -> u64 {
    id.map_or(0, |id| id.index.saturating_add(1))
}

/// Encodes the body of an append reply.
pub(crate) fn encode_append_reply(reply: &AppendEntriesResponse<TypeConfig>) -> Bytes {
    let mut out = BytesMut::with_capacity(1 + LOG_ID_BYTES);
    match reply {
        AppendEntriesResponse::Success => out.put_u8(SUCCESS),
        AppendEntriesResponse::PartialSuccess(matching) => {
            out.put_u8(PARTIAL);
            put_optional_log_id(&mut out, matching.as_ref());
        }
        AppendEntriesResponse::Conflict => out.put_u8(CONFLICT),
        AppendEntriesResponse::HigherVote(vote) => {
            out.put_u8(HIGHER_VOTE);
            put_vote(&mut out, vote);
        }
    }
    out.freeze()
}

/// Decodes the body of an append reply.
pub(crate) fn decode_append_reply(
    body: Bytes,
) -> Result<AppendEntriesResponse<TypeConfig>, CodecError> {
    let mut reader = Reader::new(body);
    let reply = match reader.u8("append outcome")? {
        SUCCESS => AppendEntriesResponse::Success,
        PARTIAL => AppendEntriesResponse::PartialSuccess(read_optional_log_id(&mut reader)?),
        CONFLICT => AppendEntriesResponse::Conflict,
        HIGHER_VOTE => AppendEntriesResponse::HigherVote(read_vote(&mut reader)?),
        other => {
            let value = u64::from(other);
            return Err(CodecError::Undefined {
                field: "append outcome",
                value,
            });
        }
    };
    reader.finish()?;
    Ok(reply)
}
