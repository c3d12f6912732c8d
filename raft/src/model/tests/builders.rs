//! What the builders take and where they stop.

use super::*;

fn value(bytes: usize) -> Operation {
    Operation::Put {
        key: Bytes::from_static(b"k"),
        value: Bytes::from(vec![7; bytes]),
    }
}

#[test]
fn borrowed_operation_is_encoded_like_an_owned_command() {
    let head = CommandHead {
        client: ClientId::new([9; 16]),
        sequence: 4,
        ..CommandHead::new(CommandOpcode::PUT, 1)
    };
    let operation = put(b"key", b"value");
    let owned = Command {
        client: head.client,
        sequence: 4,
        ..operation.command(1)
    };
    let mut builder = SubBatchBuilder::new();
    assert_eq!(builder.append(&owned), Ok(0));
    assert_eq!(builder.append_operation(head, &operation.borrow()), Ok(1));
    let sub_batch = builder.take(id(1, 1, 1), BatchNumber::FIRST);
    let commands: Vec<_> = sub_batch.commands().collect::<Result<_, _>>().unwrap();
    assert_eq!(commands[0], commands[1]);
    assert!(builder.is_empty());
}

#[test]
fn sub_batch_is_full_at_its_target_but_takes_one_large_command() {
    let mut builder = SubBatchBuilder::new();
    assert_eq!(builder.append(&value(VALUE_BYTES_MAX).command(0)), Ok(0));
    assert_eq!(builder.append(&value(1).command(0)), Err(AppendError::Full));
    let large = builder.take(id(1, 1, 1), BatchNumber::FIRST);
    let mut entry = EntryBuilder::new();
    entry.push(large).unwrap();
    assert!(Entry::decode(&entry.finish(StampMillis::new(1))).is_ok());
}

#[test]
fn command_over_the_limit_is_refused_for_good() {
    let command = value(COMMAND_BYTES_MAX).command(0);
    let bytes = command.encoded_bytes();
    let refused = SubBatchBuilder::new().append(&command);
    assert_eq!(refused, Err(AppendError::CommandTooLarge { bytes }));
}

#[test]
fn sub_batch_takes_as_many_commands_as_an_entry_has_positions() {
    let mut builder = SubBatchBuilder::new();
    let delete = Operation::Delete {
        key: Bytes::from_static(b"k"),
    }
    .command(0);
    for position in 0..ENTRY_COMMANDS_MAX {
        assert_eq!(builder.append(&delete), Ok(position));
    }
    assert_eq!(builder.append(&delete), Err(AppendError::Full));
}

#[test]
fn entry_builder_equals_the_entry_that_it_builds() {
    let first = sub_batch(id(1, 1, 1), &[put(b"a", b"1").command(0)]);
    let second = sub_batch(id(2, 5, 9), &[put(b"b", b"2").command(0)]);
    let mut builder = EntryBuilder::new();
    builder.push(first.clone()).unwrap();
    builder.push(second.clone()).unwrap();
    assert_eq!(builder.command_count(), 2);
    let bytes = builder.finish(StampMillis::new(5));
    let entry = Entry {
        stamp: StampMillis::new(5),
        sub_batches: vec![first, second],
    };
    assert_eq!(bytes, entry.encode());
    assert!(builder.is_empty());
}

#[test]
fn entry_is_full_at_its_target() {
    let half = sub_batch(id(1, 1, 1), &[value(ENTRY_BYTES_TARGET / 2).command(0)]);
    let mut builder = EntryBuilder::new();
    builder.push(half.clone()).unwrap();
    assert!(!builder.fits(&half));
    assert_eq!(builder.push(half), Err(EntryFull));
}

#[test]
fn entry_is_full_at_its_last_position() {
    let delete = Operation::Delete { key: Bytes::new() }.command(0);
    let with = |count| sub_batch(id(1, 1, 1), &vec![delete.clone(); count]);
    let mut builder = EntryBuilder::new();
    builder.push(with(ENTRY_COMMANDS_MAX - 1)).unwrap();
    assert_eq!(builder.push(with(2)), Err(EntryFull));
    assert_eq!(builder.push(with(1)), Ok(()));
}
