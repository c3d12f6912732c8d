//! What single commands do and answer.

use kelp_storage::WriteBatch;

use super::*;
use crate::state::{Record, encode_revision_base};

fn replies(replica: &mut Replica, batch: u64, commands: &[Command]) -> Vec<CommandReply> {
    match replica.send(sub_batch(id(1, 1, batch), 0, commands)) {
        SubBatchOutcome::Executed(replies) => replies,
        other => panic!("expected an execution, got {other:?}"),
    }
}

fn value(replica: &Replica, key: &[u8]) -> Option<Bytes> {
    replica
        .view()
        .get(0, key)
        .unwrap()
        .map(|record| record.value)
}

/// Writes what a later command of the log will write.
fn write(replica: &mut Replica, key: &StateKey, value: Bytes) {
    let mut batch = WriteBatch::new();
    batch.put(key.encode(), value);
    replica.keyspace.write(batch).unwrap();
    replica.applier = EntryApplier::load(&replica.keyspace.view()).unwrap();
}

#[test]
fn command_sees_those_before_it_in_the_same_entry() {
    let mut replica = Replica::new();
    let commands = [
        delete(b"a"),
        put(b"a", b"1"),
        delete(b"a"),
        delete(b"a"),
        put(b"a", b"2"),
    ];
    let expected = [
        status(ReplyStatus::NotFound),
        done(0, 1),
        done(0, 2),
        status(ReplyStatus::NotFound),
        done(0, 4),
    ];
    assert_eq!(replies(&mut replica, 1, &commands), expected);
    let record = replica.view().get(0, b"a").unwrap().unwrap();
    assert_eq!(
        (record.revision, record.value),
        (Revision::new(4), Bytes::from_static(b"2"))
    );
}

#[test]
fn first_announced_directory_of_a_node_is_its_own_for_ever() {
    let announce = |number| {
        let directory = DatabaseId::from_bytes([number; 16]);
        Operation::Announce { directory }.command(0)
    };
    let mut replica = Replica::new();
    let known = |replica: &Replica, node| {
        let node = NodeId::new(node);
        replica.view().directory_of(node).unwrap()
    };
    let refused = status(ReplyStatus::Forbidden);
    let commands = [announce(7), announce(7), announce(8)];
    let expected = [done(0, 0), done(0, 1), refused.clone()];
    assert_eq!(replies(&mut replica, 1, &commands), expected);
    assert_eq!(replies(&mut replica, 2, &[announce(8)]), [refused]);
    assert_eq!(known(&replica, 1), Some(DatabaseId::from_bytes([7; 16])));
    assert_eq!(known(&replica, 2), None, "each node has its own");

    let mut short = announce(7);
    short.body.truncate(15);
    assert_eq!(
        replies(&mut replica, 3, &[short]),
        [status(ReplyStatus::Malformed)]
    );
}

#[test]
fn delete_of_an_absent_key_writes_nothing() {
    let mut replica = Replica::new();
    replies(&mut replica, 1, &[put(b"a", b"1")]);
    let before = replica.keyspace.view().sequence();
    replies(&mut replica, 2, &[delete(b"b"), delete(b"c")]);
    let after = replica.keyspace.view().sequence();
    let bookkeeping = 4; // applied, result, progress, chain
    assert_eq!(after.get() - before.get(), bookkeeping);
}

#[test]
fn positions_count_across_sub_batches_executed_or_not() {
    let mut replica = Replica::new();
    let two = |node, batch| sub_batch(id(node, 1, batch), 0, &[put(b"a", b""), put(b"b", b"")]);
    let outcomes = replica
        .apply(&entry(1, vec![two(1, 1), two(2, 7), two(3, 1)]))
        .outcome;
    let expected = SubBatchOutcome::Executed(vec![done(0, 4), done(0, 5)]);
    assert_eq!(outcomes.sub_batches[2], expected);
}

#[test]
fn empty_values_and_keys_of_any_bytes_are_kept() {
    let mut replica = Replica::new();
    let keys: [&[u8]; 5] = [b"\x00", b"\x00\x00", b"\xFF", b"\xFF\xFF", b"\x00\xFF\x01"];
    let commands: Vec<_> = keys.iter().map(|key| put(key, b"")).collect();
    replies(&mut replica, 1, &commands);
    for key in keys {
        assert_eq!(value(&replica, key), Some(Bytes::new()), "{key:?}");
    }
}

