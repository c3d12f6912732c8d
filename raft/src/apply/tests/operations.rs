//! What conditional writes, numbers, appending, batches and ranges do at their edges.

use kelp_storage::WriteBatch;

use super::*;
use crate::state::Record;

fn run(replica: &mut Replica, batch: u64, operations: &[Operation]) -> Vec<CommandReply> {
    let commands: Vec<_> = operations.iter().map(|it| it.clone().command(0)).collect();
    match replica.send(sub_batch(id(1, 1, batch), 0, &commands)) {
        SubBatchOutcome::Executed(replies) => replies,
        other => panic!("expected an execution, got {other:?}"),
    }
}

fn value(replica: &Replica, key: &[u8]) -> Option<Bytes> {
    let record = replica.view().get(0, key).unwrap();
    record.map(|record| record.value)
}

fn set(key: &'static str, value: &'static str) -> Operation {
    Operation::Put {
        key: Bytes::from_static(key.as_bytes()),
        value: Bytes::from_static(value.as_bytes()),
    }
}

fn increment(key: &'static str, delta: i64) -> Operation {
    let key = Bytes::from_static(key.as_bytes());
    Operation::Increment { key, delta }
}

fn append(key: &'static str, value: Bytes) -> Operation {
    let key = Bytes::from_static(key.as_bytes());
    Operation::Append { key, value }
}

fn flush(count_max: u32, first: Bytes) -> Operation {
    Operation::DeleteRange {
        count_max,
        first,
        end: Bytes::new(),
    }
}

fn statuses(replies: &[CommandReply]) -> Vec<ReplyStatus> {
    replies.iter().map(|reply| reply.status).collect()
}

/// Count and next key of a removed range.
fn removed(reply: &CommandReply) -> (u32, Bytes) {
    assert_eq!(reply.status, ReplyStatus::Ok);
    let count = u32::from_be_bytes(*reply.value.first_chunk().unwrap());
    (count, reply.value.slice(4..))
}

/// Puts a record that dies at `deadline`.
fn put_mortal(replica: &mut Replica, key: &'static [u8], value: &'static [u8], deadline: u64) {
    let record = Record {
        revision: Revision::new(1),
        expire_at: Some(StampMillis::new(deadline)),
        value: Bytes::from_static(value),
    };
    let key = StateKey::Record {
        database: 0,
        key: Bytes::from_static(key),
    };
    let mut batch = WriteBatch::new();
    batch.put(key.encode(), record.encode());
    replica.keyspace.write(batch).unwrap();
}

#[test]
fn numbers_are_added_up_within_the_range_and_refused_beyond() {
    let mut replica = Replica::new();
    let replies = run(
        &mut replica,
        1,
        &[
            increment("n", 5),
            increment("n", -7),
            set("max", "9223372036854775807"),
            increment("max", 1),
            increment("max", 0),
            set("word", "1x"),
            increment("word", 1),
        ],
    );
    assert_eq!(
        statuses(&replies),
        [
            ReplyStatus::Ok,
            ReplyStatus::Ok,
            ReplyStatus::Ok,
            ReplyStatus::OutOfRange,
            ReplyStatus::Ok,
            ReplyStatus::Ok,
            ReplyStatus::NotANumber,
        ]
    );
    assert_eq!(replies[1].value, "-2");
    assert_eq!(value(&replica, b"n").unwrap(), "-2");
    assert_eq!(value(&replica, b"max").unwrap(), "9223372036854775807");
    assert_eq!(value(&replica, b"word").unwrap(), "1x");
}

#[test]
fn deadline_stays_with_a_number_and_with_appended_bytes_and_goes_with_a_put() {
    let mut replica = Replica::new();
    for key in [&b"n"[..], b"a", b"p"] {
        put_mortal(&mut replica, Box::leak(key.into()), b"1", 100);
    }
    let operations = [increment("n", 1), append("a", "2".into()), set("p", "2")];
    run(&mut replica, 1, &operations);
    let deadline = |key: &[u8]| replica.view().get(0, key).unwrap().unwrap().expire_at;
    let expected = Some(StampMillis::new(100));
    assert_eq!((deadline(b"n"), deadline(b"a")), (expected, expected));
    assert_eq!(deadline(b"p"), None);
}

#[test]
fn a_key_whose_deadline_has_passed_counts_as_absent() {
    let mut replica = Replica::new();
    for key in ["n", "a", "x", "y"] {
        put_mortal(&mut replica, key.as_bytes(), b"7", 1);
    }
    let conditional = |key: &'static str, condition| Operation::CompareAndSwap {
        key: Bytes::from_static(key.as_bytes()),
        condition,
        value: Some(Bytes::from_static(b"new")),
    };
    let operations = [
        increment("n", 1),
        append("a", "2".into()),
        conditional("x", Condition::Absent),
        conditional("y", Condition::Exists),
    ];
    let replies = run(&mut replica, 1, &operations);
    assert_eq!(value(&replica, b"n").unwrap(), "1");
    assert_eq!(value(&replica, b"a").unwrap(), "2");
    assert_eq!(value(&replica, b"x").unwrap(), "new");
    assert_eq!(replies[3], status(ReplyStatus::ConditionFalse));
}

