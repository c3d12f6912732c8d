//! What a node tells clients about its cluster: who leads, who is missing, how it is itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kelp_raft::{ClusterId, Member, NodeId, Raft, RaftStatus, Role};

use crate::client_port::ClusterView;
use crate::peer::PeerLinks;
use crate::status_report::{ReportedMember, ReportedRole, StatusReport};

/// A peer that was not heard of for this long is called missing; heartbeats come ten times a second.
const MISSING_AFTER: Duration = Duration::from_secs(1);

pub(super) struct NodeView {
    pub(super) raft: Raft,
    pub(super) links: PeerLinks,
    pub(super) cluster: ClusterId,
    pub(super) stopping: Arc<AtomicBool>,
}

impl NodeView {
    fn is_missing(&self, status: &RaftStatus, node: NodeId) -> bool {
        node != status.node
            && self
                .links
                .health()
                .into_iter()
                .find(|peer| peer.node == node)
                .is_none_or(|peer| {
                    !peer.connected || peer.last_heard.is_none_or(|age| age > MISSING_AFTER)
                })
    }
}

impl ClusterView for NodeView {
    fn leader(&self) -> Option<(NodeId, String)> {
        let mut status = self.raft.status();
        let leader = status.leader?;
        let member = status.members.remove(&leader)?;
        Some((leader, member.client))
    }

    fn no_leader_text(&self) -> String {
        let status = self.raft.status();
        let voters: Vec<(&NodeId, &Member)> = status
            .members
            .iter()
            .filter(|(_, member)| member.voter)
            .collect();
        if voters.is_empty() {
            return "no leader: this node has not joined a cluster yet".to_owned();
        }
        let missing: Vec<String> = voters
            .iter()
            .filter(|(node, _)| self.is_missing(&status, **node))
            .map(|(node, member)| format!("{} (node {node}, {})", member.name, member.peer))
            .collect();
        if missing.is_empty() {
            return "no leader: an election is under way; try again".to_owned();
        }
        let majority = voters.len() / 2 + 1;
        format!(
            "no leader: {} of {} voters do not answer: {}; {majority} are needed, start one of them",
            missing.len(),
            voters.len(),
            missing.join(", "),
        )
    }

    fn status_json(&self) -> Vec<u8> {
        let status = self.raft.status();
        let view = self.raft.state().view();
        let applied = view.applied().ok().flatten();
        let chain_hash = view
            .chain_hash()
            .map(|hash| hash.to_string())
            .unwrap_or_default();
        let report = StatusReport {
            cluster_id: self.cluster.to_string(),
            node: status.node.get(),
            role: reported_role(status.role),
            term: status.term.get(),
            leader: status.leader.map(NodeId::get),
            leader_contact_ms: status
                .leader_contact
                .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            last_log: status.last_log.map(kelp_raft::LogIndex::get),
            committed: status.committed.map(kelp_raft::LogIndex::get),
            applied: applied.map(kelp_raft::LogIndex::get),
            chain_hash,
            stopping: self.stopping.load(Ordering::Relaxed),
            members: status.members.into_iter().map(reported_member).collect(),
        };
        report.encode()
    }
}

fn reported_role(role: Role) -> ReportedRole {
    match role {
        Role::Leader => ReportedRole::Leader,
        Role::Follower => ReportedRole::Follower,
        Role::Candidate => ReportedRole::Candidate,
        Role::Learner => ReportedRole::Learner,
        Role::Stopped => ReportedRole::Stopped,
    }
}

fn reported_member((node, member): (NodeId, Member)) -> ReportedMember {
    ReportedMember {
        id: node.get(),
        name: member.name,
        voter: member.voter,
        client: member.client,
        peer: member.peer,
        http: member.http,
    }
}
