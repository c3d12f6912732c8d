//! Random entries, with sub-batches repeated, missing, from older boots and with any floor, do what
//! the model does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::plain_model::PlainModel;
use super::*;
use crate::state::{ScanRange, StateView};

/// A command over few keys, so that they meet.
pub(super) fn command() -> impl Strategy<Value = Command> {
    let key = vec(prop_oneof![Just(0_u8), Just(b'a'), Just(0xFF)], 0..3).prop_map(Bytes::from);
    let digits = (-20..20_i64).prop_map(|number| Bytes::from(number.to_string()));
    let value = prop_oneof![vec(any::<u8>(), 0..4).prop_map(Bytes::from), digits];
    let condition = prop_oneof![
        (0..3_u64).prop_map(|position| Condition::Revision(Revision::new(position))),
        value.clone().prop_map(Condition::Value),
        Just(Condition::Exists),
        Just(Condition::Absent),
    ];
    let delta = prop_oneof![-20..20_i64, Just(i64::MIN), Just(i64::MAX)];
    let operation = prop_oneof![
        3 => (key.clone(), value.clone()).prop_map(|(key, value)| Operation::Put { key, value }),
        2 => key.clone().prop_map(|key| Operation::Delete { key }),
        1 => (0..2_u8).prop_map(|number| Operation::Announce {
            directory: DatabaseId::from_bytes([number; 16]),
        }),
        2 => (key.clone(), condition, prop::option::of(value.clone())).prop_map(
            |(key, condition, value)| Operation::CompareAndSwap { key, condition, value }
        ),
        2 => (key.clone(), delta).prop_map(|(key, delta)| Operation::Increment { key, delta }),
        2 => (key.clone(), value.clone()).prop_map(|(key, value)| Operation::Append { key, value }),
        1 => (0..4_u32, key.clone(), key.clone()).prop_map(|(count_max, first, end)| {
            Operation::DeleteRange { count_max, first, end }
        }),
        1 => vec((key, prop::option::of(value)), 1..4).prop_map(|parts| batch(&parts)),
    ];
    (operation, prop_oneof![Just(0_u8), Just(255)], 0..20_u8).prop_map(
        |(operation, database, dice)| {
            let mut command = operation.command(database);
            if dice == 0 {
                command.opcode = CommandOpcode::TRANSACTION;
            }
            command
        },
    )
}

/// Puts, and deletes where there is no value.
fn batch(parts: &[(Bytes, Option<Bytes>)]) -> Operation {
    let mut batch = BatchBuilder::new();
    for (key, value) in parts {
        match value {
            Some(value) => batch.put(key, value).unwrap(),
            None => batch.delete(key).unwrap(),
        }
    }
    Operation::Batch(batch.finish().expect("it has parts"))
}

/// A sub-batch near those that are due, so that every rule is met.
pub(super) fn sub_batches() -> impl Strategy<Value = SubBatch> {
    (1..3_u16, 1..4_u64, 1..7_u64, 0..8_u64, vec(command(), 0..5)).prop_map(
        |(node, boot, batch, floor, commands)| {
            // Two thirds of all sub-batches belong to one boot, so that it gets far.
            sub_batch(id(node, boot.min(2), batch), floor, &commands)
        },
    )
}

/// Entries of a few sub-batches each.
pub(super) fn entries() -> impl Strategy<Value = Vec<Vec<SubBatch>>> {
    vec(vec(sub_batches(), 0..4), 1..25)
}

fn content(view: &StateView, database: u8) -> Vec<(Bytes, Revision, Bytes)> {
    view.scan(ScanRange::all(database))
        .map(|found| found.unwrap())
        .map(|(key, record)| (key, record.revision, record.value))
        .collect()
}

proptest! {
    #[test]
    fn outcomes_and_states_equal_the_model_after_each_sub_batch(entries in entries()) {
        let mut replica = Replica::new();
        let mut model = PlainModel::default();
        for (index, sub_batches) in (0..).zip(&entries) {
            let applied = replica.apply(&entry(index, sub_batches.clone()));
            let mut first = 0;
            prop_assert_eq!(applied.views.len(), sub_batches.len());
            for (number, sub_batch) in sub_batches.iter().enumerate() {
                let executed_before = model.executed.contains(&sub_batch.id);
                let expected = model.apply(index, first, sub_batch);
                first += u64::from(sub_batch.command_count);
                prop_assert_eq!(&applied.outcome.sub_batches[number], &expected);
                let executes = matches!(expected, SubBatchOutcome::Executed(_));
                prop_assert!(!(executed_before && executes), "{:?} twice", sub_batch.id);
                let view = &applied.views[number];
                prop_assert_eq!(view.applied().unwrap(), Some(LogIndex::new(index)));
                for database in [0, 255] {
                    prop_assert_eq!(content(view, database), model.database(database));
                }
            }
        }
        prop_assert_eq!(replica.view().clock().unwrap().get(), entries.len() as u64 - 1);
    }

    #[test]
    fn sender_that_repeats_until_answered_has_each_sub_batch_executed_once_and_in_order(
        sizes in vec(0..4_usize, 1..8),
        deliveries in vec((any::<prop::sample::Index>(), 0..3_u8), 1..60),
    ) {
        let sent: Vec<_> = (1..)
            .zip(&sizes)
            .map(|(batch, size)| {
                let key = [u8::try_from(batch).unwrap()];
                sub_batch(id(1, 1, batch), 1, &vec![put(&key, b""); *size])
            })
            .collect();
        let mut replica = Replica::new();
        let mut order = Vec::new();
        let mut first_replies = BTreeMap::new();
        // What the links did, and then every sub-batch once more, as a sender does that waits for
        // answers.
        let random = deliveries.into_iter().map(|(which, _)| which.index(sent.len()));
        for which in random.chain(0..sent.len()) {
            match replica.send(sent[which].clone()) {
                SubBatchOutcome::Executed(replies) => {
                    order.push(which);
                    first_replies.insert(which, replies);
                }
                SubBatchOutcome::ExecutedEarlier(replies) => {
                    prop_assert_eq!(Some(&replies), first_replies.get(&which));
                }
                SubBatchOutcome::Gap { expected } => {
                    let due = u64::try_from(order.len()).unwrap() + 1;
                    prop_assert_eq!(expected, BatchNumber::new(due));
                }
                other => prop_assert!(false, "unexpected {other:?}"),
            }
        }
        prop_assert_eq!(order, (0..sent.len()).collect::<Vec<_>>());
    }
}
