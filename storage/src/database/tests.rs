mod arbitrary;
mod close;
mod corruption;
mod crash;
mod directory;
mod fault;
mod golden;
pub(crate) mod stage;
mod threads;

use kelp_seams::{SeededRng, SystemClock, ThreadExecutor};

use self::stage::{Outcomes, Stage, directory, entries, entry, must, position};
use super::*;
use crate::log::LogIndex;
use crate::vfs::{MemFs, RealFs};

#[test]
fn a_log_survives_closing_and_opening() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    assert_eq!(database.boot().get(), 0);
    assert_eq!(database.raise_boot().unwrap().get(), 1);
    let log = database.log(LogNumber::new(0)).unwrap();
    let outcomes = Outcomes::default();
    for index in 0..100 {
        log.append(
            vec![entry(index, "some payload of an entry")],
            outcomes.callback(),
        )
        .unwrap();
        stage.executor.run_until_idle();
    }
    assert_eq!(outcomes.counts(), (100, 0));
    log.discard_prefix(position(49)).unwrap();
    log.truncate_suffix(LogIndex::new(90)).unwrap();
    log.put_committed(position(80)).unwrap();
    log.put_vote(b"vote", must()).unwrap();
    let expected = entries(&log);
    assert_eq!(expected.len(), 40);
    database.close();
    drop((log, database));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    assert_eq!(entries(&log), expected);
    assert_eq!(log.vote().unwrap(), "vote");
    assert_eq!(log.committed(), Some(position(80)));
    assert_eq!(log.purged(), Some(position(49)));
    assert_eq!(database.boot().get(), 1);
}

#[test]
fn threads_and_real_files_do_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock::new());
    let seams = Seams {
        vfs: Arc::new(RealFs),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(ThreadExecutor::new(clock)),
    };
    let open = || {
        let options = DatabaseOptions {
            wal_file_bytes: 1 << 14,
            hot_tail_bytes: 1 << 10,
            ..DatabaseOptions::default()
        };
        Database::open(directory.path(), options, seams.clone()).unwrap()
    };
    let database = open();
    let log = database.log(LogNumber::new(7)).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    for index in 0..2_000 {
        let sender = sender.clone();
        log.append(
            vec![entry(index, "payload")],
            Box::new(move |result| sender.send((index, result.is_ok())).unwrap()),
        )
        .unwrap();
    }
    for index in 0..2_000 {
        assert_eq!(
            receiver.recv().unwrap(),
            (index, true),
            "callbacks come in order"
        );
    }
    let before = entries(&log);
    assert_eq!(before.len(), 2_000);
    drop((log, database));
    let database = open();
    assert_eq!(entries(&database.log(LogNumber::new(7)).unwrap()), before);
}

#[test]
fn a_closed_database_refuses_and_stays_readable() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    let outcomes = Outcomes::default();
    log.append(vec![entry(0, "queued")], outcomes.callback())
        .unwrap();
    database.close();
    assert_eq!(outcomes.counts(), (1, 0), "what was queued is written");
    database.close();
    let refused = log.append(vec![entry(1, "late")], outcomes.callback());
    assert!(matches!(refused, Err(StorageError::Closed)));
    assert_eq!(outcomes.counts(), (1, 1));
    assert_eq!(entries(&log), [entry(0, "queued")]);
    stage.open().unwrap();
}

#[test]
fn an_idle_log_is_witnessed_once() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    log.append(vec![entry(0, "entry")], must()).unwrap();
    stage.executor.run_until_idle();
    let after_append = database.metrics();
    assert_eq!((after_append.wal_groups, after_append.wal_syncs), (1, 1));
    for _ in 0..3 {
        stage.idle();
    }
    let after_idle = database.metrics();
    assert_eq!((after_idle.wal_groups, after_idle.wal_syncs), (2, 1));
    log.put_committed(position(0)).unwrap();
    stage.idle();
    let after_commit = database.metrics();
    assert_eq!((after_commit.wal_groups, after_commit.wal_syncs), (3, 1));
    assert_eq!(after_commit.wal_queued_bytes, 0);
}

#[test]
fn all_that_waits_shares_one_write_and_one_sync() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let options = DatabaseOptions::default();
    let database = Database::open(directory(), options, stage.seams.clone()).unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    let outcomes = Outcomes::default();
    for index in 0..1_000 {
        log.append(vec![entry(index, vec![1; 9_000])], outcomes.callback())
            .unwrap();
    }
    assert!(!database.admission_open(), "more than 8 MiB wait");
    stage.executor.run_until_idle();
    assert!(database.admission_open());
    let metrics = database.metrics();
    assert_eq!((metrics.wal_groups, metrics.wal_syncs), (1, 1));
    assert_eq!(outcomes.counts(), (1_000, 0));
}
