//! What a client is told: replies, refusals with the next step, and where the leader is.

use std::time::Duration;

use bytes::BytesMut;
use kelp_raft::{CommandReply, ReplyStatus};
use kelp_wire::{
    HELLO_VERSION, HelloReply, LeaderHint, Response, ResponseFields, Revision, Status,
    encode_error, encode_response,
};

use super::PortContext;
use super::session::RequestMark;
use crate::proposer::outbox::{Refusal, WriteOutcome};

/// Advice to a client that was refused for want of room or of a leader: about one election.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Answers a hello.
pub(super) fn hello_reply(port: &PortContext) -> HelloReply {
    HelloReply {
        version: HELLO_VERSION,
        features: 0,
        cluster: kelp_wire::ClusterId::new(port.cluster.get()),
        node: kelp_wire::NodeId::new(port.node.get()),
    }
}

/// Appends a reply that is nothing but a value.
pub(super) fn value(out: &mut BytesMut, mark: RequestMark, value: &[u8]) {
    encode_response(
        out,
        &Response {
            value,
            ..Response::new(mark.id, mark.opcode, Status::Ok)
        },
    );
}

/// Appends a refusal; where trying elsewhere or later helps, it says so.
pub(super) fn refusal(
    out: &mut BytesMut,
    mark: RequestMark,
    status: Status,
    text: &str,
    port: &PortContext,
) {
    if !matches!(
        status,
        Status::NoLeader | Status::Overloaded | Status::Unavailable
    ) {
        return plain_refusal(out, mark, status, text);
    }
    let hints = port.view.hints();
    let fields = ResponseFields {
        retry_after: Some(RETRY_AFTER),
        leader: hints.leader.as_ref().map(|(node, address)| LeaderHint {
            node: kelp_wire::NodeId::new(node.get()),
            address,
        }),
        ..ResponseFields::default()
    };
    encode_error(out, mark.id, mark.opcode.to_byte(), status, &fields, text);
}

/// Appends a refusal that no other attempt would change.
fn plain_refusal(out: &mut BytesMut, mark: RequestMark, status: Status, text: &str) {
    let fields = ResponseFields::default();
    encode_error(out, mark.id, mark.opcode.to_byte(), status, &fields, text);
}

/// Appends the outcome of a write and returns its status.
pub(super) fn write_outcome(
    out: &mut BytesMut,
    mark: RequestMark,
    outcome: &WriteOutcome,
    port: &PortContext,
) -> Status {
    let (status, text) = match outcome {
        WriteOutcome::Done { reply, .. } => return command_reply(out, mark, reply),
        WriteOutcome::NotExecuted(Refusal::NoLeader) => {
            let hints = port.view.hints();
            refusal(out, mark, Status::NoLeader, &hints.no_leader_text, port);
            return Status::NoLeader;
        }
        WriteOutcome::NotExecuted(Refusal::Overloaded) => (
            Status::Overloaded,
            "this node has too many writes without an answer; try again",
        ),
        WriteOutcome::NotExecuted(Refusal::DeadlinePassed) => (
            Status::Unavailable,
            "deadline passed before any leader took the write",
        ),
        WriteOutcome::Executed => (
            Status::OutcomeUnknown,
            "the write was executed, but its reply is no longer known",
        ),
        WriteOutcome::Unknown => (
            Status::OutcomeUnknown,
            "deadline passed after the write was handed to the leader; \
             it may or may not be executed",
        ),
    };
    refusal(out, mark, status, text, port);
    status
}

fn command_reply(out: &mut BytesMut, mark: RequestMark, reply: &CommandReply) -> Status {
    let status = status_of(reply.status);
    if reply.status.is_refusal() {
        plain_refusal(out, mark, status, &String::from_utf8_lossy(&reply.value));
        return status;
    }
    let revision = Revision::new(reply.revision.get());
    let fields = if reply.revision.get() == 0 {
        ResponseFields::default()
    } else {
        ResponseFields::with_revision(revision)
    };
    let response = Response {
        fields,
        value: &reply.value,
        ..Response::new(mark.id, mark.opcode, status)
    };
    encode_response(out, &response);
    status
}

fn status_of(status: ReplyStatus) -> Status {
    match status {
        ReplyStatus::Ok | ReplyStatus::ExecutedForgotten => Status::Ok,
        ReplyStatus::NotFound => Status::NotFound,
        ReplyStatus::ConditionFalse => Status::ConditionFalse,
        ReplyStatus::SessionExpired => Status::SessionExpired,
        ReplyStatus::KeyTooLong | ReplyStatus::ValueTooLarge => Status::TooLarge,
        ReplyStatus::UnknownOpcode | ReplyStatus::UnknownFlags => Status::Unsupported,
        ReplyStatus::Forbidden => Status::Refused,
        ReplyStatus::TryAgain => Status::Overloaded,
        _ => Status::BadRequest,
    }
}
