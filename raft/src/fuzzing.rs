//! Doors for fuzzers: each feeds bytes to decoders of this crate that are not public. They must not
//! panic nor ask for memory out of proportion, and what they accept must come back from its own
//! encoding. Not part of the promised interface.

use bytes::Bytes;

use crate::codec::CodecError;
use crate::message::{self, PeerReply, PeerRequest, RaftKind};
use crate::state::{decode_directory, decode_revision_base};
use crate::{payload, vote_record};

/// Decodes a request between nodes, envelope and body.
pub fn peer_request(bytes: &Bytes) {
    let Ok(request) = PeerRequest::decode(bytes.clone()) else {
        return;
    };
    assert_eq!(request.encode(), bytes);
    let PeerRequest { group, body, .. } = request;
    match RaftKind::from_u8(request.kind) {
        Some(RaftKind::Append) => check(body, message::decode_append, |append| {
            body_of(message::encode_append(group, append))
        }),
        Some(kind @ (RaftKind::Vote | RaftKind::PreVote)) => {
            check(body, message::decode_vote, |ask| {
                body_of(message::encode_vote(group, kind, ask))
            });
        }
        Some(RaftKind::Transfer) => check(body, message::decode_transfer, |ask| {
            body_of(message::encode_transfer(group, ask))
        }),
        Some(RaftKind::SnapshotBegin) => check(body, message::decode_begin, |begin| {
            body_of(message::encode_begin(group, begin))
        }),
        Some(RaftKind::SnapshotChunk) => check(body, message::decode_chunk, |chunk| {
            body_of(message::encode_chunk(group, chunk))
        }),
        Some(RaftKind::SnapshotFinish) => check(body, message::decode_finish, |transfer| {
            body_of(message::encode_finish(group, *transfer))
        }),
        // The body of a read index request is empty.
        Some(RaftKind::ReadIndex) | None => {}
    }
}

/// Decodes a reply between nodes, envelope and body.
pub fn peer_reply(bytes: &Bytes) {
    let Ok(reply) = PeerReply::decode(bytes.clone()) else {
        return;
    };
    assert_eq!(reply.encode(), bytes);
    let body = reply.body;
    match RaftKind::from_u8(reply.kind) {
        Some(RaftKind::Append) => check(
            body,
            message::decode_append_reply,
            message::encode_append_reply,
        ),
        Some(RaftKind::Vote | RaftKind::PreVote) => {
            check(body, message::decode_vote_reply, message::encode_vote_reply);
        }
        Some(RaftKind::Transfer) => check(
            body,
            message::decode_transfer_reply,
            message::encode_transfer_reply,
        ),
        Some(RaftKind::ReadIndex) => {
            check(body, message::decode_read_reply, message::encode_read_reply);
        }
        Some(RaftKind::SnapshotBegin | RaftKind::SnapshotChunk | RaftKind::SnapshotFinish) => {
            check(
                body,
                message::decode_snapshot_reply,
                message::encode_snapshot_reply,
            );
        }
        None => {}
    }
}

/// Decodes what the log holds under an index.
pub fn log_payload(bytes: &Bytes) {
    check(bytes.clone(), payload::decode, payload::encode);
}

/// Decodes the vote that the log keeps.
pub fn vote_record(bytes: &Bytes) {
    check(bytes.clone(), vote_record::decode, vote_record::encode);
}

/// Decodes the records of the state that only this crate reads.
pub fn state_records(bytes: &[u8]) {
    let _ = decode_directory(bytes);
    let _ = decode_revision_base(bytes);
}

/// Checks that what `bytes` mean, if anything, survives being written and read again.
fn check<T>(
    bytes: Bytes,
    decode: impl Fn(Bytes) -> Result<T, CodecError>,
    encode: impl Fn(&T) -> Bytes,
) {
    if let Ok(value) = decode(bytes) {
        let encoded = encode(&value);
        let again = decode(encoded.clone()).map(|value| encode(&value));
        assert_eq!(again, Ok(encoded));
    }
}

fn body_of(request: Bytes) -> Bytes {
    PeerRequest::decode(request)
        .expect("it was encoded just now")
        .body
}
