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
        Err(ForwardError::Malformed(_))
    ));
}

#[test]
fn a_sub_batch_with_a_wrong_count_is_refused() {
    let mut wrong = sub_batch(2);
    wrong.command_count = 0;
    assert!(matches!(
        decode_request(NodeId::new(2), &wrong.encode()),
        Err(ForwardError::Outcome(_))
    ));
}

#[test]
fn every_answer_survives_the_round_trip() {
    let replies = vec![CommandReply::done(Revision::new(70_000))];
    let results = [
        Ok((SubBatchOutcome::Executed(replies), LogIndex::new(1))),
        Ok((SubBatchOutcome::ExecutedForgotten, LogIndex::new(u64::MAX))),
        Err(HandOverError::NotLeader { leader: None }),
        Err(HandOverError::NotLeader {
            leader: Some(NodeId::new(3)),
        }),
        Err(HandOverError::Overloaded),
        Err(HandOverError::Unknown),
        Err(HandOverError::Unreadable),
    ];
    for result in results {
        assert_eq!(reply_round_trip(&result), result);
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
