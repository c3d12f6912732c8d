//! The applier's end, and what it does while its keyspace has no room.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use kelp_seams::{Clock, ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{
    Boot, Database, DatabaseOptions, EntryTerm, Fault, FaultFs, FaultOperation, FaultRule,
    LogPosition, MemFs, Seams, WriteBatch,
};

use super::*;
use crate::model::{
    BatchNumber, Entry, LogIndex, Operation, SubBatchBuilder, SubBatchId, VALUE_BYTES_MAX,
};
use crate::observer::ApplyObserver;
use crate::state::StateView;
use crate::testing::Recorder;
use crate::testing_state::keyspace;
use crate::type_config::{EntryBytes, LogPayload, RaftEntry, log_id_of};

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

/// An entry of one sub-batch of node 1.
fn entry_of(index: u64, operations: &[Operation]) -> RaftEntry {
    let mut builder = SubBatchBuilder::new();
    for operation in operations {
        builder.append(&operation.clone().command(0)).unwrap();
    }
    let id = SubBatchId {
        node: NodeId::new(1),
        boot: Boot::new(1),
        batch: BatchNumber::new(index + 1),
    };
    let entry = Entry {
        stamp: StampMillis::new(1),
        sub_batches: vec![builder.take(id, BatchNumber::FIRST)],
    };
    let term = EntryTerm { term: 1, leader: 1 };
    let index = LogIndex::new(index);
    RaftEntry {
        log_id: log_id_of(LogPosition { index, term }),
        payload: LogPayload::Normal(EntryBytes(entry.encode())),
    }
}

#[test]
fn chunk_that_writes_far_more_than_it_says_is_written_in_pieces_that_end_with_entries() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let executor = SteppedExecutor::new(clock);
    let observer = Arc::new(Recorder::default());
    let (keyspace, unflushed) = (keyspace(), Arc::new(Unflushed::new(u64::MAX)));
    let told = Arc::clone(&observer) as Arc<dyn ApplyObserver>;
    let node = NodeId::new(1);
    let applier = Applier::spawn(&executor, keyspace.clone(), node, told, unflushed).unwrap();
    let key = Bytes::from_static(b"k");
    let large = Bytes::from(vec![1; VALUE_BYTES_MAX - 100]);
    let (append, byte) = (
        |value| Operation::Append {
            key: key.clone(),
            value,
        },
        "x",
    );
    let chunk_of = [
        vec![append(large)],
        vec![append(byte.into()); 8],
        vec![append(byte.into())],
    ];
    let mut chunk = Chunk::default();
    for (index, operations) in (0..).zip(&chunk_of) {
        chunk.push(entry_of(index, operations), 0, None);
    }
    let mut done = Box::pin(applier.apply(chunk, Occasion::Running));
    assert!(done.as_mut().now_or_never().is_none());
    executor.run_until_idle();
    assert!(done.now_or_never().expect("it is applied").is_ok());
    let seen = observer.seen.lock().unwrap();
    let views: Vec<_> = seen
        .iter()
        .map(|(index, _, _, applied)| (*index, *applied))
        .collect();
    let expected = [0, 1, 2]
        .map(LogIndex::new)
        .map(|index| (index, Some(index)));
    assert_eq!(
        views, expected,
        "each sub-batch has the view right after it"
    );
    let record = StateView::new(keyspace.view()).get(0, &key).unwrap();
    let length = record.map(|record| record.value.len());
    assert_eq!(length, Some(VALUE_BYTES_MAX - 100 + 9));
}
