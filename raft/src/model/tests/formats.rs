//! The bytes of each format, and the inputs that it refuses.

use bytes::BytesMut;

use super::*;
use crate::golden;
use crate::model::limits::COMMAND_HEAD_BYTES_MIN;

/// An entry with everything that version 1 can say.
fn sample_entry() -> Entry {
    let identified = Command {
        client: ClientId::new(*b"0123456789abcdef"),
        sequence: 0x0102_0304_0506_0708,
        ..put(b"key", b"value").command(3)
    };
    let unknown = Command {
        flags: 0x7F,
        ..Command::new(
            CommandHead::new(CommandOpcode::new(0xEE), 255),
            Bytes::from_static(b"body"),
        )
    };
    let delete = Operation::Delete {
        key: Bytes::from_static(b"\x00\xFF"),
    }
    .command(0);
    Entry {
        stamp: StampMillis::new(1_700_000_000_123),
        sub_batches: vec![
            sub_batch(
                id(1, 2, 3),
                &[put(b"a", b"").command(0), delete, identified],
            ),
            sub_batch(id(0xFFFE, 1, u64::MAX), &[]),
            sub_batch(id(2, 1, 1), &[unknown]),
        ],
    }
}

fn sample_replies() -> Vec<CommandReply> {
    let value = Bytes::from_static(b"old");
    vec![
        CommandReply::done(Revision::new(0x0001_0000)),
        CommandReply::of(ReplyStatus::NotFound),
        CommandReply::done(Revision::new(0x0001_0002)),
        CommandReply {
            status: ReplyStatus::ConditionFalse,
            revision: Revision::new(7),
            value,
        },
        CommandReply::of(ReplyStatus::KeyTooLong),
    ]
}

fn sample_outcome() -> EntryOutcome {
    EntryOutcome {
        index: LogIndex::new(9),
        term: Term::new(4),
        sub_batches: vec![
            SubBatchOutcome::Executed(sample_replies()),
            SubBatchOutcome::ExecutedEarlier(vec![]),
            SubBatchOutcome::ExecutedForgotten,
            SubBatchOutcome::Gap {
                expected: BatchNumber::new(5),
            },
            SubBatchOutcome::StaleBoot,
        ],
    }
}

#[test]
fn entry_has_its_golden_bytes_and_reads_back() {
    let entry = sample_entry();
    let bytes = entry.encode();
    golden::check("entry.bin", &bytes);
    assert_eq!(Entry::decode(&bytes), Ok(entry));
}

#[test]
fn entry_outcome_has_its_golden_bytes_and_reads_back() {
    let outcome = sample_outcome();
    let bytes = outcome.encode();
    golden::check("entry_outcome.bin", &bytes);
    assert_eq!(EntryOutcome::decode(&bytes), Ok(outcome));
}

#[test]
fn reply_that_follows_its_predecessor_costs_two_bytes() {
    let replies: Vec<_> = (0..100)
        .map(|position| CommandReply::done(Revision::new(65_536 + position)))
        .collect();
    let mut out = BytesMut::new();
    encode_replies(&replies, &mut out);
    assert_eq!(out.len(), 5 + 8 + 100 * 2);
    assert_eq!(decode_replies(&out.freeze()), Ok(replies));
}

#[test]
fn every_reply_status_has_a_number_of_its_own() {
    let numbers: Vec<u8> = (0..=u8::MAX)
        .filter(|&n| ReplyStatus::from_number(n).is_some())
        .collect();
    let expected: Vec<u8> = (0..=8).chain(16..=22).collect();
    assert_eq!(numbers, expected);
    for number in numbers {
        assert_eq!(
            ReplyStatus::from_number(number).map(ReplyStatus::get),
            Some(number)
        );
    }
}

#[test]
fn command_without_identity_costs_seven_bytes_and_its_body() {
    let command = put(b"key", b"value").command(0);
    let mut out = BytesMut::new();
    command.encode_into(&mut out);
    assert_eq!(out.len(), 7 + 2 + 3 + 5);
    assert_eq!(out.len(), command.encoded_bytes());
}

