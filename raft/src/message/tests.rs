use std::collections::{BTreeMap, BTreeSet};

use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, TransferLeaderError, TransferLeaderRequest,
    VoteRequest, VoteResponse,
};
use proptest::prelude::*;

use super::*;
use crate::golden;
use crate::model::{LogIndex, Term};
use crate::read_index::ReadPoint;
use crate::type_config::{
    EntryBytes, LogPayload, MemberNode, Membership, RaftEntry, StoredMembership, TypeConfig,
};

const GROUP: GroupId = GroupId::new(7);

fn leader(term: u64, node: u64) -> LeaderId {
    LeaderId {
        term,
        node_id: node,
    }
}

fn log_id(term: u64, node: u64, index: u64) -> LogId {
    LogId::new(leader(term, node), index)
}

fn vote(term: u64, node: u64, committed: bool) -> Vote {
    Vote {
        leader_id: leader(term, node),
        committed,
    }
}

fn member(name: &str) -> MemberNode {
    MemberNode {
        name: name.to_owned(),
        peer: format!("{name}:4801"),
        client: format!("{name}:4800"),
        http: format!("{name}:4802"),
    }
}

fn membership() -> Membership {
    let configs = vec![BTreeSet::from([1, 2]), BTreeSet::from([1, 2, 3])];
    let nodes: BTreeMap<u64, MemberNode> = (1..=4)
        .map(|node| (node, member(&format!("n{node}"))))
        .collect();
    Membership::new(configs, nodes).unwrap()
}

fn append() -> AppendEntriesRequest<TypeConfig> {
    let entry = |index, payload| RaftEntry {
        log_id: log_id(3, 2, index),
        payload,
    };
    AppendEntriesRequest {
        vote: vote(3, 2, true),
        prev_log_id: Some(log_id(2, 1, 10)),
        leader_commit: Some(log_id(2, 1, 9)),
        entries: vec![
            entry(11, LogPayload::Blank),
            entry(
                12,
                LogPayload::Normal(EntryBytes(Bytes::from_static(b"\x01entry"))),
            ),
            entry(13, LogPayload::Membership(membership())),
        ],
    }
}

fn body(request: Bytes) -> Bytes {
    PeerRequest::decode(request).unwrap().body
}

#[test]
fn messages_keep_their_bytes() {
    golden::check("peer_append.bin", &encode_append(GROUP, &append()));
    let ask = VoteRequest {
        vote: vote(4, 3, false),
        last_log_id: Some(log_id(3, 2, 13)),
        leadership_transfer: true,
    };
    golden::check("peer_vote.bin", &encode_vote(GROUP, RaftKind::Vote, &ask));
    let transfer = TransferLeaderRequest::new(vote(3, 2, true), 1, Some(log_id(3, 2, 13)));
    golden::check("peer_transfer.bin", &encode_transfer(GROUP, &transfer));
    let point = ReadPoint {
        term: Term::new(3),
        index: LogIndex::new(13),
    };
    let reply = PeerReply {
        kind: RaftKind::ReadIndex as u8,
        wall: WallMillis::new(1_800_000_000_000),
        body: encode_read_reply(&ReadIndexReply::Point(point)),
    };
    golden::check("peer_read_reply.bin", &reply.encode());
}

fn begin() -> SnapshotBegin {
    SnapshotBegin {
        vote: vote(5, 2, true),
        meta: Meta {
            last_log_id: Some(log_id(4, 1, 900)),
            last_membership: StoredMembership::new(Some(log_id(3, 2, 13)), membership()),
        },
        description: Bytes::from_static(b"what the engine says"),
    }
}

fn chunk() -> SnapshotChunk {
    SnapshotChunk {
        transfer: TransferId(0x1122_3344_5566_7788),
        at: Position {
            file: 3,
            offset: 1 << 20,
        },
        bytes: Bytes::from_static(b"bytes of a file"),
    }
}

