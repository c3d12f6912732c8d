//! Every operation of a workload fails in turn: nothing panics, every callback runs exactly once,
//! and what was reported durable is there after the next open.

use std::time::Duration;

use kelp_seams::{Rng, SeededRng};

use super::stage::{Outcomes, Snapshot, Stage, entry, position};
use super::*;
use crate::log::{LogEntry, LogIndex};
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

struct Run {
    opened: bool,
    submitted: usize,
    outcomes: Outcomes,
    /// How many entries and whether the vote were reported durable.
    durable_entries: usize,
    durable_vote: bool,
    poisoned: bool,
}

/// Opens, submits, closes. The faults strike somewhere in it.
fn run(faults: &FaultFs) -> Run {
    let stage = Stage::new(Arc::new(faults.clone()));
    let outcomes = Outcomes::default();
    let mut run = Run {
        opened: false,
        submitted: 0,
        outcomes: outcomes.clone(),
        durable_entries: 0,
        durable_vote: false,
        poisoned: false,
    };
    let Ok(database) = stage.open() else {
        return run;
    };
    run.opened = true;
    let _ = database.raise_boot();
    let log = database.log(LogNumber::new(0)).unwrap();
    for index in 0..12 {
        let before = outcomes.counts().0;
        let _ = log.append(vec![entry(index, vec![7; 300])], outcomes.callback());
        run.submitted += 1;
        settle(&stage);
        if outcomes.counts().0 > before {
            run.durable_entries = usize::try_from(index + 1).unwrap();
        }
        if index == 5 {
            let before = outcomes.counts().0;
            let _ = log.put_vote(b"vote", outcomes.callback());
            run.submitted += 1;
            settle(&stage);
            run.durable_vote = outcomes.counts().0 > before;
            let _ = log.discard_prefix(position(2));
        }
    }
    run.poisoned = database.metrics().poisoned;
    database.close();
    run
}

/// Steps until nothing is due, retries after a full disk included.
fn settle(stage: &Stage) {
    for _ in 0..3 {
        stage.executor.run_until_idle();
        stage.clock.advance(Duration::from_millis(100));
    }
    stage.executor.run_until_idle();
}

fn operation_count() -> u64 {
    let faults = FaultFs::new(Arc::new(MemFs::new()));
    let run = run(&faults);
    assert_eq!(run.outcomes.counts(), (run.submitted, 0));
    faults.operation_count()
}

/// What an open of the disk shows, and the disk after a power cut behind it.
fn show(disk: &MemFs, rng: &dyn Rng) -> ((Snapshot, u64), MemFs) {
    let database = Stage::new(Arc::new(disk.clone())).open().unwrap();
    let snapshot = Snapshot::of(&database.log(LogNumber::new(0)).unwrap());
    let cut = disk.crash_clone(rng);
    ((snapshot, database.boot().get()), cut)
}

/// What survives the fault, and a power cut after it, on a disk that works again; and what a start
/// shows survives a power cut after that.
fn check_survivors(disk: &MemFs, run: &Run, seed: u64) {
    let rng = SeededRng::new(seed);
    let (shown, cut) = show(&disk.kill_clone(), &rng);
    let (found, _) = show(&cut, &rng);
    assert_eq!(found, shown, "what was shown is lost, skip {seed}");
    for image in [disk.clone(), disk.crash_clone(&rng)] {
        let database = Stage::new(Arc::new(image)).open().unwrap();
        let found = Snapshot::of(&database.log(LogNumber::new(0)).unwrap());
        let end = found.entries.last().map_or(0, |last| last.index.get() + 1);
        assert!(
            end >= u64::try_from(run.durable_entries).unwrap(),
            "durable entries are lost"
        );
        assert!(
            found.vote.is_some() || !run.durable_vote,
            "a durable vote is lost"
        );
    }
}

