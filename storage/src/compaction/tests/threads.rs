//! Real threads and real files: readers see whole batches while tables come and go under them.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use kelp_seams::{Clock, Executor, Rng, SeededRng, SystemClock, ThreadExecutor};

use super::database::options;
use crate::batch::WriteBatch;
use crate::database::{Database, Seams};
use crate::keyspace::Keyspace;
use crate::read_view::Direction;
use crate::vfs::RealFs;

const ACCOUNTS: u64 = 300;
const START: u64 = 1_000;
const TRANSFERS: u64 = 3_000;

fn name(account: u64) -> Bytes {
    Bytes::from(format!("account {account:04}"))
}

fn amount(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

fn set(batch: &mut WriteBatch, account: u64, amount: u64) {
    // An empty account is no account.
    if amount == 0 {
        batch.delete(name(account));
    } else {
        batch.put(name(account), [amount.to_le_bytes(), [7; 8]].concat());
    }
}

/// Moves money about; answers when no transfer is left.
fn transfer(keyspace: &Keyspace) {
    let rng = SeededRng::new(5);
    let (wake, woken) = mpsc::channel();
    for _ in 0..TRANSFERS {
        let (from, to) = (rng.next_u64() % ACCOUNTS, rng.next_u64() % ACCOUNTS);
        let view = keyspace.view();
        let held = |account| {
            view.get(&name(account))
                .unwrap()
                .map_or(0, |value| amount(&value))
        };
        let (left, right) = (held(from), held(to));
        let moved = left.min(rng.next_u64() % 2_000);
        if from != to {
            let mut batch = WriteBatch::new();
            set(&mut batch, from, left - moved);
            set(&mut batch, to, right + moved);
            keyspace.write(batch).unwrap();
        }
        let wake = wake.clone();
        keyspace.on_room(Box::new(move || wake.send(()).unwrap()));
        woken.recv().unwrap();
    }
}

/// Adds everything up, forward and in reverse by turns, until told to stop; answers how often.
fn audit(keyspace: &Keyspace, stop: &AtomicBool) -> u64 {
    let mut audits = 0;
    while !stop.load(Ordering::Relaxed) {
        let direction = [Direction::Forward, Direction::Reverse][usize::from(audits % 2 == 1)];
        let range = keyspace
            .view()
            .range((Bound::Unbounded, Bound::Unbounded), direction);
        let sum: u64 = range.map(|entry| amount(&entry.unwrap().1)).sum();
        assert_eq!(sum, ACCOUNTS * START);
        audits += 1;
    }
    audits
}

#[test]
fn scans_see_whole_batches_while_tables_are_flushed_and_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock::new());
    let executor = Arc::new(ThreadExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let seams = Seams {
        vfs: Arc::new(RealFs),
        clock,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::clone(&executor) as Arc<dyn Executor>,
    };
    let database = Database::open(directory.path(), options(), seams).unwrap();
    let keyspace = database.keyspace("bank").unwrap();
    let mut batch = WriteBatch::new();
    for account in 0..ACCOUNTS {
        set(&mut batch, account, START);
    }
    keyspace.write(batch).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, audits) = mpsc::channel();
    for _ in 0..2 {
        let (sender, keyspace, stop) = (sender.clone(), keyspace.clone(), Arc::clone(&stop));
        executor.run_blocking(Box::new(move || {
            sender.send(audit(&keyspace, &stop)).unwrap();
        }));
    }
    transfer(&keyspace);
    stop.store(true, Ordering::Relaxed);
    assert!(audits.recv().unwrap() + audits.recv().unwrap() > 0);
    assert!(database.metrics().compactions > 10);
    assert_eq!(database.metrics().compaction_failures, 0);
}