#[test]
fn entry_of_another_version_is_refused_by_its_version() {
    let mut bytes = BytesMut::from(&sample_entry().encode()[..]);
    bytes[0] = 2;
    let expected = DecodeError::Version {
        what: "entry",
        version: 2,
    };
    assert_eq!(Entry::decode(&bytes.freeze()), Err(expected));
}

#[test]
fn entry_cut_short_or_with_a_byte_too_many_is_refused() {
    let bytes = sample_entry().encode();
    for length in 0..bytes.len() {
        assert!(
            Entry::decode(&bytes.slice(..length)).is_err(),
            "cut to {length}"
        );
    }
    let mut longer = BytesMut::from(&bytes[..]);
    longer.extend_from_slice(&[0]);
    assert!(Entry::decode(&longer.freeze()).is_err());
}

#[test]
fn batch_number_zero_is_refused() {
    let bytes = sub_batch(id(1, 1, 0), &[]).encode();
    assert!(SubBatch::decode(&bytes).is_err());
}

#[test]
fn command_count_that_the_bytes_cannot_hold_is_refused() {
    let mut lying = sub_batch(id(1, 1, 1), &[put(b"a", b"b").command(0)]);
    lying.command_count = 2;
    assert!(SubBatch::decode(&lying.encode()).is_err());
}

#[test]
fn sub_batch_whose_count_is_wrong_fails_the_check_at_the_door() {
    let long = put(b"key", b"a long value in which two heads have room").command(0);
    let mut lying = sub_batch(id(1, 1, 1), &[long]);
    assert_eq!(lying.check_commands(), Ok(()));
    lying.command_count = 2;
    assert_eq!(SubBatch::decode(&lying.encode()), Ok(lying.clone()));
    assert!(lying.check_commands().is_err());
}

#[test]
fn entry_with_more_commands_than_positions_is_refused() {
    let command = Operation::Delete { key: Bytes::new() }.command(0);
    let half = sub_batch(id(1, 1, 1), &vec![command.clone(); ENTRY_COMMANDS_MAX / 2]);
    let mut entry = Entry {
        stamp: StampMillis::new(0),
        sub_batches: vec![half.clone(), half],
    };
    assert!(Entry::decode(&entry.encode()).is_ok());
    entry.sub_batches.push(sub_batch(id(1, 1, 2), &[command]));
    assert!(Entry::decode(&entry.encode()).is_err());
}

#[test]
fn decoded_commands_share_the_memory_of_the_entry() {
    let bytes = sample_entry().encode();
    let entry = Entry::decode(&bytes).unwrap();
    let whole = bytes.as_ptr_range();
    let part = entry.sub_batches[0].commands.as_ptr_range();
    assert!(whole.contains(&part.start) && part.end <= whole.end);
}

#[test]
fn identity_flag_without_identity_is_refused() {
    let mut bytes = vec![1, 0, 0x80, 0, 0, 0, 0];
    bytes.extend_from_slice(&[0; 24]);
    assert!(Command::decode(&Bytes::from(bytes)).is_err());
}

#[test]
fn operation_tells_unknown_opcode_flags_and_body_apart() {
    let command = put(b"a", b"b").command(0);
    let with = |change: fn(&mut Command)| {
        let mut command = command.clone();
        change(&mut command);
        Operation::decode(&command)
    };
    assert_eq!(with(|_| ()), Ok(put(b"a", b"b")));
    assert_eq!(
        with(|command| command.opcode = CommandOpcode::SWEEP),
        Err(OperationError::Opcode(CommandOpcode::SWEEP))
    );
    assert_eq!(
        with(|command| command.flags = 1),
        Err(OperationError::Flags { flags: 1 })
    );
    let short = |command: &mut Command| command.body = Bytes::from_static(&[0, 9, 1]);
    assert_eq!(with(short), Err(OperationError::Body));
}

