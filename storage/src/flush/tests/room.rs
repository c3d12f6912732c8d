//! Writers that go faster than flush and compaction.

use super::*;

fn no_tables(count: u64) -> FaultRule {
    FaultRule {
        name: Some("*.sst".to_owned()),
        count,
        ..FaultRule::once(Some(FaultOperation::Create), 0, Fault::Errno(ENOSPC))
    }
}

/// Writes until there is no room.
fn fill(bench: &Bench) -> usize {
    let mut written = 0;
    while bench.keyspace.has_room() {
        bench.put(&format!("key {written}"), vec![1; 1_000]);
        written += 1;
        assert!(written < 1_000, "there is always room");
    }
    written
}

fn wait(bench: &Bench) -> Arc<AtomicUsize> {
    let woken = Arc::new(AtomicUsize::new(0));
    let inside = Arc::clone(&woken);
    bench.keyspace.on_room(Box::new(move || {
        inside.fetch_add(1, Ordering::SeqCst);
    }));
    woken
}

#[test]
fn who_waits_for_room_is_woken_once_by_the_flush_that_makes_it() {
    let bench = Bench::new();
    assert_eq!(wait(&bench).load(Ordering::SeqCst), 1, "there is room");
    fill(&bench);
    let metrics = bench.database.metrics();
    assert_eq!((metrics.frozen_memtables, metrics.stalls), (3, 1));
    assert!(!bench.database.admission_open());
    let woken = wait(&bench);
    assert_eq!(woken.load(Ordering::SeqCst), 0);
    bench.run();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    assert!(bench.database.admission_open());
    fill(&bench);
    bench.run();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    assert_eq!(bench.database.metrics().stalls, 2);
}

#[test]
fn a_full_disk_stops_the_writer_and_loses_nothing() {
    let bench = Bench::new();
    bench.faults.add(no_tables(u64::MAX));
    let written = fill(&bench);
    let woken = wait(&bench);
    for _ in 0..6 {
        bench.run();
        bench.stage.clock.advance(Duration::from_secs(5));
    }
    assert_eq!(woken.load(Ordering::SeqCst), 0);
    let metrics = bench.database.metrics();
    assert_eq!((metrics.flushes, metrics.flush_failures), (0, 6));
    let view = bench.keyspace.view();
    assert_eq!(scan(&view, Direction::Forward).unwrap().len(), written);
    bench.faults.clear();
    bench.run();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    bench.flush();
    assert_eq!(bench.database.metrics().memtables, 0);
    let view = bench.reopened().keyspace.view();
    assert_eq!(scan(&view, Direction::Forward).unwrap().len(), written);
}

#[test]
fn a_failed_flush_is_tried_again_after_a_pause_that_doubles() {
    let bench = Bench::new();
    bench.faults.add(no_tables(u64::MAX));
    bench.put("key", "value");
    bench.flush();
    let failures = || bench.database.metrics().flush_failures;
    for (count, pause) in (1..).zip([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
        bench.stage.clock.advance(Duration::from_millis(pause - 1));
        bench.run();
        assert_eq!(failures(), count, "before the end of {pause} ms");
        bench.stage.clock.advance(Duration::from_millis(1));
        bench.run();
        assert_eq!(failures(), count + 1, "after {pause} ms");
    }
}

#[test]
fn too_many_tables_of_level_0_stop_the_writer_until_they_are_compacted() {
    let bench = Bench::new();
    let compaction = FaultRule {
        name: Some("*.sst".to_owned()),
        count: u64::MAX,
        ..FaultRule::once(Some(FaultOperation::Read), 0, Fault::Errno(5))
    };
    let mut flushes = 0;
    while bench.keyspace.has_room() {
        bench.faults.clear();
        bench.put("same key", vec![0; 10]);
        bench.keyspace.flush();
        // Tables can be opened, but their data cannot be read.
        while bench.database.metrics().flushes == flushes {
            assert!(bench.stage.executor.step_one());
        }
        bench.faults.add(compaction.clone());
        bench.run();
        flushes += 1;
        assert!(flushes < 100, "there is always room");
    }
    let woken = wait(&bench);
    assert_eq!(bench.database.metrics().stalls, 1);
    bench.faults.clear();
    for _ in 0..3 {
        bench.run();
        bench.stage.clock.advance(Duration::from_secs(10));
    }
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    assert!(bench.database.metrics().compactions > 0);
}

#[test]
fn waiting_ends_with_the_database() {
    let bench = Bench::new();
    bench.faults.add(no_tables(u64::MAX));
    fill(&bench);
    let woken = wait(&bench);
    bench.database.close();
    assert_eq!(woken.load(Ordering::SeqCst), 1);
    assert!(bench.keyspace.has_room());
    assert_eq!(wait(&bench).load(Ordering::SeqCst), 1);
    bench.put("late", "value");
    let view = bench.keyspace.view();
    assert_eq!(view.get(b"late").unwrap(), Some(Bytes::from("value")));
}

#[test]
fn a_keyspace_with_a_broken_table_refuses_writes_and_names_the_file() {
    let bench = Bench::new();
    bench.put("a", vec![7; 500]);
    bench.flush();
    let [table] = &*bench.tables() else {
        panic!("one flush, one table")
    };
    let path = directory().join(table);
    bench.disk.corrupt(&path, |bytes| bytes[20] ^= 1).unwrap();
    let mut refused = None;
    for number in 0..2_000 {
        let mut batch = WriteBatch::new();
        batch.put(Bytes::from(format!("a{number:04}")), vec![7; 100]);
        if let Err(error) = bench.keyspace.write(batch) {
            refused = Some(error);
            break;
        }
        bench.run();
    }
    let Some(StorageError::Corruption(corruption)) = refused else {
        panic!("compaction reads every table at last: {refused:?}")
    };
    assert_eq!(corruption.path, path);
    assert!(
        bench.keyspace.has_room(),
        "nobody waits for what cannot come"
    );
    let view = bench.keyspace.view();
    assert!(
        view.get(b"a0000").unwrap().is_some(),
        "the rest is readable"
    );
    assert!(matches!(view.get(b"a"), Err(StorageError::Corruption(_))));
}
