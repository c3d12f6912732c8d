mod arbitrary;
mod corruption;
mod crash;
mod directory;
mod fault;
mod golden;
mod stage;

use kelp_seams::{SeededRng, SystemClock, ThreadExecutor};

use self::stage::{Outcomes, Stage, entries, entry, must, position};
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