fn snapshot_replies() -> Vec<SnapshotReply> {
    vec![
        SnapshotReply::Position(chunk().transfer, chunk().at),
        SnapshotReply::Vote(vote(6, 3, false)),
        SnapshotReply::Unknown,
        SnapshotReply::Working,
        SnapshotReply::Failed("the state ends at entry 899".to_owned()),
    ]
}

#[test]
fn messages_of_a_snapshot_keep_their_bytes() {
    golden::check("peer_snapshot_begin.bin", &encode_begin(GROUP, &begin()));
    golden::check("peer_snapshot_chunk.bin", &encode_chunk(GROUP, &chunk()));
    let finish = encode_finish(GROUP, chunk().transfer);
    golden::check("peer_snapshot_finish.bin", &finish);
    let replies: Vec<u8> = snapshot_replies()
        .iter()
        .map(encode_snapshot_reply)
        .flat_map(|reply| {
            let length = u32::try_from(reply.len()).unwrap().to_be_bytes();
            [length.to_vec(), reply.to_vec()].concat()
        })
        .collect();
    golden::check("peer_snapshot_replies.bin", &replies);
}

#[test]
fn messages_of_a_snapshot_survive_the_wire() {
    let encoded = encode_begin(GROUP, &begin());
    assert_eq!(decode_begin(body(encoded)).unwrap(), begin());
    let encoded = encode_chunk(GROUP, &chunk());
    assert_eq!(decode_chunk(body(encoded)).unwrap(), chunk());
    let encoded = encode_finish(GROUP, chunk().transfer);
    assert_eq!(decode_finish(body(encoded)).unwrap(), chunk().transfer);
    for reply in snapshot_replies() {
        let decoded = decode_snapshot_reply(encode_snapshot_reply(&reply));
        assert_eq!(decoded.unwrap(), reply);
    }
    let long = SnapshotReply::Failed("\u{e4}".repeat(400));
    let cut = decode_snapshot_reply(encode_snapshot_reply(&long)).unwrap();
    assert_eq!(cut, SnapshotReply::Failed("\u{e4}".repeat(256)));
}

#[test]
fn a_chunk_without_bytes_or_over_its_limit_is_refused() {
    for (count, error) in [
        (0, CodecError::Truncated("chunk")),
        (CHUNK_BYTES_MAX + 1, CodecError::TooLarge("chunk")),
    ] {
        let wrong = SnapshotChunk {
            bytes: Bytes::from(vec![1; count]),
            ..chunk()
        };
        let decoded = decode_chunk(body(encode_chunk(GROUP, &wrong)));
        assert_eq!(decoded.unwrap_err(), error);
    }
}

#[test]
fn an_append_request_survives_the_wire() {
    let encoded = encode_append(GROUP, &append());
    let decoded = decode_append(body(encoded.clone())).unwrap();
    assert_eq!(decoded.entries, append().entries);
    assert_eq!(encode_append(GROUP, &decoded), encoded);
}

#[test]
fn entries_with_a_gap_are_refused() {
    let mut request = append();
    let encoded = encode_append(GROUP, &request);
    request.prev_log_id = None;
    // The entries start at 11, which does not follow "no entry": rewrite only the previous id.
    let mut body = body(encoded).to_vec();
    body[VOTE_BYTES] = 0;
    body.drain(VOTE_BYTES + 1..VOTE_BYTES + LOG_ID_BYTES);
    let error = decode_append(Bytes::from(body)).unwrap_err();
    assert_eq!(
        error,
        CodecError::Undefined {
            field: "log index",
            value: 11
        }
    );
}

#[test]
#[should_panic(expected = "entries to send must be contiguous")]
fn entries_with_a_gap_are_never_sent() {
    let mut request = append();
    request.prev_log_id = None;
    encode_append(GROUP, &request);
}

