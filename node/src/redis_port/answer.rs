//! What clients are told of their writes: replies, and errors in the words that they know.
//!
//! Errors that Redis does not have say whether the write was executed: `CLUSTERDOWN` and `TRYAGAIN`
//! mean that it was surely not, `INDOUBT` that nobody can say.

use kelp_raft::{CommandReply, ReplyStatus, VALUE_BYTES_MAX};
use kelp_wire::RespEncoder;

use crate::client_port::PortContext;
use crate::client_port::lane::LaneRefusal;
use crate::proposer::outbox::{Refusal, WriteOutcome};

pub(super) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(super) const SYNTAX: &str = "ERR syntax error";

/// How the result of a write is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// `OK`.
    Ok,
    /// `OK`, or nothing if the condition did not hold.
    OkOrNull,
    /// 1, or 0 if the condition did not hold.
    OneOrZero,
    /// How many of so many keys were deleted.
    Deleted { keys: usize },
    /// The number that the write left or measured.
    Number,
}

/// Appends the reply to a write; false when it is an error.
pub(super) fn write_outcome(
    encoder: &mut RespEncoder<'_>,
    answer: Answer,
    outcome: &WriteOutcome,
    port: &PortContext,
) -> bool {
    let text = match outcome {
        WriteOutcome::Done { reply, .. } => match refusal_text(reply) {
            None => {
                done(encoder, answer, reply);
                return true;
            }
            Some(text) => text,
        },
        WriteOutcome::Executed if answer == Answer::Ok => {
            encoder.simple("OK");
            return true;
        }
        other => outcome_text(other, port),
    };
    encoder.error(&text);
    false
}

/// What to tell of a write without a reply of the state machine.
pub(super) fn outcome_text(outcome: &WriteOutcome, port: &PortContext) -> String {
    let text = match outcome {
        WriteOutcome::NotExecuted(Refusal::NoLeader) => return leaderless_text(port),
        WriteOutcome::NotExecuted(Refusal::Overloaded) => {
            "TRYAGAIN this node has too many writes without an answer; not executed"
        }
        WriteOutcome::NotExecuted(Refusal::DeadlinePassed) => {
            "TRYAGAIN deadline passed before any leader took the write; not executed"
        }
        WriteOutcome::Executed | WriteOutcome::Done { .. } => {
            "INDOUBT the write was executed, but its reply is no longer known"
        }
        WriteOutcome::Unknown => {
            "INDOUBT deadline passed after the write was handed to the leader; \
             it may or may not be executed"
        }
    };
    text.to_owned()
}

/// What to tell of something that never left the connection.
pub(super) fn lane_text(refusal: LaneRefusal, port: &PortContext) -> String {
    match refusal {
        LaneRefusal::Leaderless => leaderless_text(port),
        refusal => format!("TRYAGAIN {}", refusal.text()),
    }
}

fn leaderless_text(port: &PortContext) -> String {
    format!("CLUSTERDOWN {}", port.view.hints().no_leader_text)
}

/// The error for a reply of the state machine that is one.
pub(super) fn refusal_text(reply: &CommandReply) -> Option<String> {
    let text = match reply.status {
        ReplyStatus::Ok | ReplyStatus::NotFound | ReplyStatus::ConditionFalse => return None,
        ReplyStatus::ExecutedForgotten => {
            "INDOUBT the write was executed, but its reply is no longer known"
        }
        ReplyStatus::WrongType => {
            "WRONGTYPE Operation against a key holding the wrong kind of value"
        }
        ReplyStatus::NotANumber => NOT_AN_INTEGER,
        ReplyStatus::OutOfRange => "ERR increment or decrement would overflow",
        ReplyStatus::TryAgain => {
            "TRYAGAIN the log entry has done all that one may; not executed, send it again"
        }
        ReplyStatus::KeyEmpty => "ERR the key is empty",
        ReplyStatus::KeyTooLong => "ERR the key is too long",
        ReplyStatus::ValueTooLarge => return Some(too_large_text()),
        ReplyStatus::Forbidden => "NOPERM this user may not do that",
        status => return Some(format!("ERR refused: {status:?}")),
    };
    Some(text.to_owned())
}

pub(super) fn too_large_text() -> String {
    format!("ERR string exceeds maximum allowed size ({VALUE_BYTES_MAX} bytes)")
}

fn done(encoder: &mut RespEncoder<'_>, answer: Answer, reply: &CommandReply) {
    let executed = reply.status == ReplyStatus::Ok;
    match answer {
        Answer::Ok => encoder.simple("OK"),
        Answer::OkOrNull if executed => encoder.simple("OK"),
        Answer::OkOrNull => encoder.null(),
        Answer::OneOrZero => encoder.count(usize::from(executed)),
        Answer::Deleted { keys } => {
            let missing = reply.value.iter().filter(|status| **status != 0).count();
            encoder.count(if executed { keys - missing } else { 0 });
        }
        Answer::Number => encoder.integer(number(&reply.value)),
    }
}

/// A number that the state machine wrote in decimal digits.
fn number(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.parse().unwrap_or_default()
}
