//! The handle on a replica: everything that the rest of Kelp may ask of Raft, in Kelp's own types.

mod propose;
mod start;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelp_seams::{Clock, WallMillis};
use kelp_storage::Log;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{InitializeError, RaftError as OpenraftError};
use tokio::sync::watch;

use crate::applier::{Applier, Progress};
use crate::bus::PeerHandler;
use crate::codec::STRING_BYTES_MAX;
use crate::error::{RaftError, ReadError};
use crate::links::Links;
use crate::model::{LogIndex, Member, NodeId, StampMillis};
use crate::read_index::{ReadIndex, ReadPoint};
use crate::server::{LeaderContact, Server};
use crate::snapshot::Shipping;
use crate::state::StateReader;
use crate::state_machine::OpenRaft;
use crate::type_config::{MemberNode, node_of, raft_node};

pub use propose::Proposal;
pub use status::{RaftStatus, Role, SnapshotStatus, StopReason};

/// A replica of one Raft group. Clones refer to the same replica.
///
/// Dropping the last clone does not stop the replica; [`Raft::shutdown`] does.
#[derive(Clone)]
pub struct Raft {
    inner: Arc<Inner>,
}

struct Inner {
    raft: OpenRaft,
    links: Arc<Links>,
    log: Log,
    shipping: Arc<Shipping>,
    reads: Arc<ReadIndex>,
    server: Arc<Server>,
    contact: Arc<LeaderContact>,
    clock: Arc<dyn Clock>,
    state: StateReader,
    applier: Applier,
    progress: watch::Receiver<Progress>,
    epoch: watch::Receiver<u64>,
    /// The last stamp given out, so that stamps of one node never go back.
    stamp_given: AtomicU64,
}

impl Raft {
    /// Makes `members`, all of them voters, the first membership of the group.
    ///
    /// Called once in the life of a cluster, on one empty node that is among the members. A
    /// call on a node that has a log, its own or one that a leader sent, changes nothing and is
    /// answered with [`RaftError::AlreadyInitialized`].
    pub async fn initialize(&self, members: BTreeMap<NodeId, Member>) -> Result<(), RaftError> {
        let mut nodes = BTreeMap::new();
        for (node, member) in members {
            check_member(node, &member)?;
            let Member {
                name,
                peer,
                client,
                http,
                ..
            } = member;
            nodes.insert(
                raft_node(node),
                MemberNode {
                    name,
                    peer,
                    client,
                    http,
                },
            );
        }
        match self.inner.raft.initialize(nodes).await {
            Ok(()) => Ok(()),
            Err(OpenraftError::APIError(InitializeError::NotAllowed(_))) => {
                Err(RaftError::AlreadyInitialized)
            }
            Err(OpenraftError::APIError(error)) => Err(RaftError::Invalid(error.to_string())),
            Err(OpenraftError::Fatal(_)) => Err(RaftError::Stopped),
        }
    }

    /// Finds the position that a linearizable read which begins now must see.
    ///
    /// On the leader one exchange with a majority serves all reads that arrived before it
    /// started; on a follower one question to the leader does. A single voter answers alone. Wait
    /// with [`Raft::wait_applied`] before reading.
    pub async fn read_index(&self, deadline: Duration) -> Result<ReadPoint, ReadError> {
        self.inner.reads.point(deadline).await
    }

