//! openraft's state machine: hands committed entries to the applier and waits for its ticket.
//!
//! openraft calls from an async task; applying is work for a job of its own, so this module only
//! packs entries and the proposers' responders into chunks. There are no snapshots: the log is
//! kept whole, so nobody ever asks for one, and [`Image`] has no value by which one could exist.

use std::io;

use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{OptionalSend, RaftSnapshotBuilder};

use crate::applier::{Applier, Chunk, Occasion};
use crate::type_config::{LogId, LogPayload, StoredMembership, TypeConfig};

/// openraft, instantiated.
pub(crate) type OpenRaft = openraft::Raft<TypeConfig, StateMachine>;

/// The data of a snapshot. It has no values: snapshots are not made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Image {}

/// A snapshot that cannot exist.
pub(crate) type NoImage = SnapshotOf<TypeConfig, Image>;

/// Entries handed to the applier at once, so that a step of it stays short.
const CHUNK_ENTRIES_MAX: usize = 64;

/// Bytes handed to the applier at once; a larger entry goes alone.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// What the state says about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Applied {
    pub(crate) last: Option<LogId>,
    pub(crate) membership: StoredMembership,
}

/// The state machine that openraft drives.
pub(crate) struct StateMachine {
    applier: Applier,
    applied: Applied,
}

impl StateMachine {
    pub(crate) fn new(applier: Applier, start: Applied) -> Self {
        Self {
            applier,
            applied: start,
        }
    }

    async fn apply_chunk(&mut self, chunk: Chunk) -> Result<(), io::Error> {
        let Some(last) = chunk.last() else {
            return Ok(());
        };
        let membership = chunk.last_membership();
        self.applier.apply(chunk, Occasion::Running).await?;
        self.applied.last = Some(last);
        if let Some(membership) = membership {
            self.applied.membership = membership;
        }
        Ok(())
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = Image;
    type SnapshotBuilder = NoSnapshots;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.applied.last, self.applied.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut chunk = Chunk::default();
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            let bytes = match &entry.payload {
                LogPayload::Normal(entry) => entry.0.len(),
                LogPayload::Blank | LogPayload::Membership(_) => 0,
            };
            let full = chunk.len() >= CHUNK_ENTRIES_MAX || chunk.bytes() + bytes > CHUNK_BYTES_MAX;
            if full && chunk.len() > 0 {
                self.apply_chunk(std::mem::take(&mut chunk)).await?;
            }
            chunk.push(entry, bytes, responder);
        }
        self.apply_chunk(chunk).await
    }

    async fn get_snapshot_builder(&mut self) -> NoSnapshots {
        NoSnapshots
    }

    async fn install_snapshot(
        &mut self,
        _meta: &SnapshotMetaOf<TypeConfig>,
        snapshot: Image,
    ) -> Result<(), io::Error> {
        match snapshot {}
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<NoImage>, io::Error> {
        Ok(None)
    }
}

/// Refuses to build: nothing triggers a snapshot, and a log that is kept whole needs none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoSnapshots;

impl RaftSnapshotBuilder<TypeConfig> for NoSnapshots {
    type SnapshotData = Image;

    async fn build_snapshot(&mut self) -> Result<NoImage, io::Error> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "snapshots are not built",
        ))
    }
}
