//! openraft's state machine: hands committed entries to the applier and waits for its ticket.
//!
//! openraft calls from an async task; applying is work for a job of its own, so this module only
//! packs entries and the proposers' responders into chunks. A snapshot is the flushed state, pinned
//! when somebody asks for it; one that was received goes to the applier like entries do.

use std::io;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use kelp_storage::Keyspace;
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{OptionalSend, RaftSnapshotBuilder};

use crate::applier::{Applier, Chunk, Occasion};
use crate::message::Meta;
use crate::snapshot::{self, Image, Shipping, Snapshot, SnapshotCounters};
use crate::type_config::{LogId, LogPayload, StoredMembership, TypeConfig};

/// openraft, instantiated.
pub(crate) type OpenRaft = openraft::Raft<TypeConfig, StateMachine>;

/// Entries handed to the applier at once, so that a step of it stays short.
const CHUNK_ENTRIES_MAX: usize = 64;

/// Bytes handed to the applier at once; a larger entry goes alone.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// The state machine that openraft drives.
pub(crate) struct StateMachine {
    applier: Applier,
    /// What the state says about itself.
    applied: Meta,
    builder: Builder,
}

impl StateMachine {
    pub(crate) fn new(
        applier: Applier,
        start: Meta,
        keyspace: Keyspace,
        shipping: Arc<Shipping>,
    ) -> Self {
        Self {
            applier,
            applied: start,
            builder: Builder { keyspace, shipping },
        }
    }

    async fn apply_chunk(&mut self, chunk: Chunk) -> Result<(), io::Error> {
        let Some(last) = chunk.last() else {
            return Ok(());
        };
        let membership = chunk.last_membership();
        self.applier.apply(chunk, Occasion::Running).await?;
        self.applied.last_log_id = Some(last);
        if let Some(membership) = membership {
            self.applied.last_membership = membership;
        }
        Ok(())
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = Image;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((
            self.applied.last_log_id,
            self.applied.last_membership.clone(),
        ))
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

    async fn get_snapshot_builder(&mut self) -> Builder {
        self.builder.clone()
    }

    async fn install_snapshot(&mut self, meta: &Meta, image: Image) -> Result<(), io::Error> {
        let Image::Staged(staged) = image else {
            let message = "only a staged state can be installed";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        self.applier.install(staged).await?;
        SnapshotCounters::add(&self.builder.shipping.counters.installed, 1);
        self.applied = meta.clone();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        if let Some(snapshot) = self.builder.shipping.preferred() {
            return Ok(Some(snapshot));
        }
        self.builder.pinned().await
    }
}

/// Takes the flushed state as a snapshot.
#[derive(Clone)]
pub(crate) struct Builder {
    keyspace: Keyspace,
    shipping: Arc<Shipping>,
}

impl Builder {
    async fn pinned(&self) -> Result<Option<Snapshot>, io::Error> {
        snapshot::pinned(&*self.shipping.executor, &self.keyspace).await
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = Image;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        // Before the first flush it is the snapshot of nothing, which openraft never sends.
        let nothing = || Snapshot {
            meta: Meta::default(),
            snapshot: Image::Pinned(self.keyspace.pin()),
        };
        Ok(self.pinned().await?.unwrap_or_else(nothing))
    }
}
