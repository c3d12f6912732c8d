use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::internal_key::{Kind, compare};
use crate::sequence_number::SequenceNumber;

type Version = (Vec<u8>, Trailer, Vec<u8>);

/// Versions in order.
fn versions() -> impl Strategy<Value = Vec<Version>> {
    let byte = || prop_oneof![Just(0), Just(0xFF), Just(b'a')];
    let version = (
        vec(byte(), 0..6),
        1..9_u64,
        any::<bool>(),
        vec(byte(), 0..9),
    );
    vec(version, 1..80).prop_map(|list| {
        let mut sorted = BTreeMap::new();
        for (key, sequence, put, value) in list {
            sorted.insert((key, u64::MAX - sequence), (put, value));
        }
        let version = |((key, sequence), (put, value)): ((Vec<u8>, u64), (bool, Vec<u8>))| {
            let kind = if put { Kind::Put } else { Kind::Delete };
            let sequence = SequenceNumber::new(u64::MAX - sequence);
            (key, Trailer::new(sequence, kind), value)
        };
        sorted.into_iter().map(version).collect()
    })
}

fn block(versions: &[Version]) -> Block {
    let mut builder = BlockBuilder::default();
    for (key, trailer, value) in versions {
        let before = builder.bytes();
        builder.add(key, *trailer, value);
        assert!(builder.bytes() - before <= BlockBuilder::entry_bytes_max(key, value));
    }
    let bytes_max = builder.bytes();
    let bytes = builder.finish(Bytes::copy_from_slice);
    assert!(bytes.len() <= bytes_max);
    assert!(builder.is_empty());
    Block::decode(bytes).unwrap()
}

fn current(cursor: &BlockCursor) -> Option<Version> {
    cursor.is_valid().then(|| {
        assert_eq!(cursor.value(), cursor.value_slice());
        let (key, value) = (cursor.user_key().to_vec(), cursor.value().to_vec());
        (key, cursor.trailer(), value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn a_block_gives_back_what_was_put_in(versions in versions(), probes in versions()) {
        let mut cursor = BlockCursor::new(block(&versions));
        prop_assert_eq!(current(&cursor), None);
        cursor.seek_first().unwrap();
        for version in &versions {
            prop_assert_eq!(current(&cursor), Some(version.clone()));
            cursor.next().unwrap();
        }
        prop_assert_eq!(current(&cursor), None);
        cursor.seek_last().unwrap();
        for version in versions.iter().rev() {
            prop_assert_eq!(current(&cursor), Some(version.clone()));
            cursor.prev().unwrap();
        }
        prop_assert_eq!(current(&cursor), None);

        for (key, trailer, _) in probes.iter().chain(&versions) {
            let position = versions
                .iter()
                .position(|other| compare((&other.0, other.1), (key, *trailer)).is_ge());
            cursor.seek(key, *trailer).unwrap();
            prop_assert_eq!(current(&cursor), position.map(|at| versions[at].clone()));
            if let Some(at) = position {
                cursor.prev().unwrap();
                prop_assert_eq!(current(&cursor), at.checked_sub(1).map(|at| versions[at].clone()));
            }
        }
    }

    #[test]
    fn a_block_of_arbitrary_bytes_never_panics(
        bytes in vec(prop_oneof![any::<u8>(), 0..4_u8], 0..120),
        restarts in 0..4_u8,
        flag in prop_oneof![Just(0_u8), Just(0x10), any::<u8>()],
    ) {
        let mut ended = bytes.clone();
        ended.extend_from_slice(&[restarts, 0, 0, flag]);
        for bytes in [bytes, ended] {
            let Ok(block) = Block::decode(bytes.into()) else { continue };
            for restart in 0..block.restart_count {
                let _ = block.restart(restart);
            }
            let mut cursor = BlockCursor::new(block);
            let _ = cursor.seek(b"a", Trailer::BEFORE_ALL);
            let mut walked = cursor.seek_first();
            while walked.is_ok() && cursor.is_valid() {
                let _ = (cursor.value(), cursor.trailer().sequence());
                walked = cursor.next();
            }
            let mut walked = cursor.seek_last();
            while walked.is_ok() && cursor.is_valid() {
                walked = cursor.prev();
            }
        }
    }
}

#[test]
fn restart_points_are_wide_where_they_must_be() {
    for (value_bytes, wide) in [(1_000, false), (10_000, true)] {
        let versions: Vec<_> = (0..60_u8)
            .map(|number| {
                (
                    vec![number],
                    Trailer::new(SequenceNumber::new(1), Kind::Put),
                    vec![number; value_bytes],
                )
            })
            .collect();
        let block = block(&versions);
        assert_eq!((block.wide, block.restart_count), (wide, 4));
        let mut cursor = BlockCursor::new(block);
        for version in &versions {
            cursor.seek(&version.0, Trailer::BEFORE_ALL).unwrap();
            assert_eq!(current(&cursor), Some(version.clone()));
        }
    }
}
