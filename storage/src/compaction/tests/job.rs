//! The job, on a disk that may fail.

use std::time::Duration;

use kelp_seams::{Clock, Rng, SeededRng};

use super::super::job::Subject;
use super::super::pick::{Turns, pick};
use super::super::run::{Failure, Run};
use super::super::shape::shape;
use super::stage::{Stage, directory, options_of_stage};
use super::*;
use crate::catalog::{Committed, TableChange};
use crate::sstable::SstableError;
use crate::version::Version;
use crate::vfs::{Fault, FaultOperation, FaultRule};

const NO_SPACE: i32 = 28;
const EIO: i32 = 5;

fn failing(operation: FaultOperation, name: &str, skip: u64, count: u64, errno: i32) -> FaultRule {
    FaultRule {
        name: Some(name.to_owned()),
        skip,
        count,
        ..FaultRule::once(Some(operation), 0, Fault::Errno(errno))
    }
}

/// Text that does not compress well.
fn noise(rng: &SeededRng, length: usize) -> String {
    (0..length)
        .map(|_| char::from(b'!' + u8::try_from(rng.next_u64() % 90).unwrap()))
        .collect()
}

#[test]
fn tables_that_share_keys_become_one_sorted_run_and_their_files_go() {
    let stage = Stage::new();
    stage.flush_many(3, 200);
    stage.compact();
    assert_eq!(stage.table_counts(), [3, 0, 0, 0, 0, 0, 0], "too few");
    stage.flush_many(1, 200);
    stage.compact();
    stage.check();
    let counts = stage.table_counts();
    assert_eq!(counts[..6], [0; 6]);
    assert!(counts[6] > 1, "tables end when they are full");
    assert_eq!(stage.files(), stage.live_files());
    let metrics = stage.metrics();
    assert_eq!(metrics.compactions, 1);
    assert_eq!(metrics.compaction_debt_bytes, 0);
    assert!(metrics.compaction_read_bytes > 3 * metrics.compaction_written_bytes);
    let version = stage.keyspace.version();
    let bottom: Vec<_> = version.level(6).iter().map(|table| table.meta()).collect();
    let entries: u64 = bottom.iter().map(|meta| meta.entries).sum();
    assert_eq!(entries, 200, "one version per key");
    assert!(
        bottom
            .iter()
            .all(|meta| meta.sequence_max == SequenceNumber::ZERO)
    );
    assert_eq!(version.last_sequence(), SequenceNumber::new(800));
}

#[test]
fn a_view_reads_the_tables_that_it_began_with_and_keeps_their_files() {
    let stage = Stage::new();
    stage.flush_many(4, 50);
    let (old, files) = (stage.keyspace.version(), stage.files());
    stage.compact();
    assert_eq!(stage.table_counts()[0], 0);
    let key = b"key 0007";
    let found = old.get(key, SequenceNumber::new(60)).unwrap().unwrap();
    assert_eq!(*found.value, *format!("{:0100}", 1).as_bytes());
    let kept = |stage: &Stage| {
        files
            .iter()
            .filter(|name| stage.files().contains(name))
            .count()
    };
    assert_eq!(kept(&stage), 4);
    drop(old);
    stage.executor.run_until_idle();
    assert_eq!(kept(&stage), 0);
}

#[test]
fn a_moved_table_keeps_its_file_and_is_shared_with_older_views() {
    let stage = Stage::new();
    let rng = SeededRng::new(1);
    let mut files = Vec::new();
    for first in (0..100).step_by(10) {
        let lines: Vec<_> = (first..first + 10)
            .map(|key| (format!("{key:03}"), noise(&rng, 450)))
            .collect();
        let changes = lines
            .iter()
            .map(|(key, value)| (key.as_str(), Some(value.as_str())));
        stage.flush(&changes.collect::<Vec<_>>());
        files = stage.live_files();
        stage.check();
        if first < 80 {
            stage.compact();
        }
    }
    let old = stage.keyspace.version();
    stage.compact();
    stage.check();
    assert_eq!(stage.table_counts(), [6, 0, 0, 0, 0, 0, 4]);
    assert_eq!(stage.metrics().compactions, 0, "nothing was rewritten");
    drop(old);
    stage.executor.run_until_idle();
    assert_eq!(stage.files(), files, "no file is new or gone");
    assert_eq!(stage.files(), stage.live_files());
    stage.check();
}

