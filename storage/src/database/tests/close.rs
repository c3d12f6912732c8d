//! Submissions that race the end of a database, and the order in which callbacks end.

use super::stage::{Outcomes, Snapshot, Stage, entry, must, position};
use super::*;
use crate::batch::WriteBatch;
use crate::log::Durable;
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs};

/// Submits at every sync of the closing database; answers how many were taken and what reopening
/// finds.
fn submit_while_closing(submit: impl Fn(&Log, u64, Durable) + Send + Sync + 'static) -> Snapshot {
    let disk = MemFs::new();
    let stage = Stage::new(Arc::new(disk.clone()));
    let database = stage.open().unwrap();
    stage.executor.run_until_idle();
    let log = database.log(LogNumber::new(0)).unwrap();
    log.append(vec![entry(0, "before")], must()).unwrap();
    let outcomes = Outcomes::default();
    let submitted = Arc::new(Mutex::new(0));
    let (racing, inside, counted) = (log.clone(), outcomes.clone(), Arc::clone(&submitted));
    disk.on_sync(Arc::new(move |_, _: &MemFs| {
        let mut count = lock(&counted);
        *count += 1;
        submit(&racing, *count, inside.callback());
    }));
    database.close();
    disk.on_sync(Arc::new(|_, _: &MemFs| {}));
    let (durable, failed) = outcomes.counts();
    assert_eq!(
        durable + failed,
        usize::try_from(*lock(&submitted)).unwrap(),
        "every callback runs once"
    );
    assert!(durable > 0, "the first one comes in time");
    let before = Snapshot::of(&log);
    let votes = database.shared.hard_state.votes();
    assert_eq!(
        votes.last().map(|(_, stored)| stored.vote.clone()),
        before.vote,
        "HARDSTATE has the vote too"
    );
    let found = Snapshot::of(&stage.open().unwrap().log(LogNumber::new(0)).unwrap());
    assert_eq!(found, before, "what was taken is written");
    found
}

#[test]
fn an_append_that_races_the_end_is_durable_or_refused() {
    let found = submit_while_closing(|log, count, callback| {
        let _ = log.append(vec![entry(count, "racing")], callback);
    });
    assert_eq!(found.entries.last(), Some(&entry(1, "racing")));
}

#[test]
fn a_vote_that_races_the_end_is_durable_or_refused() {
    let found = submit_while_closing(|log, count, callback| {
        let _ = log.put_vote(&count.to_le_bytes(), callback);
    });
    assert_eq!(found.vote.unwrap(), &1_u64.to_le_bytes()[..]);
}

#[test]
fn a_submission_whose_seal_fails_is_told_so() {
    let disk = MemFs::new();
    let faults = FaultFs::new(Arc::new(disk.clone()));
    let stage = Stage::new(Arc::new(faults.clone()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    stage.executor.run_until_idle();
    let outcomes = Outcomes::default();
    log.append(vec![entry(0, "before")], outcomes.callback())
        .unwrap();
    let (racing, inside) = (log.clone(), outcomes.clone());
    disk.on_sync(Arc::new(move |_, _: &MemFs| {
        let rule = FaultRule::once(Some(FaultOperation::Sync), 0, Fault::Errno(5));
        faults.add(rule);
        racing
            .append(vec![entry(1, "racing")], inside.callback())
            .unwrap();
    }));
    database.close();
    assert_eq!(outcomes.counts(), (1, 1));
}

/// Notes when it ran and how.
fn noting(order: &Arc<Mutex<Vec<(u64, bool)>>>, number: u64) -> Durable {
    let order = Arc::clone(order);
    Box::new(move |result| lock(&order).push((number, result.is_ok())))
}

#[test]
fn callbacks_end_in_the_order_of_submission() {
    let faults = FaultFs::new(Arc::new(MemFs::new()));
    let stage = Stage::new(Arc::new(faults.clone()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    let order = Arc::default();
    for number in 0..3 {
        log.append(vec![entry(number, "together")], noting(&order, number))
            .unwrap();
    }
    stage.executor.run_until_idle();
    assert_eq!(*lock(&order), [(0, true), (1, true), (2, true)]);
    // The group that waits for space, then what waits behind it.
    faults.add(FaultRule {
        count: u64::MAX,
        ..FaultRule::once(Some(FaultOperation::Write), 0, Fault::Errno(28))
    });
    lock(&order).clear();
    for number in 3..6 {
        log.append(vec![entry(number, "later")], noting(&order, number))
            .unwrap();
        stage.executor.run_until_idle();
    }
    log.put_vote(b"vote", noting(&order, 6)).unwrap();
    database.close();
    let expected = [(3, false), (4, false), (5, false), (6, false)];
    assert_eq!(*lock(&order), expected);
}

#[test]
fn a_discarded_prefix_stays_discarded() {
    let stage = Stage::new(Arc::new(MemFs::new()));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    let added = (0..4).map(|index| entry(index, "entry")).collect();
    log.append(added, must()).unwrap();
    log.discard_prefix(position(1)).unwrap();
    let expected = Snapshot::of(&log);
    assert_eq!(expected.entries.len(), 2);
    drop((log, database));
    let database = stage.open().unwrap();
    let log = database.log(LogNumber::new(0)).unwrap();
    assert_eq!(Snapshot::of(&log), expected);
    log.discard_prefix(position(9)).unwrap();
    drop((log, database));
    let log = stage.open().unwrap().log(LogNumber::new(0)).unwrap();
    assert_eq!(log.purged(), Some(position(9)));
    assert_eq!(log.first(), None);
}

#[test]
fn a_closed_database_leaves_the_directory_to_the_next_one() {
    let disk = MemFs::new();
    let stage = Stage::new(Arc::new(disk.clone()));
    let closed = stage.open().unwrap();
    let write = |keyspace: &Keyspace, value: &'static str| {
        let mut batch = WriteBatch::new();
        batch.put("key", value);
        keyspace.write(batch).unwrap();
        keyspace.flush();
        stage.executor.run_until_idle();
    };
    let keyspace = closed.keyspace("state").unwrap();
    write(&keyspace, "first");
    let description = keyspace.pin().description();
    let mut staging = closed.stage(&keyspace, &description).unwrap();
    closed.close();

    let next = stage.open().unwrap();
    write(&next.keyspace("state").unwrap(), "second");
    let is_closed = |result| matches!(result, Err(StorageError::Closed));
    assert!(is_closed(closed.keyspace("other").map(|_| ())));
    assert!(is_closed(closed.bind(b"owner")));
    assert!(is_closed(closed.raise_boot().map(|_| ())));
    assert!(is_closed(staging.write(0, 0, b"piece")));
    write(&keyspace, "lost");
    drop((staging, keyspace, closed));
    write(&next.keyspace("state").unwrap(), "third");
    drop(next);

    let found = stage.open().unwrap();
    assert_eq!((found.owner(), found.boot()), (None, Boot::default()));
    let value = found.keyspace("state").unwrap().view().get(b"key").unwrap();
    assert_eq!(value.unwrap(), "third");
}
