//! What a replica knows about itself and its group.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use openraft::{Instant, ServerState};
use tokio::sync::watch;

use super::Raft;
use crate::model::{LogIndex, Member, NodeId, Term};
use crate::type_config::{LogId, MemberNode, StoredMembership, TypeConfig, node_of};

/// What a replica does in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Orders the log.
    Leader,
    /// Votes and follows a leader.
    Follower,
    /// Asks to become leader.
    Candidate,
    /// Follows without a vote.
    Learner,
    /// Takes no part any more; the process should end.
    Stopped,
}

/// A moment in the life of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftStatus {
    /// This node.
    pub node: NodeId,
    /// What it does.
    pub role: Role,
    /// The term that it is in.
    pub term: Term,
    /// The leader that it knows, possibly itself.
    pub leader: Option<NodeId>,
    /// On the leader, how long ago a majority last acknowledged it; on a follower, how long ago
    /// it last accepted a message of the leader. `None` if that never happened.
    pub leader_contact: Option<Duration>,
    /// The last entry in its log.
    pub last_log: Option<LogIndex>,
    /// The last entry that it knows to be committed.
    pub committed: Option<LogIndex>,
    /// The last entry that readers of this node see.
    pub applied: Option<LogIndex>,
    /// The members of the group, with their roles.
    pub members: BTreeMap<NodeId, Member>,
    /// On the leader: the last entry that each other member has; empty elsewhere.
    pub replication: BTreeMap<NodeId, Option<LogIndex>>,
    /// Its snapshot and how much of the log there is.
    pub snapshots: SnapshotStatus,
}

/// The snapshot and the log of a replica, and what it shipped since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotStatus {
    /// The last entry that its snapshot covers.
    pub snapshot: Option<LogIndex>,
    /// The last entry that was discarded from the log.
    pub purged: Option<LogIndex>,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
    /// Snapshots that were sent and installed by their receivers.
    pub sent: u64,
    /// Snapshots that this replica installed.
    pub installed: u64,
    /// Bytes of snapshots that were sent.
    pub sent_bytes: u64,
    /// Bytes of snapshots that were received.
    pub received_bytes: u64,
}

/// Why a replica stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopReason {
    /// [`Raft::shutdown`] was called.
    #[error("shut down")]
    Shutdown,
    /// Log or state failed; the data on disk decides at the next start.
    #[error("storage failed: {0}")]
    Storage(String),
    /// A defect in the replica itself.
    #[error("raft panicked, which is a bug")]
    Panicked,
}

impl Raft {
    /// The state of the replica now.
    pub fn status(&self) -> RaftStatus {
        let metrics = self.inner.raft.metrics();
        // The watched value is locked while it is borrowed, and the core waits for that lock.
        let metrics = metrics.borrow_watched().clone();
        // A core that panicked leaves its last metrics behind, but nobody counts its epochs.
        let ended = self.inner.epoch.has_changed().is_err();
        let role = match (&metrics.running_state, metrics.state) {
            _ if ended => Role::Stopped,
            (Err(_), _) | (_, ServerState::Shutdown) => Role::Stopped,
            (_, ServerState::Leader) => Role::Leader,
            (_, ServerState::Follower) => Role::Follower,
            (_, ServerState::Candidate) => Role::Candidate,
            (_, ServerState::Learner) => Role::Learner,
        };
        let node = node_of(metrics.id);
        let leader = metrics.current_leader.map(node_of);
        let leader_contact = match (role, leader) {
            // Its own word is a majority.
            (Role::Leader, _) if metrics.membership_config.voter_ids().count() == 1 => {
                Some(Duration::ZERO)
            }
            (Role::Leader, _) => metrics
                .last_quorum_acked
                .map(|acked| acked.into_inner().elapsed()),
            (_, Some(leader)) => self.inner.contact.of(leader).map(|heard| {
                self.inner
                    .clock
                    .monotonic()
                    .saturating_duration_since(heard)
            }),
            (_, None) => None,
        };
        let snapshots = self.snapshot_status(metrics.snapshot, metrics.purged);
        let replication = metrics.replication.unwrap_or_default().into_iter();
        let replication = replication.filter(|(peer, _)| *peer != metrics.id);
        RaftStatus {
            node,
            role,
            term: Term::new(metrics.current_term),
            leader,
            leader_contact,
            last_log: metrics.last_log_index.map(LogIndex::new),
            committed: metrics.local_committed.map(|id| LogIndex::new(id.index)),
            applied: self.inner.progress.borrow().applied,
            members: members(&metrics.membership_config),
            replication: replication
                .map(|(peer, id)| (node_of(peer), id.map(|id| LogIndex::new(id.index))))
                .collect(),
            snapshots,
        }
    }

    fn snapshot_status(&self, snapshot: Option<LogId>, purged: Option<LogId>) -> SnapshotStatus {
        let counters = &self.inner.shipping.counters;
        let index = |id: LogId| LogIndex::new(id.index);
        SnapshotStatus {
            snapshot: snapshot.map(index),
            purged: purged.map(index),
            log_bytes: self.inner.log.bytes(),
            sent: counters.sent.load(Ordering::Relaxed),
            installed: counters.installed.load(Ordering::Relaxed),
            sent_bytes: counters.sent_bytes.load(Ordering::Relaxed),
            received_bytes: counters.received_bytes.load(Ordering::Relaxed),
        }
    }

    /// A counter that grows when role, leader, term or membership changed, or the replica stopped.
    pub fn status_watch(&self) -> watch::Receiver<u64> {
        self.inner.epoch.clone()
    }

    /// Resolves when the replica has stopped, whatever the reason.
    ///
    /// A storage error stops it at once and for good: the process should end and start anew.
    pub async fn stopped(&self) -> StopReason {
        tokio::select! {
            reason = self.core_stopped() => reason,
            () = self.inner.reads.broken() => StopReason::Panicked,
        }
    }

    async fn core_stopped(&self) -> StopReason {
        // The epoch ends with the core. The metrics change with every entry, which is no reason to
        // wake a task that waits for the end.
        let mut epoch = self.inner.epoch.clone();
        loop {
            let running = self
                .inner
                .raft
                .metrics()
                .borrow_watched()
                .running_state
                .clone();
            if let Err(fatal) = running {
                return stop_reason(&fatal);
            }
            if epoch.changed().await.is_err() {
                // The core is gone; if it panicked it had no time to say so.
                let asked = self.inner.raft.with_raft_state(|_| ()).await;
                return asked
                    .err()
                    .map_or(StopReason::Shutdown, |fatal| stop_reason(&fatal));
            }
        }
    }
}

fn stop_reason(fatal: &Fatal<TypeConfig>) -> StopReason {
    match fatal {
        Fatal::StorageError(error) => StopReason::Storage(error.to_string()),
        Fatal::Panicked => StopReason::Panicked,
        Fatal::Stopped => StopReason::Shutdown,
    }
}

/// The members in `stored` with their roles.
fn members(stored: &StoredMembership) -> BTreeMap<NodeId, Member> {
    let voters: Vec<u64> = stored.voter_ids().collect();
    let member = |(id, node): (&u64, &MemberNode)| {
        let member = Member {
            name: node.name.clone(),
            peer: node.peer.clone(),
            client: node.client.clone(),
            http: node.http.clone(),
            voter: voters.contains(id),
        };
        (node_of(*id), member)
    };
    stored.nodes().map(member).collect()
}
