//! Replicas that apply the same log are equal, however they cut it into batches and however often
//! they restart.

use proptest::collection::vec;
use proptest::prelude::*;

use super::against_model::entries;
use super::*;

/// A log of entries, with blanks and memberships between them.
fn log(entries: &[Vec<SubBatch>]) -> Vec<Bytes> {
    let mut log = vec![Bytes::from_static(&[MEMBERSHIP_VERSION, 1])];
    for (index, sub_batches) in (0_u64..).zip(entries) {
        log.push(entry(index * 7 % 5, sub_batches.clone()));
        match index % 8 {
            3 => log.push(Bytes::from_static(&[BLANK_PAYLOAD])),
            7 => log.push(Bytes::from_static(&[MEMBERSHIP_VERSION, 2])),
            _ => {}
        }
    }
    log
}

proptest! {
    #[test]
    fn replicas_agree_however_the_log_is_cut(
        entries in entries(),
        cuts in vec((1..6_usize, any::<bool>()), 1..10),
    ) {
        let log = log(&entries);
        let mut one = Replica::new();
        let outcomes: Vec<_> = log.iter().map(|payload| one.apply(payload).outcome).collect();

        let mut other = Replica::new();
        let mut rest = &log[..];
        let mut other_outcomes = Vec::new();
        for (length, restart) in cuts.into_iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, behind) = rest.split_at(length.min(rest.len()));
            rest = behind;
            let applied = other.apply_together(chunk);
            other_outcomes.extend(applied.into_iter().map(|applied| applied.outcome));
            if restart {
                other.restart();
            }
        }
        prop_assert_eq!(outcomes, other_outcomes);
        prop_assert_eq!(one.dump(), other.dump());
        prop_assert_eq!(one.view().chain_hash().unwrap(), other.view().chain_hash().unwrap());
        prop_assert_eq!(one.view().chain_hash().unwrap(), one.applier.chain_hash());
        one.restart();
    }
}

#[test]
fn log_of_version_1_leaves_its_golden_state() {
    let mut replica = Replica::new();
    let commands = [
        put(b"a", b"1"),
        put(b"", b"refused"),
        delete(b"a"),
        delete(b"a"),
        put(b"b", b""),
        Operation::Announce {
            directory: DatabaseId::from_bytes([3; 16]),
        }
        .command(0),
    ];
    let sub_batches: Vec<Vec<SubBatch>> = (1..=12_u8)
        .map(|number| {
            let batch = u64::from(number);
            let other = id(2, 1 + batch / 4, 1 + batch % 4);
            let skipped = usize::from(number % 5);
            vec![
                sub_batch(id(1, 1, batch), batch.saturating_sub(2), &commands),
                sub_batch(other, 0, &commands[skipped..]),
            ]
        })
        .collect();
    let mut golden = Vec::new();
    for payload in log(&sub_batches) {
        golden.extend_from_slice(&replica.apply(&payload).outcome.encode());
    }
    for (key, value) in replica.dump() {
        for part in [key, value] {
            golden.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
            golden.extend_from_slice(&part);
        }
    }
    crate::golden::check("applied_state.bin", &golden);
}

#[test]
fn operations_of_version_1_leave_their_golden_state() {
    let mut replica = Replica::new();
    let [key, number] = [b"a", b"n"].map(|key| Bytes::from_static(key));
    let mut batch = BatchBuilder::new();
    batch.put(b"b", b"1").unwrap();
    batch.delete(b"absent").unwrap();
    let operations = [
        Operation::Increment {
            key: number.clone(),
            delta: i64::MAX,
        },
        Operation::Increment {
            key: number.clone(),
            delta: 1,
        },
        Operation::Append {
            key: number.clone(),
            value: key.clone(),
        },
        Operation::Increment {
            key: number,
            delta: 1,
        },
        Operation::CompareAndSwap {
            key: key.clone(),
            condition: Condition::Absent,
            value: Some(key.clone()),
        },
        Operation::CompareAndSwap {
            key: key.clone(),
            condition: Condition::Revision(Revision::new(9)),
            value: None,
        },
        Operation::Batch(batch.finish().expect("it has parts")),
        Operation::DeleteRange {
            count_max: 1,
            first: Bytes::new(),
            end: Bytes::new(),
        },
    ];
    let commands = operations.map(|operation| operation.command(1));
    let payload = entry(1, vec![sub_batch(id(1, 1, 1), 0, &commands)]);
    let mut golden = replica.apply(&payload).outcome.encode().to_vec();
    for (key, value) in replica.dump() {
        for part in [key, value] {
            golden.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
            golden.extend_from_slice(&part);
        }
    }
    crate::golden::check("applied_operations.bin", &golden);
}

#[test]
fn chain_hash_tells_different_entries_answers_and_orders_apart() {
    let hash_of = |payloads: &[Bytes]| {
        let mut replica = Replica::new();
        for payload in payloads {
            replica.apply(payload);
        }
        replica.applier.chain_hash()
    };
    let [first, second] =
        [1, 2].map(|node| entry(1, vec![sub_batch(id(node, 1, 1), 0, &[put(b"a", b"b")])]));
    let blank = Bytes::from_static(&[BLANK_PAYLOAD]);
    let hashes = [
        hash_of(&[]),
        hash_of(std::slice::from_ref(&blank)),
        hash_of(&[blank.clone(), blank]),
        hash_of(std::slice::from_ref(&first)),
        hash_of(&[first.clone(), first.clone()]),
        hash_of(&[first.clone(), second.clone()]),
        hash_of(&[second, first]),
    ];
    for (position, hash) in hashes.iter().enumerate() {
        assert!(
            !hashes[..position].contains(hash),
            "hash {position} occurs twice"
        );
    }
}
