//! A state machine that only remembers what was applied last.

use std::io;

use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{OptionalSend, RaftSnapshotBuilder, SnapshotMeta};

use crate::model::{EntryOutcome, LogIndex, Term};
use crate::type_config::{LogId, LogPayload, StoredMembership, TypeConfig};

type Meta = SnapshotMetaOf<TypeConfig>;
type Snapshot = SnapshotOf<TypeConfig, ()>;

/// Positions and memberships, in memory. Its snapshots hold nothing else: the suite rebuilds one
/// when it opens a log that was purged.
#[derive(Default, Clone)]
pub(super) struct StandIn {
    last: Option<LogId>,
    membership: StoredMembership,
    snapshot: Option<Meta>,
}

impl RaftStateMachine<TypeConfig> for StandIn {
    type SnapshotData = ();
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.last, self.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(entry) = entries.next().await {
            let (entry, responder) = entry?;
            self.last = Some(entry.log_id);
            if let LogPayload::Membership(membership) = entry.payload {
                self.membership = StoredMembership::new(Some(entry.log_id), membership);
            }
            if let Some(responder) = responder {
                responder.send(EntryOutcome {
                    index: LogIndex::new(entry.log_id.index),
                    term: Term::new(entry.log_id.leader_id.term),
                    sub_batches: Vec::new(),
                });
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn install_snapshot(&mut self, meta: &Meta, _snapshot: ()) -> Result<(), io::Error> {
        self.last = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.snapshot = Some(meta.clone());
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self
            .snapshot
            .clone()
            .map(|meta| Snapshot { meta, snapshot: () }))
    }
}

impl RaftSnapshotBuilder<TypeConfig> for StandIn {
    type SnapshotData = ();

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let meta = SnapshotMeta {
            last_log_id: self.last,
            last_membership: self.membership.clone(),
        };
        Ok(Snapshot { meta, snapshot: () })
    }
}
