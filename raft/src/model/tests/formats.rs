//! The bytes of each format, and the inputs that it refuses.

use bytes::BytesMut;

use super::*;
use crate::golden;

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
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 16, 17, 18, 19, 20, 21, 22]);
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
