//! A shipped state takes the place of a keyspace.

use std::sync::Mutex;

use super::*;
use crate::pinned::PinnedVersion;
use crate::staging::StagedVersion;

type Outcomes = Arc<Mutex<Vec<Result<(), StorageError>>>>;

/// A flushed state of another database: 60 keys in several tables, at sequence number 63.
fn shipped() -> (Bench, PinnedVersion) {
    let bench = Bench::seeded(MemFs::new(), 2);
    for number in 0..60 {
        bench.put(&format!("shipped {number:02}"), vec![number; 300]);
    }
    for key in ["shipped 07", "shipped 59", "never"] {
        bench.delete(key);
    }
    bench.flush();
    let pinned = bench.keyspace.pin();
    assert!(pinned.file_count() > 1);
    (bench, pinned)
}

fn stage(bench: &Bench, pinned: &PinnedVersion) -> Result<StagedVersion, StorageError> {
    let mut staging = bench
        .database
        .stage(&bench.keyspace, &pinned.description())?;
    for index in 0..pinned.file_count() {
        let mut offset = 0;
        while offset < pinned.file_bytes(index) {
            let piece = pinned.read(index, offset, 1_000)?;
            staging.write(index, offset, &piece)?;
            offset += u64::try_from(piece.len()).unwrap();
        }
    }
    staging.finish()
}

fn install(bench: &Bench, staged: StagedVersion) -> Outcomes {
    let outcomes = Outcomes::default();
    let inside = Arc::clone(&outcomes);
    let done = Box::new(move |result| inside.lock().unwrap().push(result));
    bench.keyspace.install(staged, done);
    outcomes
}

fn succeeded(outcomes: &Outcomes) -> bool {
    matches!(outcomes.lock().unwrap().as_slice(), [Ok(())])
}

/// State of the keyspace before: some of it in tables, some frozen, some active.
fn fill_old(bench: &Bench) {
    for number in 0..40 {
        bench.put(&format!("old {number:02}"), vec![number; 200]);
    }
    bench.flush();
    bench.put("old active", "value");
    bench.keyspace.freeze_active();
    bench.put("shipped 01", "old value");
}

fn all(bench: &Bench) -> Vec<(Bytes, Bytes)> {
    scan(&bench.keyspace.view(), Direction::Forward).unwrap()
}

fn check_files(bench: &Bench) {
    bench.run();
    let known = bench.database.metrics().level_tables.iter().sum::<u64>();
    assert_eq!(bench.tables().len(), usize::try_from(known).unwrap());
}

#[test]
fn an_installed_state_replaces_everything_and_old_views_stay() {
    let (source, pinned) = shipped();
    let expected = all(&source);
    let bench = Bench::new();
    fill_old(&bench);
    let old = bench.keyspace.view();
    let (old_entries, newest) = (all(&bench), old.sequence());
    let staged = stage(&bench, &pinned).unwrap();
    assert_eq!(scan(&staged.view(), Direction::Forward).unwrap(), expected);
    let outcomes = install(&bench, staged);
    bench.run();
    assert!(succeeded(&outcomes));
    assert_eq!(all(&bench), expected);
    assert_eq!(bench.database.metrics().frozen_memtables, 0);
    assert_eq!(scan(&old, Direction::Forward).unwrap(), old_entries);
    let first = bench.put("later", "value").first;
    assert!(first > newest && first > pinned.view().sequence());
    drop(old);
    check_files(&bench);
    bench.flush();
    let bench = bench.reopened();
    assert_eq!(all(&bench).len(), expected.len() + 1);
    assert!(bench.keyspace.view().sequence() >= first);
    check_files(&bench);
}

#[test]
fn an_install_waits_for_the_log_and_ends_the_flush_that_waits_too() {
    let (source, pinned) = shipped();
    let bench = Bench::new();
    let staged = stage(&bench, &pinned).unwrap();
    bench.run();
    bench.faults.add(FaultRule {
        name: Some("*.wal".to_owned()),
        count: u64::MAX,
        ..FaultRule::once(Some(FaultOperation::Write), 0, Fault::Errno(ENOSPC))
    });
    let log = bench.database.log(LogNumber::new(0)).unwrap();
    log.append(vec![entry(0, "a tail that may contradict it")], must())
        .unwrap();
    bench.put("old", "value");
    bench.flush();
    assert_eq!(bench.database.metrics().flushes, 0);
    let outcomes = install(&bench, staged);
    bench.run();
    assert!(outcomes.lock().unwrap().is_empty());
    assert!(all(&Bench::on(bench.disk.kill_clone())).is_empty());
    bench.faults.clear();
    bench.stage.clock.advance(Duration::from_millis(100));
    bench.run();
    assert!(succeeded(&outcomes));
    assert_eq!(all(&bench), all(&source));
    assert_eq!(bench.database.metrics().flushes, 0);
    check_files(&bench);
}