#[test]
fn a_batch_is_executed_whole_under_one_revision_or_not_at_all() {
    let mut replica = Replica::new();
    let mut batch = BatchBuilder::new();
    batch.put(b"a", b"1").unwrap();
    batch.put(b"b", b"2").unwrap();
    batch.delete(b"c").unwrap();
    let batch = batch.finish().unwrap();
    let replies = run(&mut replica, 1, &[set("c", "0"), Operation::Batch(batch)]);
    assert_eq!(replies[1], done(0, 1));
    let revision = |key: &[u8]| replica.view().get(0, key).unwrap().unwrap().revision;
    assert_eq!(revision(b"a"), revision(b"b"));
    assert_eq!(value(&replica, b"c"), None);

    let mut broken = BatchBuilder::new();
    broken.put(b"d", b"1").unwrap();
    broken.delete(b"").unwrap();
    let broken = Operation::Batch(broken.finish().unwrap());
    let replies = run(&mut replica, 2, &[broken]);
    assert_eq!(replies, [status(ReplyStatus::KeyEmpty)]);
    assert_eq!(value(&replica, b"d"), None);
}

#[test]
fn parts_of_a_batch_see_those_before_them() {
    let mut replica = Replica::new();
    let mut batch = BatchBuilder::new();
    batch.delete(b"a").unwrap();
    batch.put(b"a", b"1").unwrap();
    batch.delete(b"a").unwrap();
    batch.delete(b"a").unwrap();
    let replies = run(
        &mut replica,
        1,
        &[Operation::Batch(batch.finish().unwrap())],
    );
    let [ok, absent] = [ReplyStatus::Ok, ReplyStatus::NotFound].map(ReplyStatus::get);
    assert_eq!(replies[0].value[..], [absent, ok, ok, absent]);
}

#[test]
fn a_range_is_removed_piece_by_piece_with_what_the_same_entry_wrote_in_it() {
    let mut replica = Replica::new();
    run(&mut replica, 1, &[set("a", ""), set("c", ""), set("e", "")]);
    let delete = |key: &'static str| Operation::Delete {
        key: Bytes::from_static(key.as_bytes()),
    };
    let replies = run(
        &mut replica,
        2,
        &[
            set("b", ""),
            set("d", ""),
            delete("d"),
            delete("a"),
            flush(2, Bytes::new()),
        ],
    );
    assert_eq!(removed(&replies[4]), (2, Bytes::from_static(b"e")));
    let replies = run(&mut replica, 3, &[flush(2, Bytes::from_static(b"e"))]);
    assert_eq!(removed(&replies[0]), (1, Bytes::new()));
    let replies = run(&mut replica, 4, &[flush(2, Bytes::new())]);
    assert_eq!(removed(&replies[0]), (0, Bytes::new()));
}

#[test]
fn a_range_ends_with_its_database() {
    let mut replica = Replica::new();
    let mut commands: Vec<_> = [0, 1, 2]
        .map(|database| set("k", "").command(database))
        .into();
    commands.push(flush(9, Bytes::new()).command(1));
    replica.send(sub_batch(id(1, 1, 1), 0, &commands));
    let held = [0, 1, 2].map(|database| replica.view().get(database, b"k").unwrap().is_some());
    assert_eq!(held, [true, false, true]);
}

#[test]
fn one_command_removes_a_bounded_number_of_keys() {
    let mut replica = Replica::new();
    let total = u32::try_from(DELETE_RANGE_KEYS_MAX).unwrap() + 1;
    let puts: Vec<_> = (0..total)
        .map(|number| put(&number.to_be_bytes(), b""))
        .collect();
    replica.send(sub_batch(id(1, 1, 1), 0, &puts));
    let replies = run(&mut replica, 2, &[flush(u32::MAX, Bytes::new())]);
    let last = Bytes::copy_from_slice(&(total - 1).to_be_bytes());
    assert_eq!(removed(&replies[0]), (total - 1, last));
}

#[test]
fn an_entry_does_a_bounded_amount_of_work_and_the_next_one_goes_on() {
    let mut replica = Replica::new();
    let large = Bytes::from(vec![1; VALUE_BYTES_MAX - 100]);
    run(&mut replica, 1, &[append("a", large.clone())]);
    let byte = Bytes::from_static(b"x");
    let replies = run(&mut replica, 2, &vec![append("a", byte.clone()); 20]);
    let done = replies
        .iter()
        .filter(|reply| reply.status == ReplyStatus::Ok);
    let done = done.count();
    assert_eq!(done, ENTRY_WORK_MAX / large.len() + 1);
    assert_eq!(replies[done], status(ReplyStatus::TryAgain));
    let replies = run(&mut replica, 3, &[append("a", byte)]);
    assert_eq!(replies[0].value, (large.len() + done + 1).to_string());
}

#[test]
fn a_value_is_not_appended_to_beyond_its_limit() {
    let mut replica = Replica::new();
    let longest = Bytes::from(vec![1; VALUE_BYTES_MAX]);
    run(&mut replica, 1, &[append("a", longest)]);
    let operations = [
        append("a", Bytes::from_static(b"x")),
        append("a", Bytes::new()),
    ];
    let replies = run(&mut replica, 2, &operations);
    assert_eq!(replies[0], status(ReplyStatus::ValueTooLarge));
    assert_eq!(replies[1].value, VALUE_BYTES_MAX.to_string());
}

#[test]
fn keys_that_ranges_go_on_from_are_work_of_the_entry() {
    const COUNT: usize = 3_000;
    let mut replica = Replica::new();
    let long = Operation::Put {
        key: vec![b'k'; KEY_BYTES_MAX].into(),
        value: Bytes::new(),
    };
    run(&mut replica, 1, &[long]);
    let replies = run(&mut replica, 2, &vec![flush(0, Bytes::new()); COUNT]);
    assert_eq!(removed(&replies[0]), (0, vec![b'k'; KEY_BYTES_MAX].into()));
    assert_eq!(replies[COUNT - 1].status, ReplyStatus::TryAgain);
    let bytes: usize = replies.iter().map(|reply| reply.value.len()).sum();
    assert!(
        bytes < ENTRY_WORK_MAX + (1 << 20),
        "{bytes} bytes of replies"
    );
}