#[test]
fn a_flipped_bit_in_an_input_stops_the_compaction_and_leaves_the_inputs() {
    let stage = Stage::new();
    stage.flush(&[("a", Some("good"))]);
    stage.flush_many(4, 100);
    let bad = stage.keyspace.version().level(0)[1].meta().number;
    let path = directory().join(bad.sstable_name());
    stage.disk.corrupt(&path, |bytes| bytes[300] ^= 1).unwrap();
    let before = stage.files();
    let version = stage.keyspace.version();

    let options = options_of_stage();
    let (_, compaction) = pick(&shape(&version), &options, &Turns::default()).unwrap();
    let mut run = Run::start(&stage.catalog, &version, &compaction, 2048).unwrap();
    let failure = loop {
        if let Err(failure) = run.step(512) {
            break failure;
        }
    };
    let Failure::Input(SstableError::Corruption(corruption)) = failure else {
        panic!("{failure:?} does not blame an input");
    };
    assert_eq!(corruption.path, path, "the error names the file");
    stage.catalog.discard(run.numbers());

    stage.compact();
    assert_eq!(stage.files(), before, "outputs are gone, inputs are there");
    assert_eq!(stage.metrics().compaction_halted_keyspaces, 1);
    assert_eq!(stage.metrics().compaction_failures, 1);
    assert_eq!(stage.get("a").as_deref(), Some("good"));
    stage.flush_many(4, 10);
    stage.compact();
    stage.pass(Duration::from_mins(10));
    assert_eq!(
        stage.metrics().compaction_failures,
        1,
        "it is not tried again"
    );
    assert_eq!(stage.table_counts()[0], 9);
}

#[test]
fn a_full_disk_voids_the_outputs_and_the_same_is_tried_again_ever_later() {
    let stage = Stage::new();
    stage.flush_many(4, 100);
    let before = stage.files();
    stage
        .faults
        .add(failing(FaultOperation::Write, "*.sst", 0, 9, NO_SPACE));
    stage.compact();
    let mut waits = Vec::new();
    while stage.metrics().compactions == 0 {
        assert_eq!(stage.files(), before, "the outputs are gone");
        stage.check();
        let due = stage.executor.next_timer().unwrap();
        let wait = due.saturating_duration_since(stage.clock.monotonic());
        stage.compact();
        waits.push(wait.as_millis());
        assert_eq!(stage.metrics().compaction_failures, waits.len() as u64);
        stage.pass(wait);
    }
    assert_eq!(
        waits,
        [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    );
    stage.check();
    assert_eq!(stage.files(), stage.live_files());
}

#[test]
fn a_failure_anywhere_changes_nothing_that_is_read_and_is_tried_again() {
    let operations = [
        (FaultOperation::Create, "*.sst"),
        (FaultOperation::Write, "*.sst"),
        (FaultOperation::Sync, "*.sst"),
        (FaultOperation::Sync, "data"),
        (FaultOperation::Open, "*.sst"),
        (FaultOperation::Read, "*.sst"),
        (FaultOperation::Write, "MANIFEST*"),
        (FaultOperation::Sync, "MANIFEST*"),
    ];
    for (operation, name) in operations {
        let mut failed = 0;
        for skip in 0..200 {
            let stage = Stage::new();
            stage.flush_wide(4, 20, 400);
            stage.faults.add(failing(operation, name, skip, 1, EIO));
            stage.compact();
            stage.faults.clear();
            stage.check();
            if stage.metrics().compaction_failures == 0 {
                break;
            }
            failed += 1;
            assert_eq!(stage.table_counts()[0], 4);
            stage.pass(Duration::from_millis(100));
            assert_eq!(
                stage.metrics().compactions,
                1,
                "{operation:?} {name} {skip}"
            );
            stage.check();
            assert_eq!(stage.files(), stage.live_files());
        }
        assert!((1..200).contains(&failed), "{operation:?} {name}: {failed}");
    }
}

#[test]
fn outputs_are_given_back_when_an_input_is_gone_meanwhile() {
    let stage = Stage::new();
    stage.flush_many(4, 100);
    stage.job.notify();
    // A step begins, and the next one merges all: the commit finds what the test does between.
    assert!(stage.executor.step_one());
    let version = stage.keyspace.version();
    let gone = version.level(0)[3].meta().number;
    let change = TableChange {
        removed: vec![(0, gone)],
        ..TableChange::default()
    };
    let publish = |version: &Arc<Version>| stage.keyspace.publish(version);
    let committed = stage.catalog.commit(version.id(), change, publish).unwrap();
    assert!(matches!(committed, Committed::Published(_)));
    drop((version, committed));
    stage.executor.run_until_idle();
    assert_eq!(stage.metrics().compactions, 0);
    assert_eq!(stage.table_counts()[0], 3, "three tables are not enough");
    assert_eq!(stage.files(), stage.live_files());
    stage.check();
}

#[test]
fn a_job_that_is_stopped_gives_back_what_it_wrote() {
    let stage = Stage::new();
    // More than one step of input.
    stage.flush_wide(4, 300, 1_000);
    let before = stage.files();
    stage.job.notify();
    assert!(stage.executor.step_one() && stage.executor.step_one());
    assert!(stage.files().len() > before.len());
    stage.job.stop();
    stage.executor.run_until_idle();
    assert_eq!(stage.files(), before);
    stage.check();
}
