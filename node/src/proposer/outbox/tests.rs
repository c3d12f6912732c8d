//! The outbox against hand-made leaders: order, re-sending, deadlines, riders.

use bytes::BufMut;
use kelp_raft::{ReplyStatus, Revision};

use super::*;

type TestOutbox = Outbox<&'static str, &'static str>;

fn outbox() -> TestOutbox {
    Outbox::new(NodeId::new(2), Boot::new(7), OutboxLimits::default())
}

fn at(millis: u64) -> Monotonic {
    Monotonic::from_nanos(millis * 1_000_000)
}

fn push(outbox: &mut TestOutbox, order: &mut ConnectionOrder, name: &'static str) {
    outbox
        .push(order, at(1_000), name, |buffer| {
            buffer.put_slice(name.as_bytes());
        })
        .expect("there is room");
}

fn reply(revision: u64) -> CommandReply {
    CommandReply {
        status: ReplyStatus::Ok,
        revision: Revision::new(revision),
        value: bytes::Bytes::new(),
    }
}

fn executed(count: u64) -> SubBatchOutcome {
    SubBatchOutcome::Executed((0..count).map(reply).collect())
}

fn names(told: &Told<&'static str>) -> Vec<&'static str> {
    told.iter().map(|(name, _)| *name).collect()
}

#[test]
fn commands_queued_together_share_a_sub_batch() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "a");
    push(&mut outbox, &mut order, "b");

    let attempt = outbox.next_to_send().expect("a sub-batch waits");
    assert_eq!(attempt.sub_batch.id.batch, BatchNumber::new(1));
    assert_eq!(attempt.sub_batch.command_count, 2);
    assert_eq!(&attempt.sub_batch.commands[..], b"ab");
    assert!(outbox.next_to_send().is_none());

    let told = outbox
        .answered(&attempt, executed(2), LogIndex::new(9))
        .expect("not fenced");
    assert_eq!(names(&told), ["a", "b"]);
    assert_eq!(
        told[1].1,
        WriteOutcome::Done {
            reply: reply(1),
            index: LogIndex::new(9)
        }
    );
    assert!(outbox.is_empty());
}

#[test]
fn the_open_sub_batch_collects_while_enough_are_under_way() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    let mut attempts = Vec::new();
    for name in ["a", "b", "c"] {
        push(&mut outbox, &mut order, name);
        attempts.push(outbox.next_to_send().expect("few are under way"));
    }
    push(&mut outbox, &mut order, "d");
    push(&mut outbox, &mut order, "e");
    assert!(outbox.next_to_send().is_none());

    outbox
        .answered(&attempts[0], executed(1), LogIndex::new(1))
        .expect("not fenced");
    let next = outbox.next_to_send().expect("one was answered");
    assert_eq!(next.sub_batch.command_count, 2);
    assert_eq!(next.sub_batch.floor, BatchNumber::new(2));
}

#[test]
fn a_broken_route_sends_everything_again_unchanged_and_in_order() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "a");
    let first = outbox.next_to_send().expect("waits");
    push(&mut outbox, &mut order, "b");
    let second = outbox.next_to_send().expect("waits");

    outbox.attempt_failed(&first, AttemptFailure::Unknown);
    outbox.attempt_failed(&second, AttemptFailure::Unknown);

    let again: Vec<_> = std::iter::from_fn(|| outbox.next_to_send())
        .map(|attempt| attempt.sub_batch)
        .collect();
    assert_eq!(again, [first.sub_batch.clone(), second.sub_batch]);

    let told = outbox
        .answered(&first, executed(1), LogIndex::new(4))
        .expect("not fenced");
    assert_eq!(names(&told), ["a"], "an answer to an older copy is as good");
}

#[test]
fn a_gap_sends_again_from_the_oldest_unanswered() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "a");
    let _lost = outbox.next_to_send().expect("waits");
    push(&mut outbox, &mut order, "b");
    let second = outbox.next_to_send().expect("waits");

    let gap = SubBatchOutcome::Gap {
        expected: BatchNumber::new(1),
    };
    assert!(
        outbox
            .answered(&second, gap, LogIndex::new(3))
            .expect("not fenced")
            .is_empty()
    );
    let batches: Vec<_> = std::iter::from_fn(|| outbox.next_to_send())
        .map(|attempt| attempt.sub_batch.id.batch)
        .collect();
    assert_eq!(batches, [BatchNumber::new(1), BatchNumber::new(2)]);
}

