use std::sync::atomic::{AtomicUsize, Ordering};

use kelp_seams::{ManualClock, SeededRng, SteppedExecutor, SystemClock, ThreadExecutor};

use super::*;
use crate::log::{EntryTerm, LogEntry, LogIndex, LogPosition};
use crate::vfs::{MemFs, RealFs};

/// A database on a disk in memory, whose jobs run when the test says so.
struct Stage {
    executor: Arc<SteppedExecutor>,
    seams: Seams,
}

fn stage(vfs: Arc<dyn Vfs>) -> Stage {
    let clock = Arc::new(ManualClock::new());
    let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let seams = Seams {
        vfs,
        clock,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::clone(&executor) as Arc<dyn Executor>,
    };
    Stage { executor, seams }
}

fn directory() -> &'static Path {
    Path::new("/data")
}

fn entry(index: u64, payload: &str) -> LogEntry {
    LogEntry {
        index: LogIndex::new(index),
        term: EntryTerm { term: 1, leader: 2 },
        payload: Bytes::copy_from_slice(payload.as_bytes()),
    }
}

fn all(log: &Log) -> Vec<LogEntry> {
    let first = log.first().map_or(LogIndex::new(0), |first| first.index);
    log.read(first..LogIndex::new(u64::MAX), usize::MAX)
        .unwrap()
}

#[test]
fn a_log_survives_closing_and_opening() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemFs::new());
    let expected = {
        let stage = stage(Arc::clone(&vfs));
        let database =
            Database::open(directory(), DatabaseOptions::for_tests(), stage.seams).unwrap();
        assert_eq!(database.boot().get(), 0);
        assert_eq!(database.raise_boot().unwrap().get(), 1);
        let log = database.log(LogNumber::new(0)).unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for index in 0..100 {
            let done = Arc::clone(&done);
            log.append(
                vec![entry(index, "some payload of an entry")],
                Box::new(move |result| {
                    result.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                }),
            )
            .unwrap();
            stage.executor.run_until_idle();
        }
        assert_eq!(done.load(Ordering::SeqCst), 100);
        let term = EntryTerm { term: 1, leader: 2 };
        log.discard_prefix(LogPosition {
            index: LogIndex::new(49),
            term,
        })
        .unwrap();
        log.truncate_suffix(LogIndex::new(90)).unwrap();
        log.put_committed(LogPosition {
            index: LogIndex::new(80),
            term,
        })
        .unwrap();
        log.put_vote(b"vote", Box::new(|result| result.unwrap()))
            .unwrap();
        let expected = all(&log);
        assert_eq!(expected.len(), 40);
        database.close();
        expected
    };
    let stage = stage(vfs);
    let database = Database::open(directory(), DatabaseOptions::for_tests(), stage.seams).unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    assert_eq!(all(&log), expected);
    assert_eq!(log.vote().unwrap(), "vote");
    assert_eq!(log.committed().unwrap().index.get(), 80);
    assert_eq!(log.purged().unwrap().index.get(), 49);
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
    let before = all(&log);
    assert_eq!(before.len(), 2_000);
    drop((log, database));
    let database = open();
    assert_eq!(all(&database.log(LogNumber::new(7)).unwrap()), before);
}