    /// Waits until the entry at `index` is applied and visible to readers.
    pub async fn wait_applied(&self, index: LogIndex, deadline: Duration) -> Result<(), ReadError> {
        let mut progress = self.inner.progress.clone();
        let reached = progress.wait_for(|progress| progress.applied >= Some(index));
        match tokio::time::timeout(deadline, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ReadError::Stopped),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// The replicated state, for reading.
    pub fn state(&self) -> StateReader {
        self.inner.state.clone()
    }

    /// The largest time that the clocks of a majority of voters have passed, as far as their
    /// replies tell; never below the stamp of an applied entry or an earlier answer.
    pub fn now_stamp(&self) -> StampMillis {
        let configs = self.voter_sets();
        let own = (self.inner.links.node, self.inner.clock.wall());
        let majority = self.inner.links.clocks.majority(&configs, own);
        let majority = majority.map_or(0, WallMillis::get);
        let applied = self.inner.progress.borrow().stamp.get();
        let stamp = majority.max(applied);
        let before = self.inner.stamp_given.fetch_max(stamp, Ordering::Relaxed);
        StampMillis::new(before.max(stamp))
    }

    fn voter_sets(&self) -> Vec<BTreeSet<NodeId>> {
        let metrics = self.inner.raft.server_metrics();
        let membership = Arc::clone(&metrics.borrow_watched().membership_config);
        let configs = membership.get_joint_config().iter();
        configs
            .map(|voters| voters.iter().copied().map(node_of).collect())
            .collect()
    }

    /// Hands leadership to `to`, and returns when this node knows another leader.
    ///
    /// The target must hold all entries of the leader; while writes stream in, that is best
    /// tried a few times. From the hand-over on this node refuses writes, and if the target dies
    /// just then, the group waits for an election.
    pub async fn transfer_leader(&self, to: NodeId) -> Result<(), RaftError> {
        let deadline = self.inner.links.timing.election_max.saturating_mul(2);
        let status = self.status();
        if status.role != Role::Leader {
            return Err(RaftError::NotLeader {
                leader: status.leader,
            });
        }
        if to == status.node {
            return Ok(());
        }
        if !status.members.get(&to).is_some_and(|member| member.voter) {
            return Err(RaftError::Invalid(format!("node {to} is not a voter")));
        }
        self.wait_matched(to, deadline).await?;
        let triggered = self
            .inner
            .raft
            .trigger()
            .transfer_leader(raft_node(to))
            .await;
        triggered.map_err(|_| RaftError::Stopped)?;
        let mut metrics = self.inner.raft.server_metrics();
        let own = raft_node(status.node);
        let changed = async {
            loop {
                let leader = metrics.borrow_watched().current_leader;
                if leader.is_some_and(|leader| leader != own) {
                    return Ok(());
                }
                metrics.changed().await.map_err(|_| RaftError::Stopped)?;
            }
        };
        tokio::time::timeout(deadline, changed)
            .await
            .unwrap_or(Err(RaftError::Timeout(deadline)))
    }

    /// Waits until `to` has acknowledged the whole log, as of some moment.
    async fn wait_matched(&self, to: NodeId, deadline: Duration) -> Result<(), RaftError> {
        let mut metrics = self.inner.raft.metrics();
        let target = raft_node(to);
        let matched = async {
            loop {
                {
                    let now = metrics.borrow_watched();
                    let replication = now.replication.as_ref();
                    let matched = replication.and_then(|all| all.get(&target).copied().flatten());
                    if matched.map(|id| id.index) >= now.last_log_index {
                        return Ok(());
                    }
                }
                metrics.changed().await.map_err(|_| RaftError::Stopped)?;
            }
        };
        tokio::time::timeout(deadline, matched)
            .await
            .unwrap_or(Err(RaftError::Lagging { to }))
    }

    /// The receiver of peer requests for this replica.
    pub fn handler(&self) -> Arc<dyn PeerHandler> {
        Arc::clone(&self.inner.server) as Arc<dyn PeerHandler>
    }

    /// Stops the replica: no more votes, appends or applies. Proposals in flight end as unknown.
    pub async fn shutdown(&self) {
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::error!(%error, "raft core did not end cleanly");
        }
        self.inner.applier.stop();
        self.inner.server.snapshots.stop().await;
    }
}

fn check_member(node: NodeId, member: &Member) -> Result<(), RaftError> {
    if !member.voter {
        return Err(RaftError::Invalid(format!("node {node} is not a voter")));
    }
    for text in [&member.name, &member.peer, &member.client, &member.http] {
        if text.len() > STRING_BYTES_MAX {
            let message =
                format!("a name or address of node {node} is over {STRING_BYTES_MAX} bytes");
            return Err(RaftError::Invalid(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
