//! A `state` keyspace in memory for tests.

use std::path::Path;
use std::sync::Arc;

use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{Database, DatabaseOptions, Keyspace, MemFs, Seams};

/// An empty keyspace of a database of its own.
pub(crate) fn keyspace() -> Keyspace {
    let clock = Arc::new(ManualClock::new());
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(SteppedExecutor::new(clock)),
    };
    let database = Database::open(Path::new("/data"), DatabaseOptions::for_tests(), seams)
        .expect("a database opens on an empty disk in memory");
    database
        .keyspace("state")
        .expect("a new keyspace is created")
}