fn each_operation_fails(operation: Option<FaultOperation>, count: u64, fault: Fault) -> Vec<Run> {
    let mut runs = Vec::new();
    for skip in 0..operation_count() {
        let disk = MemFs::new();
        let faults = FaultFs::over(disk.clone());
        faults.add(FaultRule {
            count,
            ..FaultRule::once(operation, skip, fault)
        });
        let run = run(&faults);
        if run.opened {
            let (durable, failed) = run.outcomes.counts();
            assert_eq!(
                durable + failed,
                run.submitted,
                "each callback runs once, skip {skip}"
            );
        }
        check_survivors(&disk, &run, skip);
        runs.push(run);
    }
    runs
}

#[test]
fn an_io_error_anywhere_loses_nothing_durable() {
    let runs = each_operation_fails(None, 1, Fault::Errno(EIO));
    assert!(runs.iter().any(|run| !run.opened));
    assert!(runs.iter().any(|run| run.poisoned));
    assert!(runs.iter().any(|run| run.opened && !run.poisoned));
}

#[test]
fn a_disk_that_stays_broken_loses_nothing_durable() {
    let runs = each_operation_fails(None, u64::MAX, Fault::Errno(EIO));
    assert!(runs.iter().filter(|run| run.poisoned).count() > 20);
}

#[test]
fn a_failed_sync_poisons_for_good() {
    for fault in [Fault::Errno(ENOSPC), Fault::LostSync { errno: EIO }] {
        for run in each_operation_fails(Some(FaultOperation::Sync), 1, fault) {
            assert!(run.poisoned || !run.opened || run.outcomes.counts().1 == 0);
        }
    }
}

/// Does `work`, while the first sync of the file `name` fails and takes with it what it should have
/// synced; then starts again and cuts the power. Answers what the start and the next one show.
fn restart_after_lost_sync(name: &str, work: impl Fn(&Database)) -> [(Snapshot, u64); 2] {
    let disk = MemFs::new();
    let faults = FaultFs::over(disk.clone());
    let stage = Stage::new(Arc::new(faults.clone()));
    let database = stage.open().unwrap();
    stage.executor.run_until_idle();
    let rule = FaultRule::once(
        Some(FaultOperation::Sync),
        0,
        Fault::LostSync { errno: EIO },
    );
    faults.add(FaultRule {
        name: Some(name.to_owned()),
        ..rule
    });
    work(&database);
    stage.executor.run_until_idle();
    drop(database);
    let (shown, cut) = show(&disk, &Zero);
    let (found, _) = show(&cut, &Zero);
    [shown, found]
}

/// Draws the crash that loses everything.
struct Zero;

impl Rng for Zero {
    fn next_u64(&self) -> u64 {
        0
    }

    fn fill(&self, out: &mut [u8]) {
        out.fill(0);
    }
}

fn append_in_vain(entry: &LogEntry) -> impl Fn(&Database) + use<> {
    let entry = entry.clone();
    move |database| {
        let log = database.log(LogNumber::new(0)).unwrap();
        log.append(
            vec![entry.clone()],
            Box::new(|result| assert!(result.is_err())),
        )
        .unwrap();
    }
}

#[test]
fn what_a_start_shows_after_a_failed_sync_is_durable() {
    // The second one fills the file, so that it is sealed in the same write.
    for entry in [entry(0, vec![1; 700]), entry(0, vec![1; 5_000])] {
        let [shown, found] = restart_after_lost_sync("*.wal", append_in_vain(&entry));
        assert_eq!(shown.0.entries, [entry], "the system still shows the bytes");
        assert_eq!(found, shown);
    }
}

#[test]
fn a_boot_count_that_a_start_shows_after_a_failed_sync_is_durable() {
    let [shown, found] = restart_after_lost_sync("HARDSTATE", |database| {
        database.raise_boot().unwrap_err();
    });
    assert_eq!(shown.1, 1, "the system still shows the bytes");
    assert_eq!(found, shown);
}

#[test]
fn nothing_is_written_after_a_failed_sync() {
    check_poison(EIO);
    check_poison(ENOSPC);
}