#[test]
fn largest_key_and_value_are_kept_and_larger_ones_refused() {
    let mut replica = Replica::new();
    let key = vec![0xFF; KEY_BYTES_MAX];
    let large = vec![1; VALUE_BYTES_MAX];
    assert_eq!(replies(&mut replica, 1, &[put(&key, &large)]), [done(0, 0)]);
    assert_eq!(
        value(&replica, &key).map(|value| value.len()),
        Some(VALUE_BYTES_MAX)
    );

    let too_large = vec![1; VALUE_BYTES_MAX + 1];
    let refused = replies(&mut replica, 2, &[put(b"a", &too_large)]);
    assert_eq!(refused, [status(ReplyStatus::ValueTooLarge)]);
    let too_long = vec![1; KEY_BYTES_MAX + 1];
    let mut long_put = put(b"a", b"");
    let key_bytes = u16::try_from(too_long.len()).unwrap().to_be_bytes();
    long_put.body = Bytes::from([&key_bytes[..], &too_long].concat());
    let commands = [long_put, delete(&too_long), put(b"", b"x"), delete(b"")];
    let expected = [
        status(ReplyStatus::KeyTooLong),
        status(ReplyStatus::KeyTooLong),
        status(ReplyStatus::KeyEmpty),
        status(ReplyStatus::KeyEmpty),
    ];
    assert_eq!(replies(&mut replica, 3, &commands), expected);
    assert_eq!(value(&replica, b"a"), None);
}

#[test]
fn limits_of_the_state_replace_the_defaults() {
    let mut replica = Replica::new();
    let limits = Limits {
        key_bytes_max: 2,
        value_bytes_max: 3,
    };
    write(
        &mut replica,
        &StateKey::Meta(MetaKey::Limits),
        limits.encode(),
    );
    let commands = [
        put(b"ab", b"123"),
        put(b"abc", b""),
        put(b"a", b"1234"),
        delete(b"abc"),
    ];
    let expected = [
        done(0, 0),
        status(ReplyStatus::KeyTooLong),
        status(ReplyStatus::ValueTooLarge),
        status(ReplyStatus::KeyTooLong),
    ];
    assert_eq!(replies(&mut replica, 1, &commands), expected);
}

#[test]
fn reserved_opcodes_unknown_flags_and_bad_bodies_are_refused_and_the_rest_goes_on() {
    let mut replica = Replica::new();
    let reserved = Command {
        opcode: CommandOpcode::SWEEP,
        ..put(b"a", b"1")
    };
    let unknown = Command {
        opcode: CommandOpcode::new(0xFF),
        ..put(b"a", b"1")
    };
    let flagged = Command {
        flags: 0x40,
        ..put(b"a", b"1")
    };
    let bad = Command {
        body: Bytes::from_static(&[0xFF]),
        ..put(b"a", b"1")
    };
    let expected = [
        status(ReplyStatus::UnknownOpcode),
        status(ReplyStatus::UnknownOpcode),
        status(ReplyStatus::UnknownFlags),
        status(ReplyStatus::Malformed),
        done(0, 4),
    ];
    let commands = [reserved, unknown, flagged, bad, put(b"b", b"1")];
    assert_eq!(replies(&mut replica, 1, &commands), expected);
    assert_eq!(value(&replica, b"a"), None);
}

#[test]
fn commands_that_cannot_be_read_are_refused_up_to_the_promised_count() {
    let mut replica = Replica::new();
    let mut broken = sub_batch(id(1, 1, 1), 0, &[put(b"a", b"1"), put(b"b", b"2")]);
    let mut bytes = broken.commands.to_vec();
    bytes.extend_from_slice(&[0xFF; 20]);
    broken.commands = Bytes::from(bytes);
    broken.command_count = 4;
    let malformed = status(ReplyStatus::Malformed);
    let expected = vec![done(0, 0), done(0, 1), malformed.clone(), malformed];
    assert_eq!(replica.send(broken), SubBatchOutcome::Executed(expected));
}

#[test]
fn deadline_hides_a_record_from_delete_once_the_stamp_reaches_it() {
    for (stamp, expected) in [(99, done(0, 0)), (100, status(ReplyStatus::NotFound))] {
        let mut replica = Replica::new();
        let mortal = Record {
            revision: Revision::new(1),
            expire_at: Some(StampMillis::new(100)),
            value: Bytes::new(),
        };
        let key = StateKey::Record {
            database: 0,
            key: Bytes::from_static(b"a"),
        };
        write(&mut replica, &key, mortal.encode());
        let payload = entry(stamp, vec![sub_batch(id(1, 1, 1), 0, &[delete(b"a")])]);
        let outcome = replica.apply(&payload).outcome.sub_batches.remove(0);
        assert_eq!(
            outcome,
            SubBatchOutcome::Executed(vec![expected]),
            "at {stamp}"
        );
    }
}

#[test]
fn revision_base_is_added_to_every_revision() {
    let mut replica = Replica::new();
    let base = Revision::new(1 << 60);
    write(
        &mut replica,
        &StateKey::Meta(MetaKey::RevisionBase),
        encode_revision_base(base),
    );
    let reply = replies(&mut replica, 1, &[put(b"a", b"1")]).remove(0);
    assert_eq!(reply.revision, base);
    let reply = replies(&mut replica, 2, &[put(b"a", b"1")]).remove(0);
    assert_eq!(reply.revision, Revision::new((1 << 60) + (1 << 16)));
}
