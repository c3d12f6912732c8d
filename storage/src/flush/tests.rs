//! Flushes as whoever writes to a keyspace sees them. Histories against a model are in the tests of
//! the keyspace; `crash` cuts the power, `fault` fails the disk.

mod crash;
mod fault;
mod install;
mod room;
mod threads;

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kelp_seams::SeededRng;

use crate::batch::WriteBatch;
use crate::database::tests::stage::{Stage, directory, entry, must};
use crate::database::{Database, DatabaseOptions};
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::keyspace::{Keyspace, Written};
use crate::log::LogNumber;
use crate::read_view::{Cached, Direction, ReadView};
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs, Vfs};

const ENOSPC: i32 = 28;

/// A database with one keyspace, whose jobs run when the test says so.
struct Bench {
    disk: MemFs,
    faults: FaultFs,
    stage: Stage,
    database: Database,
    keyspace: Keyspace,
}

impl Bench {
    fn new() -> Self {
        Self::on(MemFs::new())
    }

    fn on(disk: MemFs) -> Self {
        Self::seeded(disk, 1)
    }

    /// A new database gets its identity from `seed`.
    fn seeded(disk: MemFs, seed: u64) -> Self {
        let faults = FaultFs::over(disk.clone());
        let mut stage = Stage::new(Arc::new(faults.clone()));
        stage.seams.rng = Arc::new(SeededRng::new(seed));
        let database = stage.open().unwrap();
        let keyspace = database.keyspace("test").unwrap();
        Self {
            disk,
            faults,
            stage,
            database,
            keyspace,
        }
    }

    fn run(&self) {
        self.stage.executor.run_until_idle();
    }

    fn flush(&self) {
        self.keyspace.flush();
        self.run();
    }

    /// The same disk after a clean end.
    fn reopened(&self) -> Self {
        self.database.close();
        Self::on(self.disk.clone())
    }

    fn put(&self, key: &str, value: impl Into<Bytes>) -> Written {
        let mut batch = WriteBatch::new();
        batch.put(Bytes::copy_from_slice(key.as_bytes()), value);
        self.keyspace.write(batch).unwrap()
    }

    fn delete(&self, key: &str) {
        let mut batch = WriteBatch::new();
        batch.delete(Bytes::copy_from_slice(key.as_bytes()));
        self.keyspace.write(batch).unwrap();
    }

    fn tables(&self) -> Vec<String> {
        let names = self.disk.list(directory()).unwrap();
        let tables = names
            .into_iter()
            .filter(|name| FileNumber::from_sstable_name(name).is_some());
        tables.collect()
    }
}

fn scan(view: &ReadView, direction: Direction) -> Result<Vec<(Bytes, Bytes)>, StorageError> {
    view.range((Bound::Unbounded, Bound::Unbounded), direction)
        .collect()
}

#[test]
fn what_was_flushed_comes_back_and_numbers_go_on() {
    let bench = Bench::new();
    bench.put("a", "1");
    bench.put("b", "2");
    bench.delete("a");
    bench.flush();
    bench.put("c", "lost");
    let bench = bench.reopened();
    let view = bench.keyspace.view();
    assert_eq!(view.sequence().get(), 3);
    let expected = [(Bytes::from("b"), Bytes::from("2"))];
    assert_eq!(scan(&view, Direction::Forward).unwrap(), expected);
    assert_eq!(bench.put("d", "3").first.get(), 4);
}

#[test]
fn a_flush_gives_memory_back_and_tells_its_listener() {
    let bench = Bench::new();
    let told = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&told);
    bench.keyspace.on_flushed(Arc::new(move || {
        inside.fetch_add(1, Ordering::SeqCst);
    }));
    bench.flush();
    assert_eq!(told.load(Ordering::SeqCst), 0, "there was nothing to flush");
    for number in 0..30 {
        bench.put(&format!("key {number}"), vec![7; 100]);
    }
    assert!(bench.database.metrics().memtable_bytes > 3_000);
    bench.flush();
    let metrics = bench.database.metrics();
    assert_eq!((metrics.memtable_bytes, metrics.memtables), (0, 0));
    assert_eq!(metrics.flushes, 1);
    assert_eq!(metrics.level_bytes.iter().sum::<u64>(), metrics.flush_bytes);
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[test]
fn a_full_memtable_is_flushed_without_being_asked() {
    let bench = Bench::new();
    for number in 0..200 {
        bench.put(&format!("key {number:03}"), vec![7; 100]);
        bench.run();
    }
    let metrics = bench.database.metrics();
    assert!(metrics.flushes > 3, "only {} flushes", metrics.flushes);
    assert!(metrics.memtable_bytes < 8 << 10);
    let view = bench.keyspace.view();
    assert_eq!(scan(&view, Direction::Forward).unwrap().len(), 200);
    assert_eq!(scan(&view, Direction::Reverse).unwrap().len(), 200);
}