#[test]
fn an_install_that_waits_is_answered_when_the_database_is_closed() {
    let (_source, pinned) = shipped();
    for steps in 0..6 {
        let bench = Bench::new();
        let late = stage(&bench, &pinned).unwrap();
        let staged = stage(&bench, &pinned).unwrap();
        let outcomes = install(&bench, staged);
        for _ in 0..steps {
            bench.stage.executor.step_one();
        }
        bench.database.close();
        let outcomes = outcomes.lock().unwrap();
        assert_eq!(outcomes.len(), 1, "after {steps} steps");
        let installed = outcomes[0].is_ok();
        drop(outcomes);
        let reopened = Bench::on(bench.disk.clone());
        assert_eq!(all(&reopened).is_empty(), !installed);
        let late = install(&bench, late);
        assert!(matches!(
            late.lock().unwrap().as_slice(),
            [Err(StorageError::Closed)]
        ));
    }
}

#[test]
fn a_power_cut_or_kill_at_any_sync_of_an_install_leaves_the_old_state_or_the_new_one() {
    let (source, pinned) = shipped();
    let new = all(&source);
    let (mut old_seen, mut new_seen) = (0, 0);
    for seed in 0..10 {
        let rng = SeededRng::new(seed);
        let bench = Bench::new();
        fill_old(&bench);
        bench.flush();
        let old = all(&bench);
        let staged = stage(&bench, &pinned).unwrap();
        let images = Arc::new(Mutex::new(Vec::new()));
        let (inside, crashes) = (Arc::clone(&images), SeededRng::new(seed + 100));
        bench.disk.on_sync(Arc::new(move |_, disk: &MemFs| {
            let pair = [disk.crash_clone(&crashes), disk.kill_clone()];
            inside.lock().unwrap().extend(pair);
        }));
        let outcomes = install(&bench, staged);
        let mut certain = false;
        for step in 0..60 {
            if step % 7 == 3 && !certain {
                // What is written meanwhile goes with the old state; a flush of it is declined.
                bench.put("meanwhile", vec![0; 100]);
                bench.keyspace.flush();
            }
            bench.stage.executor.step_one();
            let was_certain = std::mem::replace(&mut certain, succeeded(&outcomes));
            for disk in std::mem::take(&mut *images.lock().unwrap()) {
                let image = Bench::on(disk.clone());
                let mut found = all(&image);
                found.retain(|(key, _)| key != "meanwhile");
                if found == new {
                    new_seen += 1;
                } else {
                    assert!(found == old && !was_certain, "seed {seed}, step {step}");
                    old_seen += 1;
                }
                check_files(&image);
                let again = all(&Bench::on(disk.crash_clone(&rng)));
                assert!(again.len().abs_diff(found.len()) <= 1, "shown is durable");
            }
        }
        assert!(succeeded(&outcomes));
    }
    assert!(old_seen > 10 && new_seen > 10, "{old_seen} and {new_seen}");
}

#[test]
fn an_install_that_fails_says_so_once_and_leaves_the_keyspace_whole() {
    let (source, pinned) = shipped();
    let new = all(&source);
    let mut failed = 0;
    for name in ["*.sst", "MANIFEST-*", "CURRENT*", "data"] {
        for skip in 0..12 {
            let bench = Bench::new();
            fill_old(&bench);
            bench.flush();
            let old = all(&bench);
            let staged = stage(&bench, &pinned).unwrap();
            bench.faults.add(FaultRule {
                name: Some(name.to_owned()),
                ..FaultRule::once(None, skip, Fault::Errno(5))
            });
            let outcomes = install(&bench, staged);
            bench.run();
            bench.faults.clear();
            assert_eq!(outcomes.lock().unwrap().len(), 1);
            let expected = if succeeded(&outcomes) { &new } else { &old };
            assert_eq!(&all(&bench), expected, "{name} after {skip}");
            failed += u32::from(!succeeded(&outcomes));
            let killed = all(&Bench::on(bench.disk.kill_clone()));
            assert!(killed == new || killed == old, "{name} after {skip}");
            bench.put("more", "value");
            bench.flush();
            bench.stage.clock.advance(Duration::from_secs(20));
            bench.run();
            let reopened = bench.reopened();
            assert_eq!(all(&reopened).len(), expected.len() + 1);
            check_files(&reopened);
        }
    }
    assert!(failed > 1, "only {failed} installs failed");
}
