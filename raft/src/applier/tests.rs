//! The applier's end, and what it does while its keyspace has no room.

use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use kelp_seams::{Clock, ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{
    Database, DatabaseOptions, Fault, FaultFs, FaultOperation, FaultRule, MemFs, Seams, WriteBatch,
};

use super::*;
use crate::testing::Recorder;
use crate::testing_state::keyspace;

#[test]
fn chunk_that_comes_after_the_stop_fails_at_once() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let executor = SteppedExecutor::new(clock);
    let observer = Arc::new(Recorder::default());
    let unflushed = Arc::new(Unflushed::new(1));
    let spawned = Applier::spawn(&executor, keyspace(), NodeId::new(1), observer, unflushed);
    let applier = spawned.unwrap();
    let before = applier.apply(Chunk::default(), Occasion::Running);
    let mut before = Box::pin(before);
    assert!(before.as_mut().now_or_never().is_none());
    applier.stop();
    let after = applier.apply(Chunk::default(), Occasion::Running);
    for late in [before.now_or_never(), after.now_or_never()] {
        assert!(late.expect("nobody will answer later").is_err());
    }
}

/// A disk that takes no table for a while, and a keyspace that has run out of room.
struct Full {
    clock: Arc<ManualClock>,
    executor: Arc<SteppedExecutor>,
    database: Database,
    applier: Applier,
}

/// How many tables cannot be made.
const FAILURES: u64 = 5;

const ENOSPC: i32 = 28;

impl Full {
    fn new() -> Self {
        let faults = FaultFs::over(MemFs::new());
        faults.add(FaultRule {
            name: Some("*.sst".to_owned()),
            count: FAILURES,
            ..FaultRule::once(Some(FaultOperation::Create), 0, Fault::Errno(ENOSPC))
        });
        let clock = Arc::new(ManualClock::new());
        let executor = Arc::new(SteppedExecutor::new(clock.clone()));
        let seams = Seams {
            vfs: Arc::new(faults),
            clock: clock.clone(),
            rng: Arc::new(SeededRng::new(1)),
            executor: executor.clone(),
        };
        let options = DatabaseOptions::for_tests();
        let database = Database::open(Path::new("/data"), options, seams).unwrap();
        let keyspace = database.keyspace("state").unwrap();
        let observer = Arc::new(Recorder::default());
        let unflushed = Arc::new(Unflushed::new(u64::MAX));
        let node = NodeId::new(1);
        let applier = Applier::spawn(&*executor, keyspace.clone(), node, observer, unflushed);
        while keyspace.has_room() {
            let mut batch = WriteBatch::new();
            batch.put("key", vec![0; 1024]);
            keyspace.write(batch).unwrap();
        }
        assert!(!database.admission_open(), "new work is refused early");
        Self {
            clock,
            executor,
            database,
            applier: applier.unwrap(),
        }
    }
}

#[test]
fn chunk_waits_for_room_and_is_applied_when_the_flush_has_made_it() {
    let full = Full::new();
    let mut done = Box::pin(full.applier.apply(Chunk::default(), Occasion::Running));
    let mut pauses = 0;
    let result = loop {
        full.executor.run_until_idle();
        if let Some(result) = done.as_mut().now_or_never() {
            break result;
        }
        pauses += 1;
        full.clock.advance(Duration::from_secs(5));
    };
    assert!(result.is_ok());
    assert_eq!(pauses, FAILURES, "it waited for each try of the flush");
    assert!(full.database.admission_open());
}

#[test]
fn waiting_for_room_ends_with_the_applier_and_with_the_database() {
    let full = Full::new();
    let mut done = Box::pin(full.applier.apply(Chunk::default(), Occasion::Running));
    assert!(done.as_mut().now_or_never().is_none());
    full.executor.run_until_idle();
    full.applier.stop();
    assert!(done.now_or_never().expect("it was answered").is_err());

    let full = Full::new();
    let mut done = Box::pin(full.applier.apply(Chunk::default(), Occasion::Running));
    assert!(done.as_mut().now_or_never().is_none());
    full.executor.run_until_idle();
    full.database.close();
    full.executor.run_until_idle();
    assert!(done.now_or_never().expect("it was answered").is_ok());
}
