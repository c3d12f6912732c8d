//! Tables against the simplest model: the sorted list of their versions.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::internal_key::compare;
use crate::read_view::Direction;

const SEQUENCE_MAX: u64 = 24;

fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![Just(0), Just(0xFF), Just(b'a'), Just(b'b')];
    prop_oneof![
        6 => vec(byte(), 0..4),
        1 => vec(byte(), 8..40),
    ]
}

fn versions() -> impl Strategy<Value = Vec<Version>> {
    let value = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Vec::new())),
        5 => vec(any::<u8>(), 0..20).prop_map(Some),
        1 => vec(Just(7), 100..900).prop_map(Some),
    ];
    let version = (key(), 1..SEQUENCE_MAX, value.clone());
    let hot = (vec(Just(b'a'), 1..3), 1..SEQUENCE_MAX, value);
    (vec(version, 1..100), vec(hot, 0..40)).prop_map(|(some, hot)| {
        let mut sorted = BTreeMap::new();
        for (key, sequence, value) in some.into_iter().chain(hot) {
            sorted.insert((key, u64::MAX - sequence), value);
        }
        let version = |((key, sequence), value)| (key, u64::MAX - sequence, value);
        sorted.into_iter().map(version).collect()
    })
}

fn options() -> impl Strategy<Value = SstableOptions> {
    let target = prop_oneof![Just(1), Just(100), Just(300), Just(4096)];
    let index = prop_oneof![Just(1), Just(200), Just(1 << 17)];
    let filter = prop_oneof![Just(0), Just(10)];
    (target, index, filter, any::<bool>()).prop_map(|(target, index, filter, compress)| {
        SstableOptions {
            block_bytes_target: target,
            compression: if compress {
                Compression::Lz4
            } else {
                Compression::None
            },
            filter_bits_per_key: filter,
            index_bytes_max: index,
        }
    })
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

fn visible<'a>(versions: &'a [Version], key: &[u8], sequence: u64) -> Option<&'a Version> {
    versions
        .iter()
        .find(|version| version.0 == key && version.1 <= sequence)
}

/// The stops of a scan, forward.
fn stops(
    versions: &[Version],
    sequence: u64,
    (start, end): &(Bound<Vec<u8>>, Bound<Vec<u8>>),
) -> Vec<(Bytes, Change)> {
    let mut keys: Vec<_> = versions.iter().map(|version| &version.0).collect();
    keys.dedup();
    keys.into_iter()
        .filter(|key| match start {
            Bound::Included(start) => *key >= start,
            Bound::Excluded(start) => *key > start,
            Bound::Unbounded => true,
        })
        .filter(|key| match end {
            Bound::Included(end) => *key <= end,
            Bound::Excluded(end) => *key < end,
            Bound::Unbounded => true,
        })
        .filter_map(|key| visible(versions, key, sequence))
        .map(|(key, _, value)| {
            let change = value
                .clone()
                .map_or(Change::Delete, |value| Change::Put(value.into()));
            (Bytes::from(key.clone()), change)
        })
        .collect()
}

fn build(options: SstableOptions, versions: &[Version]) -> Arc<SstableReader> {
    let disk = disk();
    let summary = write(&disk, 3, options, versions).unwrap();
    assert_eq!(summary.properties.entry_count, versions.len() as u64);
    open(&disk, &summary).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn lookups_find_the_newest_visible_version(
        versions in versions(),
        options in options(),
        others in vec(key(), 0..20),
    ) {
        let reader = build(options, &versions);
        let keys = versions.iter().map(|version| &version.0).chain(&others);
        for key in keys {
            for sequence in [0, 1, 5, 12, SEQUENCE_MAX, SequenceNumber::MAX.get()] {
                let number = SequenceNumber::new(sequence);
                let before = reader.get_cached(key, number);
                let found = reader.get(key, number).unwrap();
                let expected = visible(&versions, key, sequence);
                let version = found.clone().map(|found| {
                    let sequence = found.sequence.get();
                    let value = found.into_change().into_value().map(Vec::from);
                    (key.clone(), sequence, value)
                });
                prop_assert_eq!(version.as_ref(), expected);
                let cached = found.map_or(CachedLookup::Absent, CachedLookup::Hit);
                prop_assert!(before == CachedLookup::NeedsDisk || before == cached);
                prop_assert_eq!(reader.get_cached(key, number), cached);
            }
        }
    }

    #[test]
    fn scans_stop_once_per_user_key_in_both_directions(
        versions in versions(),
        options in options(),
        bounds in (bound(), bound()),
        sequence in 0..=SEQUENCE_MAX,
    ) {
        let reader = build(options, &versions);
        let mut expected = stops(&versions, sequence, &bounds);
        for direction in [Direction::Forward, Direction::Reverse] {
            let bounds = (bounds.0.clone().map(Bytes::from), bounds.1.clone().map(Bytes::from));
            let sequence = SequenceNumber::new(sequence);
            let mut cursor = SstableCursor::new(reader.clone(), sequence, bounds, direction);
            for stop in &expected {
                prop_assert_eq!(cursor.peek().unwrap(), Some(&stop.0));
                prop_assert_eq!(cursor.next().unwrap(), Some(stop.clone()));
            }
            prop_assert_eq!(cursor.peek().unwrap(), None);
            prop_assert_eq!(cursor.next().unwrap(), None);
            expected.reverse();
        }
    }

    #[test]
    fn entries_are_walked_from_anywhere_in_both_directions(
        versions in versions(),
        options in options(),
        probes in vec((key(), 0..SEQUENCE_MAX), 0..20),
    ) {
        let reader = build(options, &versions);
        prop_assert_eq!(&all(&reader, versions.len()).unwrap(), &versions);
        let mut cursor = EntryCursor::new(Arc::clone(&reader));
        prop_assert_eq!(current(&cursor), None);
        cursor.seek_last().unwrap();
        for version in versions.iter().rev() {
            prop_assert_eq!(current(&cursor), Some(version.clone()));
            cursor.prev().unwrap();
        }
        prop_assert_eq!(current(&cursor), None);
        let trailer = |sequence| Trailer::newest_at(SequenceNumber::new(sequence));
        for (key, sequence) in probes {
            let target = (key.as_slice(), trailer(sequence));
            let at = versions.partition_point(|(key, sequence, value)| {
                let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
                let trailer = Trailer::new(SequenceNumber::new(*sequence), kind);
                compare((key, trailer), target).is_lt()
            });
            cursor.seek(target.0, target.1).unwrap();
            prop_assert_eq!(current(&cursor), versions.get(at).cloned());
            let before = at.checked_sub(1).and_then(|at| versions.get(at));
            if at < versions.len() {
                cursor.prev().unwrap();
                prop_assert_eq!(current(&cursor), before.cloned());
            }
            cursor.seek_before(target.0, target.1).unwrap();
            prop_assert_eq!(current(&cursor), before.cloned());
            if before.is_some() {
                cursor.next().unwrap();
                prop_assert_eq!(current(&cursor), versions.get(at).cloned());
            }
        }
    }
}
