//! Whatever is encoded reads back, and whatever is read neither panics nor takes memory beyond its
//! size.

use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn bytes(length_max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=length_max).prop_map(Bytes::from)
}

fn commands() -> impl Strategy<Value = Command> {
    let identity = prop_oneof![
        Just(([0; 16], 0)),
        (any::<[u8; 16]>(), any::<u64>()),
        (Just([0; 16]), any::<u64>()),
    ];
    (any::<u8>(), any::<u8>(), 0..0x80_u8, identity, bytes(40)).prop_map(
        |(opcode, database, flags, (client, sequence), body)| Command {
            opcode: CommandOpcode::new(opcode),
            database,
            flags,
            client: ClientId::new(client),
            sequence,
            body,
        },
    )
}

fn sub_batches() -> impl Strategy<Value = SubBatch> {
    let numbers = (any::<u16>(), any::<u64>(), 1..=u64::MAX, any::<u64>());
    (numbers, vec(commands(), 0..6)).prop_map(|((node, boot, batch, floor), commands)| SubBatch {
        floor: BatchNumber::new(floor),
        ..sub_batch(id(node, boot, batch), &commands)
    })
}

fn replies() -> impl Strategy<Value = Vec<CommandReply>> {
    let status = prop_oneof![
        Just(ReplyStatus::Ok),
        Just(ReplyStatus::NotFound),
        Just(ReplyStatus::ConditionFalse),
        Just(ReplyStatus::Forbidden),
    ];
    let revision = prop_oneof![0..4_u64, 65_536..65_540_u64, any::<u64>()];
    let reply = (status, revision, bytes(6)).prop_map(|(status, revision, value)| CommandReply {
        status,
        revision: Revision::new(revision),
        value,
    });
    vec(reply, 0..8)
}

fn outcomes() -> impl Strategy<Value = SubBatchOutcome> {
    prop_oneof![
        replies().prop_map(SubBatchOutcome::Executed),
        replies().prop_map(SubBatchOutcome::ExecutedEarlier),
        Just(SubBatchOutcome::ExecutedForgotten),
        any::<u64>().prop_map(|number| SubBatchOutcome::Gap {
            expected: BatchNumber::new(number)
        }),
        Just(SubBatchOutcome::StaleBoot),
    ]
}

/// Bytes that are arbitrary, or a legal encoding with a few bytes changed, so that they get far
/// into the decoders.
fn hostile(legal: impl Strategy<Value = Bytes>) -> impl Strategy<Value = Bytes> {
    let damage = vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let damaged = (legal, damage, any::<prop::sample::Index>()).prop_map(|(bytes, damage, end)| {
        let mut bytes = BytesMut::from(&bytes[..]);
        for (position, byte) in damage {
            if !bytes.is_empty() {
                let position = position.index(bytes.len());
                bytes[position] = byte;
            }
        }
        if end.index(4) == 0 {
            bytes.truncate(end.index(bytes.len() + 1));
        }
        bytes.freeze()
    });
    prop_oneof![bytes(200), damaged]
}

fn replies_memory(replies: &Vec<CommandReply>) -> usize {
    replies.capacity() * size_of::<CommandReply>()
}

fn outcome_memory(outcome: &SubBatchOutcome) -> usize {
    match outcome {
        SubBatchOutcome::Executed(replies) | SubBatchOutcome::ExecutedEarlier(replies) => {
            replies_memory(replies)
        }
        _ => 0,
    }
}

proptest! {
    #[test]
    fn command_reads_back(command in commands()) {
        let mut out = BytesMut::new();
        command.encode_into(&mut out);
        prop_assert_eq!(out.len(), command.encoded_bytes());
        prop_assert_eq!(Command::decode(&out.freeze()), Ok(command));
    }

    #[test]
    fn commands_of_a_sub_batch_read_back_one_by_one(commands in vec(commands(), 0..6)) {
        let sub_batch = sub_batch(id(1, 1, 1), &commands);
        prop_assert_eq!(sub_batch.check_commands(), Ok(()));
        let read: Vec<_> = sub_batch
            .commands()
            .map(|command| command.map(|command| {
                Command::new(command.head, Bytes::copy_from_slice(command.body))
            }))
            .collect::<Result<_, _>>()
            .unwrap();
        prop_assert_eq!(read, commands);
    }

    #[test]
    fn entry_reads_back(stamp in any::<u64>(), sub_batches in vec(sub_batches(), 0..5)) {
        let entry = Entry { stamp: StampMillis::new(stamp), sub_batches };
        prop_assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
    }

    #[test]
    fn operation_reads_back(key in bytes(40), value in bytes(40), database in any::<u8>()) {
        let operations = [
            Operation::Put { key: key.clone(), value: value.clone() },
            Operation::Delete { key: key.clone() },
            Operation::Append { key: key.clone(), value: value.clone() },
            Operation::Increment { key: key.clone(), delta: i64::from(database) - 100 },
            Operation::DeleteRange { count_max: database.into(), first: key.clone(), end: value.clone() },
            Operation::CompareAndSwap {
                key: key.clone(),
                condition: Condition::Value(value.clone()),
                value: Some(value.clone()),
            },
            Operation::CompareAndSwap { key, condition: Condition::Absent, value: None },
        ];
        for operation in operations {
            prop_assert_eq!(Operation::decode(&operation.command(database)), Ok(operation));
        }
    }

    #[test]
    fn outcome_reads_back(sub_batches in vec(outcomes(), 0..5), index: u64, term: u64) {
        for outcome in &sub_batches {
            prop_assert_eq!(&SubBatchOutcome::decode(&outcome.encode()), &Ok(outcome.clone()));
        }
        let outcome =
            EntryOutcome { index: LogIndex::new(index), term: Term::new(term), sub_batches };
        prop_assert_eq!(EntryOutcome::decode(&outcome.encode()), Ok(outcome));
    }

    #[test]
    fn hostile_entry_takes_memory_in_proportion(
        bytes in hostile(vec(sub_batches(), 0..4).prop_map(|sub_batches| {
            Entry { stamp: StampMillis::new(1), sub_batches }.encode()
        }))
    ) {
        if let Ok(entry) = Entry::decode(&bytes) {
            prop_assert!(entry.sub_batches.capacity() * size_of::<SubBatch>() <= 64 * bytes.len());
            for sub_batch in &entry.sub_batches {
                prop_assert!(sub_batch.commands().count() <= sub_batch.commands.len());
                for command in sub_batch.commands().flatten() {
                    let _ = OperationRef::decode(&command);
                }
            }
            prop_assert_eq!(entry.encode(), bytes);
        }
    }

    #[test]
    fn hostile_outcome_takes_memory_in_proportion(
        bytes in hostile(vec(outcomes(), 0..4).prop_map(|sub_batches| {
            EntryOutcome { index: LogIndex::new(1), term: Term::new(1), sub_batches }.encode()
        }))
    ) {
        let limit = 64 * bytes.len();
        if let Ok(outcome) = EntryOutcome::decode(&bytes) {
            let outcomes = outcome.sub_batches.capacity() * size_of::<SubBatchOutcome>();
            let replies: usize = outcome.sub_batches.iter().map(outcome_memory).sum();
            prop_assert!(outcomes + replies <= limit);
        }
        if let Ok(replies) = decode_replies(&bytes) {
            prop_assert!(replies_memory(&replies) <= limit);
        }
        let _ = SubBatchOutcome::decode(&bytes);
        let _ = SubBatch::decode(&bytes);
        let _ = Command::decode(&bytes);
    }
}
