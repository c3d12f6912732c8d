//! What a view shows: the records of one database, in order, that are alive by the replicated
//! clock.

use std::ops::Bound;

use kelp_storage::{EntryTerm, Keyspace, LogPosition};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

fn record(value: &[u8]) -> Record {
    Record {
        revision: Revision::new(65_536),
        expire_at: None,
        value: Bytes::copy_from_slice(value),
    }
}

fn write(keyspace: &Keyspace, entries: impl IntoIterator<Item = (StateKey, Bytes)>) {
    let mut batch = WriteBatch::new();
    for (key, value) in entries {
        batch.put(key.encode(), value);
    }
    keyspace.write(batch).unwrap();
}

fn record_key(database: u8, key: &[u8]) -> StateKey {
    StateKey::Record {
        database,
        key: Bytes::copy_from_slice(key),
    }
}

/// A view of records with their keys as values, between keys of other kinds.
fn view_of(keys: &[(u8, &[u8])]) -> StateView {
    let keyspace = keyspace();
    let records = keys
        .iter()
        .map(|(db, key)| (record_key(*db, key), record(key).encode()));
    write(&keyspace, records);
    let expiry = StateKey::Expiry {
        at: StampMillis::new(0),
        database: 0,
        key: Bytes::new(),
    };
    let others = [StateKey::Meta(MetaKey::FeatureVersion), expiry];
    write(
        &keyspace,
        others.map(|key| (key, Bytes::from_static(b"another kind"))),
    );
    StateReader::new(keyspace).view()
}

fn keys_of(view: &StateView, range: ScanRange) -> Vec<Bytes> {
    view.scan(range).map(|found| found.unwrap().0).collect()
}

fn set_clock(keyspace: &Keyspace, clock: u64) {
    let position = LogPosition {
        index: LogIndex::new(1),
        term: EntryTerm { term: 1, leader: 1 },
    };
    let applied = AppliedRecord {
        position,
        clock: StampMillis::new(clock),
    };
    write(
        keyspace,
        [(StateKey::Meta(MetaKey::Applied), applied.encode())],
    );
}

#[test]
fn empty_state_has_nothing_and_says_so() {
    let view = StateReader::new(keyspace()).view();
    assert_eq!(view.get(0, b"key").unwrap(), None);
    assert_eq!(view.applied().unwrap(), None);
    assert_eq!(view.chain_hash().unwrap(), ChainHash::START);
    assert_eq!(view.clock().unwrap(), StampMillis::new(0));
    assert_eq!(view.limits().unwrap(), Limits::default());
    assert!(view.membership().unwrap().is_none());
    assert_eq!(view.scan(ScanRange::all(0)).count(), 0);
}

#[test]
fn scan_never_leaves_its_database() {
    let view = view_of(&[
        (0, b"\xFF\xFF"),
        (1, b""),
        (1, b"\x00"),
        (1, b"\xFF"),
        (2, b""),
        (255, b"z"),
    ]);
    assert_eq!(
        keys_of(&view, ScanRange::all(1)),
        [&b""[..], b"\x00", b"\xFF"]
    );
    assert_eq!(keys_of(&view, ScanRange::all(255)), [&b"z"[..]]);
    let reverse = ScanRange {
        reverse: true,
        ..ScanRange::all(255)
    };
    assert_eq!(keys_of(&view, reverse), [&b"z"[..]]);
}

#[test]
fn scan_whose_bounds_cross_is_empty() {
    let view = view_of(&[(0, b"a"), (0, b"b"), (0, b"c")]);
    let [low, high] = [b"a", b"c"].map(|key| Bytes::from_static(key));
    let crossed = ScanRange {
        start: Bound::Included(high.clone()),
        end: Bound::Included(low.clone()),
        ..ScanRange::all(0)
    };
    assert_eq!(keys_of(&view, crossed).len(), 0);
    let point = ScanRange {
        start: Bound::Excluded(low.clone()),
        end: Bound::Excluded(low),
        ..ScanRange::all(0)
    };
    assert_eq!(keys_of(&view, point).len(), 0);
}