#[test]
fn a_deadline_after_the_hand_over_is_unknown_and_the_sub_batch_stays() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "a");
    let attempt = outbox.next_to_send().expect("waits");
    assert!(attempt.permit.claim());

    assert_eq!(outbox.expire(at(1_001)), [("a", WriteOutcome::Unknown)]);
    assert!(outbox.expire(at(1_002)).is_empty());
    assert!(!outbox.is_empty());
    assert!(
        outbox
            .answered(&attempt, executed(1), LogIndex::new(1))
            .expect("not fenced")
            .is_empty()
    );
    assert!(outbox.is_empty());
}

#[test]
fn a_deadline_before_the_hand_over_removes_the_command() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "late");
    outbox
        .push(&mut order, at(9_000), "b", |buffer| buffer.put_slice(b"b"))
        .expect("there is room");

    let refused = WriteOutcome::NotExecuted(Refusal::DeadlinePassed);
    assert_eq!(outbox.expire(at(1_000)), [("late", refused)]);
    let attempt = outbox.next_to_send().expect("b waits");
    assert_eq!(
        (
            attempt.sub_batch.command_count,
            &attempt.sub_batch.commands[..]
        ),
        (1, &b"b"[..])
    );
}

#[test]
fn a_deadline_in_a_refused_hand_over_removes_the_command() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "late");
    outbox
        .push(&mut order, at(9_000), "b", |buffer| buffer.put_slice(b"b"))
        .expect("there is room");
    let refused = outbox.next_to_send().expect("waits");
    outbox.attempt_failed(&refused, AttemptFailure::NotExecuted);

    let outcome = WriteOutcome::NotExecuted(Refusal::DeadlinePassed);
    assert_eq!(outbox.expire(at(1_000)), [("late", outcome)]);
    let attempt = outbox.next_to_send().expect("b waits");
    assert_eq!(&attempt.sub_batch.commands[..], b"b");
    assert_eq!(attempt.sub_batch.id.batch, BatchNumber::new(1));
}

#[test]
fn a_deadline_while_the_hand_over_waits_on_its_way_out_removes_the_command() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "sent");
    let sent = outbox.next_to_send().expect("waits");
    assert!(sent.permit.claim());
    push(&mut outbox, &mut order, "late");
    let waiting = outbox.next_to_send().expect("waits");
    outbox
        .push(&mut order, at(9_000), "b", |buffer| buffer.put_slice(b"b"))
        .expect("there is room");
    let behind = outbox.next_to_send().expect("waits");

    let refused = WriteOutcome::NotExecuted(Refusal::DeadlinePassed);
    assert_eq!(
        outbox.expire(at(1_000)),
        [("sent", WriteOutcome::Unknown), ("late", refused)]
    );
    assert!(!waiting.permit.claim() && !behind.permit.claim());
    outbox.attempt_failed(&waiting, AttemptFailure::NotExecuted);
    outbox.attempt_failed(&behind, AttemptFailure::NotExecuted);

    let again: Vec<_> = std::iter::from_fn(|| outbox.next_to_send()).collect();
    let commands: Vec<_> = again
        .iter()
        .map(|attempt| &attempt.sub_batch.commands[..])
        .collect();
    assert_eq!(commands, [&b"sent"[..], b"", b"b"]);
    assert!(again.iter().all(|attempt| attempt.is_repeated));
}

#[test]
fn a_hand_over_that_waits_on_its_way_out_is_refused_without_a_leader() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "waiting");
    let waiting = outbox.next_to_send().expect("waits");

    let (told, _) = outbox.refuse_unsent(Refusal::NoLeader);
    let refused = WriteOutcome::NotExecuted(Refusal::NoLeader);
    assert_eq!(told, [("waiting", refused)]);
    assert!(!waiting.permit.claim());
    outbox.attempt_failed(&waiting, AttemptFailure::NotExecuted);
    assert!(outbox.is_empty());
}

#[test]
fn without_a_leader_only_what_nobody_was_handed_is_refused() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "sent");
    let sent = outbox.next_to_send().expect("waits");
    assert!(sent.permit.claim());
    outbox.attempt_failed(&sent, AttemptFailure::Unknown);
    push(&mut outbox, &mut order, "unsent");
    outbox
        .ride(&mut order, "rider")
        .expect("the write is unsent");

    let (told, riders) = outbox.refuse_unsent(Refusal::NoLeader);
    assert_eq!(
        told,
        [("unsent", WriteOutcome::NotExecuted(Refusal::NoLeader))]
    );
    assert_eq!(riders, ["rider"]);
    assert_eq!(
        outbox.next_to_send().expect("sent is re-sent").sub_batch,
        sent.sub_batch
    );
}

