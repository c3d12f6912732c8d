//! The keyspace as its users see it; `model` compares random histories with the simplest
//! implementation.

mod concurrency;
mod model;

use std::ops::{Bound, Deref};

use bytes::Bytes;

use super::*;
use crate::database::Database;
use crate::database::tests::stage::Stage;
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;
use crate::vfs::MemFs;

/// A keyspace of a database on a disk in memory, whose jobs run when the test says so.
struct Fixture {
    stage: Stage,
    database: Database,
    keyspace: Keyspace,
}

impl Fixture {
    /// Memtables of the usual size, so that nothing is frozen by itself.
    fn new() -> Self {
        Self::with(DatabaseOptions::default())
    }

    fn with(options: DatabaseOptions) -> Self {
        Self::on(MemFs::new(), options)
    }

    fn on(disk: MemFs, options: DatabaseOptions) -> Self {
        let stage = Stage::new(Arc::new(disk));
        let database = stage.open_with(options).unwrap();
        let keyspace = database.keyspace("test").unwrap();
        Self {
            stage,
            database,
            keyspace,
        }
    }

    fn run(&self) {
        self.stage.executor.run_until_idle();
    }

    /// Flushes everything.
    fn flush(&self) {
        self.keyspace.flush();
        self.run();
        let metrics = self.database.metrics();
        assert_eq!((metrics.memtables, metrics.frozen_memtables), (0, 0));
    }
}

impl Deref for Fixture {
    type Target = Keyspace;

    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

fn put(keyspace: &Keyspace, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Written {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    keyspace.write(batch).unwrap()
}

fn scan(view: &ReadView, direction: Direction) -> Vec<(Bytes, Bytes)> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    view.range(bounds, direction)
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn each_operation_of_a_batch_has_its_own_state() {
    let keyspace = Fixture::new();
    put(&keyspace, "before", "0");
    let mut batch = WriteBatch::new();
    batch.put("key", "1");
    batch.put("key", "2");
    batch.delete("key");
    batch.put("key", "4");
    let written = keyspace.write(batch).unwrap();
    assert_eq!((written.first.get(), written.last.get()), (2, 5));
    let states: Vec<_> = (1..=6)
        .map(|sequence| written.view_at(SequenceNumber::new(sequence)))
        .map(|view| (view.sequence().get(), view.get(b"key").unwrap()))
        .collect();
    let expected = [
        (2, Some("1")),
        (2, Some("1")),
        (3, Some("2")),
        (4, None),
        (5, Some("4")),
        (5, Some("4")),
    ];
    assert_eq!(
        states,
        expected.map(|(sequence, value)| (sequence, value.map(Bytes::from)))
    );
}

#[test]
fn an_empty_batch_changes_nothing() {
    let keyspace = Fixture::new();
    let written = keyspace.write(WriteBatch::new()).unwrap();
    assert_eq!(
        (written.first, written.last),
        (SequenceNumber::ZERO, SequenceNumber::ZERO)
    );
    put(&keyspace, "key", "value");
    let written = keyspace.write(WriteBatch::new()).unwrap();
    assert_eq!(
        written.view_at(written.first).get(b"key").unwrap(),
        Some(Bytes::from("value"))
    );
    assert_eq!(keyspace.memtable_usage().entries, 1);
}

#[test]
fn the_longest_key_and_values_of_many_mebibytes_are_stored() {
    let keyspace = Fixture::new();
    let key = Bytes::from(vec![0xFF; KEY_BYTES_MAX]);
    let value = Bytes::from(vec![7; 9 * 1024 * 1024]);
    put(&keyspace, key.clone(), value.clone());
    put(&keyspace, "", "empty key");
    let view = keyspace.view();
    assert_eq!(view.get(&key).unwrap(), Some(value.clone()));
    let expected = vec![(Bytes::new(), Bytes::from("empty key")), (key, value)];
    assert!(scan(&view, Direction::Forward) == expected);
}

#[test]
fn what_is_over_a_limit_is_refused_as_a_whole() {
    let keyspace = Fixture::new();
    let mut batch = WriteBatch::new();
    batch.put("key", "value");
    batch.put(vec![0; KEY_BYTES_MAX + 1], "value");
    let refused = keyspace.write(batch);
    assert!(matches!(
        refused,
        Err(StorageError::KeyTooLong {
            bytes: 131_073,
            bytes_max: 131_072
        })
    ));

    let mebibyte = Bytes::from(vec![0; 1 << 20]);
    let mut batch = WriteBatch::new();
    for _ in 0..1_024 {
        batch.put("k", mebibyte.clone());
    }
    let refused = keyspace.write(batch);
    assert!(matches!(refused, Err(StorageError::BatchTooLarge { .. })));
    assert_eq!(keyspace.view().sequence(), SequenceNumber::ZERO);
    assert_eq!(keyspace.memtable_usage(), MemtableUsage::default());
}

#[test]
fn a_range_whose_bounds_cross_is_empty() {
    let keyspace = Fixture::new();
    for key in ["a", "b", "c"] {
        put(&keyspace, key, "value");
    }
    let crossed = [
        (Bound::Included("c"), Bound::Included("a")),
        (Bound::Excluded("b"), Bound::Included("b")),
        (Bound::Included("b"), Bound::Excluded("b")),
        (Bound::Excluded("b"), Bound::Excluded("b")),
        (Bound::Excluded("a"), Bound::Excluded("b")),
        (Bound::Excluded("c"), Bound::Unbounded),
        (Bound::Unbounded, Bound::Excluded("a")),
    ];
    for (start, end) in crossed {
        for direction in [Direction::Forward, Direction::Reverse] {
            let bounds = (start.map(Bytes::from), end.map(Bytes::from));
            assert_eq!(
                keyspace.view().range(bounds, direction).count(),
                0,
                "{start:?} {end:?}"
            );
        }
    }
}

#[test]
fn a_newer_source_decides_over_an_older_one() {
    let keyspace = Fixture::new();
    for key in ["deleted", "kept", "overwritten"] {
        put(&keyspace, key, "old");
    }
    let old = keyspace.view();
    keyspace.freeze_active();
    let mut batch = WriteBatch::new();
    batch.delete("deleted");
    batch.put("overwritten", "new");
    keyspace.write(batch).unwrap();

    let view = keyspace.view();
    assert_eq!(view.get(b"deleted").unwrap(), None);
    let mut expected = vec![
        (Bytes::from("kept"), Bytes::from("old")),
        (Bytes::from("overwritten"), Bytes::from("new")),
    ];
    assert_eq!(scan(&view, Direction::Forward), expected);
    expected.reverse();
    assert_eq!(scan(&view, Direction::Reverse), expected);
    assert_eq!(scan(&old, Direction::Forward).len(), 3);
    assert_eq!(keyspace.memtable_usage().entries, 5);
}