#[test]
fn page_stops_at_its_limits_and_names_the_next_key() {
    let view = view_of(&[(0, b"aa"), (0, b"bb"), (0, b"cc")]);
    let page = |count_max, bytes_max| {
        let page = view
            .page(
                ScanRange::all(0),
                PageLimits {
                    count_max,
                    bytes_max,
                },
            )
            .unwrap();
        (page.records.len(), page.next)
    };
    assert_eq!(page(2, 100), (2, Some(Bytes::from_static(b"cc"))));
    assert_eq!(page(9, 8), (2, Some(Bytes::from_static(b"cc"))));
    assert_eq!(page(9, 7), (1, Some(Bytes::from_static(b"bb"))));
    assert_eq!(page(9, 0), (1, Some(Bytes::from_static(b"bb"))));
    assert_eq!(page(3, 12), (3, None));
}

#[test]
fn count_stops_at_its_bound() {
    let view = view_of(&[(0, b"a"), (0, b"b"), (0, b"c"), (1, b"d")]);
    assert_eq!(view.count(ScanRange::all(0), 10).unwrap(), 3);
    assert_eq!(view.count(ScanRange::all(0), 2).unwrap(), 2);
}

#[test]
fn record_is_dead_once_the_replicated_clock_reaches_its_deadline() {
    let keyspace = keyspace();
    let mortal = Record {
        expire_at: Some(StampMillis::new(100)),
        ..record(b"value")
    };
    write(&keyspace, [(record_key(0, b"key"), mortal.encode())]);
    let reader = StateReader::new(keyspace.clone());
    for (clock, alive) in [(99, true), (100, false), (101, false)] {
        set_clock(&keyspace, clock);
        let view = reader.view();
        assert_eq!(view.get(0, b"key").unwrap().is_some(), alive, "at {clock}");
        assert_eq!(
            view.scan(ScanRange::all(0)).count(),
            usize::from(alive),
            "at {clock}"
        );
    }
}

#[test]
fn corrupt_record_ends_a_scan_with_its_key() {
    let keyspace = keyspace();
    write(
        &keyspace,
        [
            (record_key(0, b"a"), Bytes::from_static(b"?")),
            (record_key(0, b"b"), record(b"b").encode()),
        ],
    );
    let mut scan = StateReader::new(keyspace).view().scan(ScanRange::all(0));
    match scan.next() {
        Some(Err(StateError::Corrupt { key, .. })) => assert_eq!(key, record_key(0, b"a").encode()),
        other => panic!("expected corruption, got {other:?}"),
    }
    assert!(scan.next().is_none());
}

fn short_key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0_u8), Just(1), Just(0xFF)], 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    prop_oneof![
        Just(Bound::Unbounded),
        short_key().prop_map(|key| Bound::Included(key.into())),
        short_key().prop_map(|key| Bound::Excluded(key.into())),
    ]
}

proptest! {
    #[test]
    fn scan_equals_a_filtered_map(
        records in btree_map((0..3_u8, short_key()), short_key(), 0..40),
        database in 0..3_u8,
        start in bound(),
        end in bound(),
        reverse: bool,
        page_count in 1..5_usize,
    ) {
        let keyspace = keyspace();
        let encoded = records
            .iter()
            .map(|((database, key), value)| (record_key(*database, key), record(value).encode()));
        write(&keyspace, encoded);
        let view = StateReader::new(keyspace).view();
        let inside = |key: &[u8]| {
            (match &start {
                Bound::Included(start) => key >= &start[..],
                Bound::Excluded(start) => key > &start[..],
                Bound::Unbounded => true,
            }) && match &end {
                Bound::Included(end) => key <= &end[..],
                Bound::Excluded(end) => key < &end[..],
                Bound::Unbounded => true,
            }
        };
        let mut expected: Vec<(Bytes, Bytes)> = records
            .iter()
            .filter(|((of, key), _)| *of == database && inside(key))
            .map(|((_, key), value)| (key.clone().into(), value.clone().into()))
            .collect();
        if reverse {
            expected.reverse();
        }
        let range = ScanRange { database, start: start.clone(), end: end.clone(), reverse };
        let all: Vec<_> = view
            .scan(range.clone())
            .map(|found| found.unwrap())
            .map(|(key, record)| (key, record.value))
            .collect();
        prop_assert_eq!(&all, &expected);

        let limits = PageLimits { count_max: page_count, bytes_max: usize::MAX };
        let mut paged = Vec::new();
        let mut range = range;
        loop {
            let page = view.page(range.clone(), limits).unwrap();
            paged.extend(page.records.into_iter().map(|(key, record)| (key, record.value)));
            let Some(next) = page.next else { break };
            if reverse {
                range.end = Bound::Included(next);
            } else {
                range.start = Bound::Included(next);
            }
        }
        prop_assert_eq!(paged, expected);
    }
}
