//! Real threads and real files: logs that are written, cut and read at the same time.

use std::sync::mpsc;
use std::time::Duration;

use super::stage::{Snapshot, entry, position};
use super::*;
use crate::log::LogIndex;

const ROUNDS: u64 = 400;

/// Appends, votes, discards, truncates and reads back, and answers what the log then holds.
fn work(log: &Log) -> Snapshot {
    let (sender, receiver) = mpsc::channel();
    let callback = || -> crate::log::Durable {
        let sender = sender.clone();
        Box::new(move |result| sender.send(result).unwrap())
    };
    let mut submitted = 0;
    for index in 0..ROUNDS {
        log.append(vec![entry(index, index.to_le_bytes().to_vec())], callback())
            .unwrap();
        submitted += 1;
        match index % 16 {
            3 => log.put_committed(position(index)).unwrap(),
            7 => {
                log.put_vote(&index.to_le_bytes(), callback()).unwrap();
                submitted += 1;
            }
            11 => {
                log.truncate_suffix(LogIndex::new(index)).unwrap();
                let again = entry(index, index.to_le_bytes().to_vec());
                log.append(vec![again], callback()).unwrap();
                submitted += 1;
            }
            15 if index > 100 => log.discard_prefix(position(index - 100)).unwrap(),
            _ => {}
        }
        let first = log.first().unwrap().index;
        let oldest = log.read(first..first.next(), usize::MAX).unwrap();
        assert_eq!(*oldest[0].payload, first.get().to_le_bytes());
    }
    for _ in 0..submitted {
        receiver
            .recv_timeout(Duration::from_mins(1))
            .unwrap()
            .unwrap();
    }
    Snapshot::of(log)
}

#[test]
fn logs_of_one_database_do_not_disturb_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock::new());
    let executor = Arc::new(ThreadExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let seams = Seams {
        vfs: Arc::new(RealFs),
        clock,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::clone(&executor) as Arc<dyn Executor>,
    };
    let open = || {
        let options = DatabaseOptions {
            wal_file_bytes: 8_192,
            hot_tail_bytes: 512,
            ..DatabaseOptions::default()
        };
        Database::open(directory.path(), options, seams.clone()).unwrap()
    };
    let database = open();
    let (sender, receiver) = mpsc::channel();
    for number in 0..3 {
        let log = database.log(LogNumber::new(number)).unwrap();
        let sender = sender.clone();
        executor.run_blocking(Box::new(move || {
            let snapshot = work(&log);
            // The handle must be gone before the database is opened again.
            drop(log);
            sender.send((number, snapshot)).unwrap();
        }));
    }
    drop(sender);
    let expected: BTreeMap<_, _> = receiver.iter().collect();
    assert_eq!(expected.len(), 3);
    assert!(database.metrics().wal_files < 40, "files are given back");
    drop(database);
    let database = open();
    for (number, expected) in expected {
        let log = database.log(LogNumber::new(number)).unwrap();
        assert_eq!(Snapshot::of(&log), expected);
    }
}