/// Every operation that version 1 executes, in each of its forms.
fn sample_operations() -> Vec<Operation> {
    let key = Bytes::from_static(b"key");
    let conditions = [
        Condition::Revision(Revision::new(0x0102_0304)),
        Condition::Value(Bytes::from_static(b"old")),
        Condition::Exists,
        Condition::Absent,
    ];
    let mut operations = vec![
        put(b"key", b"value"),
        Operation::Delete { key: key.clone() },
        Operation::Announce {
            directory: DatabaseId::from_bytes([7; 16]),
        },
        Operation::Increment {
            key: key.clone(),
            delta: -2,
        },
        Operation::Append {
            key: key.clone(),
            value: Bytes::from_static(b"more"),
        },
        Operation::DeleteRange {
            count_max: 1_000,
            first: Bytes::from_static(b"a"),
            end: Bytes::from_static(b"b"),
        },
        Operation::Batch(sample_batch()),
    ];
    for (number, condition) in conditions.into_iter().enumerate() {
        operations.push(Operation::CompareAndSwap {
            key: key.clone(),
            condition,
            value: (number % 2 == 0).then(|| Bytes::from_static(b"new")),
        });
    }
    operations
}

fn sample_batch() -> Batch {
    let mut batch = BatchBuilder::new();
    batch.put(b"a", b"1").unwrap();
    batch.delete(b"b").unwrap();
    batch.finish().expect("it has parts")
}

#[test]
fn operations_have_their_golden_bytes_and_read_back() {
    let mut bytes = BytesMut::new();
    for operation in sample_operations() {
        let command = operation.command(3);
        let (start, body_bytes) = (bytes.len(), operation.borrow().body_bytes());
        command.encode_into(&mut bytes);
        assert_eq!(bytes.len() - start, COMMAND_HEAD_BYTES_MIN + body_bytes);
        assert_eq!(Operation::decode(&command), Ok(operation));
    }
    golden::check("operations.bin", &bytes);
}

#[test]
fn operation_cut_short_is_refused_or_means_something_else() {
    for operation in sample_operations() {
        let command = operation.command(0);
        for length in 0..command.body.len() {
            let body = command.body.slice(..length);
            let cut = Operation::decode(&Command {
                body,
                ..command.clone()
            });
            assert_ne!(cut.as_ref(), Ok(&operation), "cut to {length}");
        }
    }
}

#[test]
fn batch_holds_puts_and_deletes_and_nothing_else() {
    let command = Operation::Batch(sample_batch()).command(0);
    let batch = sample_batch();
    let parts: Vec<_> = batch.borrow().parts().collect();
    assert_eq!(
        parts,
        [
            OperationRef::Put {
                key: b"a",
                value: b"1"
            },
            OperationRef::Delete { key: b"b" },
        ]
    );
    assert_eq!(batch.borrow().count(), 2);
    assert!(BatchBuilder::new().finish().is_none());
    let first_opcode = 2;
    let with = |position: usize, byte: u8| {
        let mut body = BytesMut::from(&command.body[..]);
        body[position] = byte;
        let body = body.freeze();
        Operation::decode(&Command {
            body,
            ..command.clone()
        })
    };
    for opcode in [0, CommandOpcode::BATCH.get(), CommandOpcode::APPEND.get()] {
        assert_eq!(with(first_opcode, opcode), Err(OperationError::Body));
    }
    let flags = with(first_opcode + 1, 1);
    assert_eq!(flags, Err(OperationError::Flags { flags: 1 }));
    for count in [0, 1, 3] {
        assert_eq!(with(1, count), Err(OperationError::Body), "{count} parts");
    }
}

#[test]
fn batch_is_full_at_the_largest_count() {
    let mut batch = BatchBuilder::new();
    for _ in 0..u16::MAX {
        assert_eq!(batch.delete(b"k"), Ok(()));
    }
    assert_eq!(batch.delete(b"k"), Err(AppendError::Full));
    let batch = batch.finish().expect("it has parts");
    assert_eq!(batch.borrow().count(), usize::from(u16::MAX));
}

#[test]
fn cluster_id_is_written_as_hexadecimal_digits_and_read_back() {
    let id = ClusterId::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
    let text = id.to_string();
    assert_eq!(text, "000102030405060708090a0b0c0d0eff");
    assert_eq!(text.parse(), Ok(id));
    for wrong in [
        "",
        "00",
        "+00102030405060708090a0b0c0d0eff",
        "zz0102030405060708090a0b0c0d0eff",
    ] {
        assert_eq!(
            wrong.parse::<ClusterId>(),
            Err(ParseClusterIdError),
            "{wrong}"
        );
    }
}