fn check_poison(errno: i32) {
    let faults = FaultFs::new(Arc::new(MemFs::new()));
    let stage = Stage::new(Arc::new(faults.clone()));
    let database = stage.open().unwrap();
    stage.executor.run_until_idle();
    let log = database.log(LogNumber::new(0)).unwrap();
    faults.add(FaultRule::once(
        Some(FaultOperation::Sync),
        0,
        Fault::Errno(errno),
    ));
    let outcomes = Outcomes::default();
    log.append(vec![entry(0, "lost")], outcomes.callback())
        .unwrap();
    log.append(vec![entry(1, "lost")], outcomes.callback())
        .unwrap();
    stage.executor.run_until_idle();
    assert_eq!(outcomes.counts(), (0, 2));
    let refused = log.append(vec![entry(2, "late")], outcomes.callback());
    assert!(matches!(refused, Err(StorageError::Poisoned(_))));
    assert_eq!(outcomes.counts(), (0, 3));
    assert_eq!(
        log.last(),
        Some(position(1)),
        "what was submitted stays readable"
    );
    assert!(matches!(
        log.truncate_suffix(LogIndex::new(0)),
        Err(StorageError::Poisoned(_))
    ));
    assert!(matches!(
        log.put_committed(position(0)),
        Err(StorageError::Poisoned(_))
    ));
    assert!(database.metrics().poisoned);
}

#[test]
fn a_full_disk_is_waited_for() {
    for fault in [
        Fault::Errno(ENOSPC),
        Fault::ShortWrite {
            bytes: 100,
            errno: ENOSPC,
        },
    ] {
        let faults = FaultFs::new(Arc::new(MemFs::new()));
        let stage = Stage::new(Arc::new(faults.clone()));
        let database = stage.open().unwrap();
        let log = database.log(LogNumber::new(0)).unwrap();
        let rule = FaultRule::once(Some(FaultOperation::Write), 0, fault);
        faults.add(FaultRule {
            name: Some("*.wal".to_owned()),
            count: 3,
            ..rule
        });
        let outcomes = Outcomes::default();
        log.append(vec![entry(0, vec![1; 500])], outcomes.callback())
            .unwrap();
        stage.executor.run_until_idle();
        log.append(vec![entry(1, vec![2; 500])], outcomes.callback())
            .unwrap();
        stage.executor.run_until_idle();
        assert_eq!(outcomes.counts(), (0, 0));
        assert!(database.metrics().disk_full);
        assert_eq!(
            Snapshot::of(&log).entries.len(),
            2,
            "entries are readable meanwhile"
        );
        settle(&stage);
        assert_eq!(outcomes.counts(), (2, 0));
        assert!(!database.metrics().disk_full);
        drop((log, database));
        let log = stage.open().unwrap().log(LogNumber::new(0)).unwrap();
        assert_eq!(Snapshot::of(&log).entries.len(), 2);
    }
}

#[test]
fn no_space_at_any_operation_ends_in_success_or_poison() {
    for run in each_operation_fails(None, 1, Fault::Errno(ENOSPC)) {
        let (durable, failed) = run.outcomes.counts();
        assert!(!run.opened || run.poisoned || durable == run.submitted || failed > 0);
    }
}

#[test]
fn a_vote_that_hard_state_does_not_take_is_not_durable() {
    for operation in [FaultOperation::Write, FaultOperation::Sync] {
        let faults = FaultFs::new(Arc::new(MemFs::new()));
        let stage = Stage::new(Arc::new(faults.clone()));
        let database = stage.open().unwrap();
        let log = database.log(LogNumber::new(0)).unwrap();
        let rule = FaultRule::once(Some(operation), 0, Fault::Errno(EIO));
        faults.add(FaultRule {
            name: Some("HARDSTATE".to_owned()),
            ..rule
        });
        let outcomes = Outcomes::default();
        log.append(vec![entry(0, "with the vote")], outcomes.callback())
            .unwrap();
        log.put_vote(b"vote", outcomes.callback()).unwrap();
        stage.executor.run_until_idle();
        assert_eq!(outcomes.counts(), (0, 2));
        assert!(database.metrics().poisoned);
        assert!(matches!(
            database.raise_boot(),
            Err(StorageError::Poisoned(_))
        ));
    }
}
