//! Execution of a log payload on an empty state, twice in a row: the second time a repetition.

#![no_main]

use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use kelp_raft::{ApplyError, EntryApplier, EntryOutcome};
use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{
    Database, DatabaseOptions, EntryTerm, IndexedBatch, Keyspace, LogIndex, LogPosition, MemFs,
    Seams,
};
use libfuzzer_sys::fuzz_target;

/// The database is kept because the keyspace lives in it.
static EMPTY_STATE: LazyLock<(Database, Keyspace)> = LazyLock::new(|| {
    let clock = Arc::new(ManualClock::new());
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(SteppedExecutor::new(clock)),
    };
    let database = Database::open(Path::new("/data"), DatabaseOptions::for_tests(), seams)
        .expect("a database opens on an empty disk in memory");
    let state = database
        .keyspace("state")
        .expect("a new keyspace is created");
    (database, state)
});

fuzz_target!(|bytes: &[u8]| {
    let _ = apply_twice(&Bytes::copy_from_slice(bytes));
});

fn apply_twice(payload: &Bytes) -> Result<(), ApplyError> {
    let view = EMPTY_STATE.1.view();
    let mut replica = EntryApplier::load(&view)?;
    let mut batch = IndexedBatch::new();
    for index in 0..2 {
        let position = LogPosition {
            index: LogIndex::new(index),
            term: EntryTerm { term: 1, leader: 1 },
        };
        let applied = replica.apply(position, payload, &view, &mut batch)?;
        let outcome = EntryOutcome::decode(&applied.outcome.encode());
        assert_eq!(outcome.as_ref(), Ok(&applied.outcome));
        assert_eq!(
            applied.sub_batches.len(),
            applied.outcome.sub_batches.len(),
            "each sub-batch has an outcome"
        );
    }
    Ok(())
}
