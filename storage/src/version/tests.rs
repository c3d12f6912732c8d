//! Lookups and scans over many tables against a map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::batch::Change;
use crate::catalog::tests::shelf::{Shelf, published, state, write_changes};
use crate::catalog::{Catalog, TableChange};
use crate::vfs::MemFs;

/// What one flush writes: keys and whether they are deleted.
type Flush = BTreeMap<Vec<u8>, bool>;

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    vec(0..4_u8, 0..4)
}

fn any_flush() -> impl Strategy<Value = Flush> {
    proptest::collection::btree_map(any_key(), any::<bool>(), 1..12)
}

fn any_bound() -> impl Strategy<Value = Bound<Bytes>> {
    let key = || any_key().prop_map(Bytes::from);
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

/// A newest change per key.
type Model = BTreeMap<Bytes, Change>;

/// Adds `flush` on `level`, cut into tables of at most `table_keys` keys.
fn add(catalog: &Catalog, level: usize, table_keys: usize, sequence: u64, flush: &Flush) {
    let changes: Vec<_> = flush.iter().collect();
    let tables = changes.chunks(if level == 0 { usize::MAX } else { table_keys });
    let added = tables.map(|keys| (level, write_changes(catalog, keys, sequence)));
    let change = TableChange {
        added: added.collect(),
        ..TableChange::default()
    };
    published(catalog.commit(state(catalog).id(), change, |_| {}).unwrap());
}

fn note(model: &mut Model, sequence: u64, flush: &Flush) {
    for (key, deleted) in flush {
        let change = if *deleted {
            Change::Delete
        } else {
            Change::Put(sequence.to_string().into())
        };
        model.insert(Bytes::copy_from_slice(key), change);
    }
}

/// All that the cursors stop at, newest source first decides.
fn scan(
    version: &Arc<Version>,
    bounds: &(Bound<Bytes>, Bound<Bytes>),
    direction: Direction,
) -> Model {
    let mut found = Model::new();
    for mut cursor in version.cursors(SequenceNumber::MAX, bounds, direction) {
        let mut before: Option<Bytes> = None;
        while let Some(peeked) = cursor.peek().unwrap().cloned() {
            let (key, change) = cursor.next().unwrap().unwrap();
            assert_eq!(key, peeked);
            let in_order = before.is_none_or(|before| match direction {
                Direction::Forward => before < key,
                Direction::Reverse => before > key,
            });
            assert!(in_order, "a cursor goes one way");
            before = Some(key.clone());
            found.entry(key).or_insert(change);
        }
        assert_eq!(cursor.next().unwrap(), None);
    }
    found
}

fn within(model: &Model, (start, end): &(Bound<Bytes>, Bound<Bytes>)) -> Model {
    let after_start = |key: &Bytes| match start {
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
        Bound::Unbounded => true,
    };
    let before_end = |key: &Bytes| match end {
        Bound::Included(end) => key <= end,
        Bound::Excluded(end) => key < end,
        Bound::Unbounded => true,
    };
    let inside = model
        .iter()
        .filter(|(key, _)| after_start(key) && before_end(key));
    inside
        .map(|(key, change)| (key.clone(), change.clone()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_version_reads_like_a_map(
        bottom in any_flush(),
        middle in any_flush(),
        newest in vec(any_flush(), 0..3),
        table_keys in 1..5_usize,
        bounds in vec((any_bound(), any_bound()), 4),
    ) {
        let shelf = Shelf::new(MemFs::new());
        let catalog = shelf.open().unwrap();
        let mut model = Model::new();
        for (sequence, (level, flush)) in (1..).zip([(6, &bottom), (2, &middle)]) {
            add(&catalog, level, table_keys, sequence, flush);
            note(&mut model, sequence, flush);
        }
        for (sequence, flush) in (3..).zip(&newest) {
            add(&catalog, 0, table_keys, sequence, flush);
            note(&mut model, sequence, flush);
        }
        let version = state(&catalog);
        for key in [&b""[..], b"\x00", b"\x01\x02", b"\x02\x02\x02", b"\x03", b"\x04"] {
            let expected = model.get(key).cloned();
            let found = version.get(key, SequenceNumber::MAX).unwrap();
            prop_assert_eq!(found.map(Found::into_change), expected.clone());
            match version.get_cached(key, SequenceNumber::MAX) {
                CachedLookup::Hit(found) => prop_assert_eq!(Some(found.into_change()), expected),
                CachedLookup::Absent => prop_assert_eq!(None, expected),
                CachedLookup::NeedsDisk => {}
            }
        }
        for bounds in &bounds {
            for direction in [Direction::Forward, Direction::Reverse] {
                let found = scan(&version, bounds, direction);
                prop_assert_eq!(found, within(&model, bounds));
            }
        }
    }
}

#[test]
fn a_scan_opens_tables_only_as_it_comes_to_them() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let flush: Flush = (0..100).map(|key| (vec![key], false)).collect();
    add(&catalog, 1, 1, 1, &flush);
    let version = state(&catalog);
    assert_eq!(version.level(1).len(), 100);
    // A table in the middle is damaged; a scan that stops before does not meet it.
    let meta = version.level(1)[50].meta();
    let path = catalog.directory().join(meta.number.sstable_name());
    shelf.disk.corrupt(&path, |bytes| bytes[0] ^= 1).unwrap();
    let everything = (Bound::Unbounded, Bound::Unbounded);
    for (direction, stops) in [(Direction::Forward, 50), (Direction::Reverse, 49)] {
        let mut cursors = version.cursors(SequenceNumber::MAX, &everything, direction);
        assert_eq!(cursors.len(), 1, "one cursor for the level");
        for _ in 0..stops {
            assert!(cursors[0].next().unwrap().is_some());
        }
        for _ in 0..2 {
            assert!(cursors[0].next().is_err(), "the error stays");
            assert!(cursors[0].peek().is_err());
        }
    }
}

#[test]
fn a_view_of_the_past_sees_no_newer_table() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let flush: Flush = [(b"k".to_vec(), false)].into();
    add(&catalog, 6, 1, 4, &flush);
    add(&catalog, 0, 1, 9, &flush);
    let version = state(&catalog);
    for (sequence, expected) in [(3, None), (4, Some("4")), (8, Some("4")), (9, Some("9"))] {
        let found = version.get(b"k", SequenceNumber::new(sequence)).unwrap();
        let value = found.map(|found| found.value);
        assert_eq!(value, expected.map(Bytes::from));
    }
}