#[test]
fn append_replies_survive_the_wire() {
    for reply in [
        AppendEntriesResponse::Success,
        AppendEntriesResponse::PartialSuccess(None),
        AppendEntriesResponse::PartialSuccess(Some(log_id(3, 2, 12))),
        AppendEntriesResponse::Conflict,
        AppendEntriesResponse::HigherVote(vote(9, 1, true)),
    ] {
        assert_eq!(
            decode_append_reply(encode_append_reply(&reply)).unwrap(),
            reply
        );
    }
}

#[test]
fn votes_survive_the_wire() {
    let ask = VoteRequest {
        vote: vote(4, 3, false),
        last_log_id: None,
        leadership_transfer: false,
    };
    let encoded = encode_vote(GROUP, RaftKind::PreVote, &ask);
    assert_eq!(decode_vote(body(encoded)).unwrap(), ask);
    let reply = VoteResponse {
        vote: vote(4, 3, false),
        vote_granted: true,
        last_log_id: None,
    };
    assert_eq!(decode_vote_reply(encode_vote_reply(&reply)).unwrap(), reply);
}

#[test]
fn transfers_survive_the_wire() {
    let ask = TransferLeaderRequest::new(vote(3, 2, true), 1, Some(log_id(3, 2, 13)));
    assert_eq!(
        decode_transfer(body(encode_transfer(GROUP, &ask))).unwrap(),
        ask
    );
    for reply in [
        Ok(()),
        Err(TransferLeaderError::VoteChanged {
            expected: vote(3, 2, true),
            actual: vote(4, 1, false),
        }),
        Err(TransferLeaderError::LogNotFlushed {
            expected: Some(log_id(3, 2, 1)),
            actual: None,
        }),
    ] {
        assert_eq!(
            decode_transfer_reply(encode_transfer_reply(&reply)).unwrap(),
            reply
        );
    }
}

#[test]
fn read_replies_survive_the_wire() {
    let point = ReadPoint {
        term: Term::new(3),
        index: LogIndex::new(0),
    };
    for reply in [
        ReadIndexReply::Point(point),
        ReadIndexReply::NotLeader(None),
        ReadIndexReply::NotLeader(Some(NodeId::new(3))),
        ReadIndexReply::NoQuorum,
    ] {
        assert_eq!(decode_read_reply(encode_read_reply(&reply)).unwrap(), reply);
    }
}

#[test]
fn an_envelope_of_another_version_is_refused() {
    let request = PeerRequest {
        kind: 64,
        group: GROUP,
        body: Bytes::from_static(b"hello"),
    };
    assert_eq!(PeerRequest::decode(request.encode()).unwrap(), request);
    let mut other = request.encode().to_vec();
    other[0] = PEER_MESSAGE_VERSION + 1;
    assert!(PeerRequest::decode(Bytes::from(other.clone())).is_err());
    assert!(PeerReply::decode(Bytes::from(other)).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let _ = PeerRequest::decode(bytes.clone());
        let _ = PeerReply::decode(bytes.clone());
        let _ = decode_append(bytes.clone());
        let _ = decode_append_reply(bytes.clone());
        let _ = decode_vote(bytes.clone());
        let _ = decode_vote_reply(bytes.clone());
        let _ = decode_transfer(bytes.clone());
        let _ = decode_transfer_reply(bytes.clone());
        let _ = decode_read_reply(bytes.clone());
        let _ = decode_begin(bytes.clone());
        let _ = decode_chunk(bytes.clone());
        let _ = decode_finish(bytes.clone());
        let _ = decode_snapshot_reply(bytes);
    }

    #[test]
    fn a_damaged_append_never_panics(position in 0_usize..300, value in any::<u8>()) {
        let mut bytes = body(encode_append(GROUP, &append())).to_vec();
        let position = position % bytes.len();
        bytes[position] = value;
        let _ = decode_append(Bytes::from(bytes.clone()));
        bytes.truncate(position);
        prop_assert!(decode_append(Bytes::from(bytes)).is_err());
    }
}
