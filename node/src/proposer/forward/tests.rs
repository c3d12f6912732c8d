//! Round trips and refusals of the forward message.

use kelp_raft::{
    BatchNumber, Boot, CommandHead, CommandReply, OperationRef, Revision, SubBatchBuilder,
    SubBatchId,
};

use super::*;

fn sub_batch(node: u16) -> SubBatch {
    let mut builder = SubBatchBuilder::new();
    let operation = OperationRef::Put {
        key: b"k",
        value: b"v",
    };
    builder
        .append_operation(CommandHead::new(operation.opcode(), 0), &operation)
        .expect("it fits");
    let id = SubBatchId {
        node: NodeId::new(node),
        boot: Boot::new(3),
        batch: BatchNumber::new(5),
    };
    builder.take(id, BatchNumber::new(4))
}

/// Checks that `bytes` are those of a file of `testdata/v1`. `KELP_UPDATE_GOLDEN` writes it.
#[expect(
    clippy::disallowed_methods,
    reason = "golden files are read by tests, outside every seam"
)]
fn check_golden(name: &str, bytes: &[u8]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/v1")
        .join(name);
    if std::env::var_os("KELP_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, bytes).expect("the golden file can be written");
    }
    let golden = std::fs::read(&path).expect("the golden file exists");
    assert_eq!(golden, bytes, "{name} differs from its golden file");
}

/// One of each answer.
fn every_answer() -> Vec<HandOverResult> {
    let replies = vec![CommandReply::done(Revision::new(70_000))];
    vec![
        Ok((SubBatchOutcome::Executed(replies), LogIndex::new(1))),
        Ok((SubBatchOutcome::ExecutedForgotten, LogIndex::new(u64::MAX))),
        Err(HandOverError::NotLeader { leader: None }),
        Err(HandOverError::NotLeader {
            leader: Some(NodeId::new(3)),
        }),
        Err(HandOverError::Overloaded),
        Err(HandOverError::Unknown),
        Err(HandOverError::Unreadable),
    ]
}

fn reply_round_trip(result: &HandOverResult) -> HandOverResult {
    decode_reply(encode_reply(WallMillis::new(9), result)).expect("it was just encoded")
}

#[test]
fn a_sub_batch_arrives_as_it_was_sent() {
    let sent = sub_batch(2);
    let request =
        PeerRequest::decode(encode_request(GroupId::new(0), &sent)).expect("it was just encoded");
    assert_eq!(request.kind, FORWARD);
    assert_eq!(decode_request(NodeId::new(2), &request.body), Ok(sent));
}

#[test]
fn a_sub_batch_of_another_node_is_refused() {
    let body = sub_batch(2).encode();
    assert!(matches!(
        decode_request(NodeId::new(3), &body),
        Err(RequestError::OfAnother)
    ));
}

#[test]
fn a_sub_batch_with_a_wrong_count_is_refused() {
    let mut wrong = sub_batch(2);
    wrong.command_count = 0;
    assert!(matches!(
        decode_request(NodeId::new(2), &wrong.encode()),
        Err(RequestError::Unreadable(_))
    ));
}

#[test]
fn every_answer_survives_the_round_trip() {
    for result in every_answer() {
        assert_eq!(reply_round_trip(&result), result);
    }
}

#[test]
fn messages_have_their_golden_bytes() {
    let group = GroupId::new(0);
    check_golden("forward_request.bin", &encode_request(group, &sub_batch(2)));
    let wall = WallMillis::new(9);
    let replies = every_answer()
        .into_iter()
        .map(|result| encode_reply(wall, &result));
    let mut joined = Vec::new();
    for message in replies.chain([
        encode_has_log(group),
        encode_has_log_reply(wall, false),
        encode_has_log_reply(wall, true),
    ]) {
        let bytes = u32::try_from(message.len()).expect("messages are short");
        joined.extend_from_slice(&bytes.to_be_bytes());
        joined.extend_from_slice(&message);
    }
    check_golden("forward_replies.bin", &joined);
}

#[test]
fn whether_there_is_a_log_survives_the_round_trip() {
    for has_log in [false, true] {
        let reply = encode_has_log_reply(WallMillis::new(9), has_log);
        assert_eq!(decode_has_log_reply(reply), Ok(has_log));
    }
    assert!(decode_has_log_reply(encode_reply(WallMillis::new(9), &every_answer()[4])).is_err());
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let bytes = Bytes::from(bytes);
        let _ = decode_request(NodeId::new(1), &bytes);
        let _ = decode_reply(bytes.clone());
        let _ = decode_has_log_reply(bytes);
    }
}

#[test]
fn a_cut_or_longer_reply_is_refused() {
    let refused = Err(HandOverError::NotLeader {
        leader: Some(NodeId::new(3)),
    });
    let whole = encode_reply(WallMillis::new(9), &refused);
    for length in 0..whole.len() {
        assert!(
            decode_reply(whole.slice(..length)).is_err(),
            "{length} bytes are not a reply"
        );
    }
    let mut longer = BytesMut::from(&whole[..]);
    longer.put_u8(0);
    assert!(decode_reply(longer.freeze()).is_err());
}