#[test]
fn what_lies_in_memory_for_long_is_flushed() {
    let bench = Bench::new();
    bench.put("key", "value");
    bench.run();
    bench.stage.clock.advance(Duration::from_millis(999));
    bench.run();
    assert_eq!(bench.database.metrics().flushes, 0);
    bench.stage.clock.advance(Duration::from_millis(1));
    bench.run();
    assert_eq!(bench.database.metrics().flushes, 1);
    bench.stage.idle();
    assert_eq!(bench.stage.executor.next_timer(), None, "nothing waits");
}

#[test]
fn tombstones_that_hide_nothing_are_not_written() {
    let bench = Bench::new();
    bench.put("key", "value");
    bench.delete("key");
    bench.delete("other");
    bench.flush();
    assert!(bench.tables().is_empty());
    let bench = bench.reopened();
    assert_eq!(bench.keyspace.view().sequence().get(), 3);
    bench.put("key", "value");
    bench.flush();
    bench.delete("key");
    bench.flush();
    let view = bench.reopened().keyspace.view();
    assert_eq!(view.get(b"key").unwrap(), None);
    assert_eq!(scan(&view, Direction::Reverse).unwrap(), []);
}

#[test]
fn a_flush_between_a_write_and_its_states_loses_none_of_them() {
    let bench = Bench::new();
    let mut batch = WriteBatch::new();
    for value in ["1", "2", "3"] {
        batch.put("key", value);
    }
    let written = bench.keyspace.write(batch).unwrap();
    bench.flush();
    let states = (0..3).map(|step| written.view_at(written.first.advanced_by(step)));
    let values: Vec<_> = states.map(|view| view.get(b"key").unwrap()).collect();
    assert_eq!(
        values,
        ["1", "2", "3"].map(|value| Some(Bytes::from(value)))
    );
    assert!(written.view_at(written.first).is_cached_only());
    assert!(!bench.keyspace.view().is_cached_only());
}

#[test]
fn memory_says_when_the_disk_is_needed() {
    let bench = Bench::new();
    bench.put("key", "value");
    bench.flush();
    let bench = bench.reopened();
    let view = bench.keyspace.view();
    assert_eq!(view.get_cached(b"key"), Cached::NeedsDisk);
    assert_eq!(view.get_cached(b"other"), Cached::Hit(None));
    let value = Some(Bytes::from("value"));
    assert_eq!(view.get(b"key").unwrap(), value);
    assert_eq!(view.get_cached(b"key"), Cached::Hit(value));
    let metrics = bench.database.metrics();
    let lookups = (metrics.block_cache_misses, metrics.block_cache_hits);
    assert_eq!(lookups, (1, 1));
    assert!(metrics.block_cache_bytes > 0);
    bench.delete("key");
    assert_eq!(bench.keyspace.view().get_cached(b"key"), Cached::Hit(None));
}

#[test]
fn filters_answer_for_keys_that_are_not_there() {
    let bench = Bench::new();
    for number in 0..40 {
        bench.put(&format!("key {number:02}"), "value");
    }
    bench.flush();
    let view = bench.keyspace.view();
    for number in 0..38 {
        let absent = format!("key {number:02} and more");
        assert_eq!(view.get(absent.as_bytes()).unwrap(), None);
    }
    let metrics = bench.database.metrics();
    let (useful, missed) = (metrics.filter_useful, metrics.filter_false_positives);
    assert!(
        useful > 30 && useful + missed == 38,
        "{useful} and {missed}"
    );
}

#[test]
fn a_damaged_table_is_an_error_that_names_it_and_never_a_missing_key() {
    let bench = Bench::new();
    for key in ["a", "b", "c"] {
        bench.put(key, "value");
    }
    bench.flush();
    let bench = bench.reopened();
    let [name] = bench.tables().try_into().unwrap();
    let path = directory().join(name);
    bench.disk.corrupt(&path, |bytes| bytes[3] ^= 1).unwrap();
    let view = bench.keyspace.view();
    let Err(StorageError::Corruption(found)) = view.get(b"b") else {
        panic!("the damage was not noticed");
    };
    assert_eq!(found.path, path);
    assert_eq!(view.get_cached(b"b"), Cached::NeedsDisk);
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut entries = view.range((Bound::Unbounded, Bound::Unbounded), direction);
        assert!(matches!(
            entries.next(),
            Some(Err(StorageError::Corruption(_)))
        ));
        assert!(entries.next().is_none(), "an error ends the scan");
    }
}

#[test]
fn large_memtables_are_freed_by_the_job() {
    let options = DatabaseOptions::default();
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open_with(options).unwrap();
    let keyspace = database.keyspace("test").unwrap();
    let mut batch = WriteBatch::new();
    for key in 0..2_000_u32 {
        batch.put(key.to_be_bytes().to_vec(), "value");
    }
    keyspace.write(batch).unwrap();
    let view = keyspace.view();
    keyspace.flush();
    stage.executor.run_until_idle();
    assert_eq!(stage.executor.run_until_idle(), 0);
    drop(view);
    assert!(stage.executor.step_one(), "the job has something to free");
    stage.executor.run_until_idle();
    assert_eq!(
        keyspace
            .view()
            .range((Bound::Unbounded, Bound::Unbounded), Direction::Forward)
            .count(),
        2_000
    );
}