#[test]
fn a_read_rides_on_its_connections_last_unsent_write_only() {
    let mut outbox = outbox();
    let (mut order, mut stranger) = (ConnectionOrder::default(), ConnectionOrder::default());
    assert_eq!(
        outbox.ride(&mut order, "before any write"),
        Err("before any write")
    );
    push(&mut outbox, &mut order, "w1");
    assert_eq!(outbox.ride(&mut stranger, "stranger"), Err("stranger"));
    outbox.ride(&mut order, "r1").expect("w1 is unsent");
    push(&mut outbox, &mut order, "w2");

    let first = outbox.next_to_send().expect("waits");
    assert_eq!(&first.sub_batch.commands[..], b"w1", "r1 must not see w2");
    let second = outbox.next_to_send().expect("waits");
    assert_eq!(outbox.ride(&mut order, "r2"), Err("r2"), "w2 is under way");
    assert_eq!(outbox.applied(first.sub_batch.id.batch), ["r1"]);
    assert!(outbox.applied(second.sub_batch.id.batch).is_empty());
}

#[test]
fn riders_of_what_a_snapshot_skipped_come_back() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "w1");
    outbox.ride(&mut order, "r1").expect("w1 is unsent");
    push(&mut outbox, &mut order, "w2");
    outbox.ride(&mut order, "r2").expect("w2 is unsent");
    push(&mut outbox, &mut order, "w3");
    outbox.ride(&mut order, "r3").expect("w3 is unsent");
    assert_eq!(outbox.skipped(BatchNumber::new(2)), ["r1", "r2"]);
    assert!(outbox.skipped(BatchNumber::new(2)).is_empty());
    assert_eq!(outbox.applied(BatchNumber::new(3)), ["r3"]);
}

#[test]
fn a_full_window_refuses_and_opens_again() {
    let limits = OutboxLimits {
        bytes_max: 2,
        ..OutboxLimits::default()
    };
    let mut outbox: TestOutbox = Outbox::new(NodeId::new(1), Boot::new(1), limits);
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "ab");
    assert_eq!(
        outbox.push(&mut order, at(1), "c", |buffer| buffer.put_slice(b"c")),
        Err("c")
    );

    let attempt = outbox.next_to_send().expect("waits");
    outbox
        .answered(&attempt, executed(1), LogIndex::new(1))
        .expect("not fenced");
    push(&mut outbox, &mut order, "c");
}

#[test]
fn a_newer_boot_fences_the_process() {
    let mut outbox = outbox();
    push(&mut outbox, &mut ConnectionOrder::default(), "a");
    let attempt = outbox.next_to_send().expect("waits");
    assert_eq!(
        outbox.answered(&attempt, SubBatchOutcome::StaleBoot, LogIndex::new(1)),
        Err(Fenced)
    );
}

#[test]
fn a_sub_batch_answered_without_results_was_executed() {
    let mut outbox = outbox();
    push(&mut outbox, &mut ConnectionOrder::default(), "a");
    let attempt = outbox.next_to_send().expect("waits");
    outbox.rewind();
    let told = outbox.answered(
        &attempt,
        SubBatchOutcome::ExecutedForgotten,
        LogIndex::new(1),
    );
    assert_eq!(told, Ok(vec![("a", WriteOutcome::Executed)]));
}

#[test]
fn numbers_taken_back_are_forgotten_by_their_connection() {
    let mut outbox = outbox();
    let mut order = ConnectionOrder::default();
    push(&mut outbox, &mut order, "w1");
    outbox.ride(&mut order, "r1").expect("w1 is unsent");
    push(&mut outbox, &mut order, "w2");
    outbox.ride(&mut order, "r2").expect("w2 is unsent");
    push(&mut outbox, &mut order, "w3");
    outbox.refuse_unsent(Refusal::NoLeader);

    assert_eq!(
        outbox.ride(&mut order, "r3"),
        Err("r3"),
        "w3 was refused: the read must not wait for a number that others will get"
    );
    push(&mut outbox, &mut order, "w4");
    push(&mut outbox, &mut order, "w5");
    let attempt = outbox.next_to_send().expect("waits");
    assert_eq!(attempt.sub_batch.id.batch, BatchNumber::new(1));
    assert_eq!(attempt.sub_batch.command_count, 2, "no ride of before cuts");
}
