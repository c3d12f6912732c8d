//! The state machine as openraft's suite wants it.
//!
//! The suite applies entries that do not follow each other, asks for a snapshot of what was not
//! flushed and installs a snapshot of one state machine in another without shipping it. So this
//! fills holes with blank entries, flushes first, and copies the files. All the rest is the real
//! state machine over the engine.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, stream};
use kelp_storage::{Keyspace, PinnedVersion, StagedVersion};
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftStateMachine};

use super::Engine;
use crate::applier::{Applier, Unflushed};
use crate::message::Meta;
use crate::model::{GroupId, NodeId};
use crate::snapshot::{self, Image, Shipping, Snapshot};
use crate::state::StateReader;
use crate::state_machine::{Builder, StateMachine};
use crate::testing::Recorder;
use crate::type_config::{LogId, LogPayload, RaftEntry, StoredMembership, TypeConfig};

/// Bytes that are copied at once.
const COPIED_BYTES: usize = 1 << 16;

/// A real state machine behind what the suite takes for granted.
pub(super) struct Filled {
    machine: StateMachine,
    engine: Arc<Engine>,
    keyspace: Keyspace,
}

impl Filled {
    pub(super) fn new(engine: &Arc<Engine>) -> Self {
        let state = StateReader::open(&engine.database, GroupId::new(0)).unwrap();
        let keyspace = state.keyspace().clone();
        let observer = Arc::new(Recorder::default());
        let node = NodeId::new(1);
        let unflushed = Arc::new(Unflushed::new(u64::MAX));
        let executor = engine.executor();
        let applier =
            Applier::spawn(&*executor, keyspace.clone(), node, observer, unflushed).unwrap();
        let start = snapshot::described(&state.view()).unwrap();
        let shipping = Arc::new(Shipping::new(executor, Arc::clone(&engine.clock)));
        Self {
            machine: StateMachine::new(applier, start, keyspace.clone(), shipping),
            engine: Arc::clone(engine),
            keyspace,
        }
    }

    /// The entries between the state and `next`.
    async fn missing(&mut self, next: LogId) -> Vec<RaftEntry> {
        let (applied, _) = self.machine.applied_state().await.unwrap();
        let first = applied.map_or(0, |applied| applied.index + 1);
        let blank = |index| RaftEntry {
            log_id: LogId::new(next.leader_id, index),
            payload: LogPayload::Blank,
        };
        (first..next.index).map(blank).collect()
    }

    async fn flush(&mut self) -> Result<(), io::Error> {
        let (applied, _) = self.machine.applied_state().await?;
        let executor = self.engine.executor();
        self.keyspace.flush();
        loop {
            let pinned = snapshot::pinned(&*executor, &self.keyspace).await?;
            if pinned.and_then(|pinned| pinned.meta.last_log_id) == applied {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    fn copy(&self, pinned: &PinnedVersion) -> StagedVersion {
        let description = pinned.description();
        let database = &self.engine.database;
        let mut staging = database.stage(&self.keyspace, &description).unwrap();
        for file in 0..pinned.file_count() {
            while staging.written(file) < pinned.file_bytes(file) {
                let offset = staging.written(file);
                let bytes = pinned.read(file, offset, COPIED_BYTES).unwrap();
                staging.write(file, offset, &bytes).unwrap();
            }
        }
        staging.finish().unwrap()
    }
}

impl RaftStateMachine<TypeConfig> for Filled {
    type SnapshotData = Image;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        self.machine.applied_state().await
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            let missing = self.missing(entry.log_id).await.into_iter();
            let missing = missing.map(|blank| (blank, None));
            let all = missing.chain([(entry, responder)]).map(Ok);
            self.machine.apply(stream::iter(all)).await?;
        }
        Ok(())
    }

    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        self.flush().await.unwrap();
        self.machine.try_create_snapshot_builder(force).await
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.machine.get_snapshot_builder().await
    }

    async fn install_snapshot(&mut self, meta: &Meta, image: Image) -> Result<(), io::Error> {
        let Image::Pinned(pinned) = image else {
            panic!("the suite hands over what a state machine gave it");
        };
        let staged = Image::Staged(self.copy(&pinned));
        self.machine.install_snapshot(meta, staged).await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        self.machine.get_current_snapshot().await
    }
}
