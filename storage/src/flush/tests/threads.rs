//! Real threads and real files: one who writes and waits for room, readers beside it, flush and
//! compaction below them.

#![expect(
    clippy::disallowed_methods,
    reason = "threads that really race are what this test is about"
)]

use std::sync::mpsc;
use std::thread;

use kelp_seams::{Clock, SystemClock, ThreadExecutor};

use super::*;
use crate::database::Seams;
use crate::vfs::RealFs;

const WRITES: u64 = 4_000;

/// Keys are used again after this many writes, so that compaction has something to drop.
const KEYS: u64 = 700;

fn options() -> DatabaseOptions {
    DatabaseOptions {
        memtable_bytes: 32 << 10,
        table_bytes: 16 << 10,
        level_base_bytes: 64 << 10,
        level_0_stop_tables: 8,
        ..DatabaseOptions::for_tests()
    }
}

fn key(number: u64) -> Bytes {
    Bytes::from(format!("key {:04}", number % KEYS))
}

/// Write `number` says that it was the last one, and puts and deletes a key.
fn write(keyspace: &Keyspace, number: u64) {
    let (sender, room) = mpsc::channel();
    keyspace.on_room(Box::new(move || sender.send(()).unwrap()));
    room.recv().unwrap();
    let mut batch = WriteBatch::new();
    batch.put("last", number.to_string());
    batch.put(key(number), number.to_string());
    batch.delete(key(number + KEYS / 2));
    keyspace.write(batch).unwrap();
}

/// Whether `view` is the state after some write, as far as one scan tells.
fn check(view: &ReadView, direction: Direction) -> u64 {
    let last = view.get(b"last").unwrap().unwrap();
    let last: u64 = std::str::from_utf8(&last).unwrap().parse().unwrap();
    let written = (last.saturating_sub(KEYS / 2 - 1)..=last).rev();
    let mut expected: Vec<_> = written
        .map(|number| (key(number), Bytes::from(number.to_string())))
        .chain([(Bytes::from("last"), Bytes::from(last.to_string()))])
        .collect();
    expected.sort();
    if direction == Direction::Reverse {
        expected.reverse();
    }
    assert!(scan(view, direction).unwrap() == expected, "after {last}");
    last
}

#[test]
fn readers_see_whole_states_while_tables_are_made_and_merged() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let clock = Arc::new(SystemClock::new());
        let seams = Seams {
            vfs: Arc::new(RealFs),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            rng: Arc::new(SeededRng::new(1)),
            executor: Arc::new(ThreadExecutor::new(clock)),
        };
        Database::open(directory.path(), options(), seams).unwrap()
    };
    let database = open();
    let keyspace = database.keyspace("test").unwrap();
    write(&keyspace, 0);
    thread::scope(|scope| {
        scope.spawn(|| (1..WRITES).for_each(|number| write(&keyspace, number)));
        for direction in [Direction::Forward, Direction::Reverse] {
            let keyspace = &keyspace;
            scope.spawn(move || {
                let mut last = 0;
                let held = keyspace.view();
                while last < WRITES - 1 {
                    let now = check(&keyspace.view(), direction);
                    assert!(now >= last, "the state went back");
                    last = now;
                }
                check(&held, direction);
            });
        }
    });
    let (sender, flushed) = mpsc::channel();
    keyspace.on_flushed(Arc::new(move || sender.send(()).unwrap()));
    keyspace.flush();
    while database.metrics().memtables > 0 {
        flushed.recv().unwrap();
    }
    let metrics = database.metrics();
    assert!(metrics.flushes > 10 && metrics.compactions > 0);
    drop((keyspace, database));
    let keyspace = open().keyspace("test").unwrap();
    assert_eq!(check(&keyspace.view(), Direction::Forward), WRITES - 1);
}
