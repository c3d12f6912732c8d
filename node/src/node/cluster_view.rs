//! What a node tells clients about its cluster: who leads, who is missing, how it is itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelp_raft::{ClusterId, Member, NodeId, Raft, RaftStatus, Role};
use kelp_wire::HeartbeatRole;

use crate::client_port::{ClusterView, Hints};
use crate::heartbeat::{Heartbeats, Lost, PeerLiveness};
use crate::leadership::Leadership;
use crate::peer::{PeerHealth, PeerLinks};
use crate::status_report::{ReportedHeartbeat, ReportedMember, ReportedRole, StatusReport};

/// A peer that was not heard of for this long is called missing; heartbeats come ten times a
/// second.
const MISSING_AFTER: Duration = Duration::from_secs(1);

pub(super) struct NodeView {
    raft: Raft,
    links: PeerLinks,
    heartbeats: Arc<Heartbeats>,
    leadership: Arc<Leadership>,
    cluster: ClusterId,
    stopping: Arc<AtomicBool>,
    /// What was last told to clients, and as of which look at Raft's status: making it anew for
    /// each of thousands of refused requests would copy the membership as often.
    hints: Mutex<Option<(u64, Arc<Hints>)>>,
}

impl NodeView {
    pub(super) fn new(
        raft: Raft,
        links: PeerLinks,
        heartbeats: Arc<Heartbeats>,
        leadership: Arc<Leadership>,
        cluster: ClusterId,
        stopping: Arc<AtomicBool>,
    ) -> Self {
        Self {
            raft,
            links,
            heartbeats,
            leadership,
            cluster,
            stopping,
            hints: Mutex::new(None),
        }
    }
}

impl ClusterView for NodeView {
    fn hints(&self) -> Arc<Hints> {
        let look = self.leadership.look();
        let mut cached = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some((as_of, hints)) if *as_of == look => Arc::clone(hints),
            _ => {
                let hints = Arc::new(hints(&self.raft.status(), &self.links.health()));
                *cached = Some((look, Arc::clone(&hints)));
                hints
            }
        }
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
            leader_contact_ms: status.leader_contact.map(millis),
            last_log: status.last_log.map(kelp_raft::LogIndex::get),
            committed: status.committed.map(kelp_raft::LogIndex::get),
            applied: applied.map(kelp_raft::LogIndex::get),
            chain_hash,
            stopping: self.stopping.load(Ordering::Relaxed),
            members: status.members.into_iter().map(reported_member).collect(),
            heartbeats: self
                .heartbeats
                .peers()
                .iter()
                .map(reported_heartbeat)
                .collect(),
        };
        report.encode()
    }
}

fn hints(status: &RaftStatus, peers: &[PeerHealth]) -> Hints {
    let leader = status.leader.and_then(|leader| {
        let member = status.members.get(&leader)?;
        Some((leader, member.client.clone()))
    });
    Hints {
        leader,
        no_leader_text: no_leader_text(status.node, &status.members, peers),
    }
}

fn no_leader_text(own: NodeId, members: &BTreeMap<NodeId, Member>, peers: &[PeerHealth]) -> String {
    let voters: Vec<_> = members.iter().filter(|(_, member)| member.voter).collect();
    if voters.is_empty() {
        return "no leader: this node has not joined a cluster yet".to_owned();
    }
    let answers = |node: NodeId| {
        let health = peers.iter().find(|peer| peer.node == node);
        node == own
            || health.is_some_and(|peer| {
                peer.connected && peer.last_heard.is_some_and(|age| age <= MISSING_AFTER)
            })
    };
    let missing: Vec<String> = voters
        .iter()
        .filter(|(node, _)| !answers(**node))
        .map(|(node, member)| format!("{} (node {node}, {})", member.name, member.peer))
        .collect();
    if missing.is_empty() {
        return "no leader: an election is under way; try again".to_owned();
    }
    let majority = voters.len() / 2 + 1;
    let (missing_count, voter_count, names) = (missing.len(), voters.len(), missing.join(", "));
    format!(
        "no leader: {missing_count} of {voter_count} voters do not answer: {names}; \
         {majority} are needed, start one of them"
    )
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

fn reported_heartbeat(peer: &PeerLiveness) -> ReportedHeartbeat {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let told = peer.told.as_ref();
    ReportedHeartbeat {
        peer: peer.node.get(),
        state: peer.state.label().to_owned(),
        age_ms: peer.age.map(millis),
        round_trip_us: peer.round_trip.map(micros),
        lost_permille: peer.lost.map(Lost::permille),
        lost_there_permille: peer.lost_there.map(Lost::permille),
        clock_offset_ms: peer.clock_offset_millis,
        role: told.and_then(|told| heard_role(told.role)),
        term: told.map(|told| told.term),
        committed: told.and_then(|told| told.committed),
        applied: told.and_then(|told| told.applied),
        sync_age_ms: told.and_then(|told| told.sync_age_millis),
        sync_p99_us: told.and_then(|told| told.sync_p99_micros),
        disk_free_bytes: told.and_then(|told| told.disk_free_bytes),
        memory_bytes: told.and_then(|told| told.memory_bytes),
        version: told.map(|told| told.software_version.clone()),
    }
}

fn heard_role(role: HeartbeatRole) -> Option<ReportedRole> {
    match role {
        HeartbeatRole::Leader => Some(ReportedRole::Leader),
        HeartbeatRole::Follower => Some(ReportedRole::Follower),
        HeartbeatRole::Candidate => Some(ReportedRole::Candidate),
        HeartbeatRole::Learner => Some(ReportedRole::Learner),
        HeartbeatRole::Other => None,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Member {
        Member {
            name: name.to_owned(),
            peer: format!("{name}:4801"),
            client: format!("{name}:4800"),
            http: format!("{name}:4802"),
            voter: true,
        }
    }

    fn health(node: u16, last_heard: Duration) -> PeerHealth {
        PeerHealth {
            node: NodeId::new(node),
            address: None,
            connected: true,
            dialled: 1,
            accepted: 1,
            last_heard: Some(last_heard),
            round_trip: None,
            last_error: None,
            sent_bytes: 0,
            received_bytes: 0,
            dials: 1,
            dial_failures: 0,
        }
    }

    #[test]
    fn refusals_name_the_voters_that_do_not_answer() {
        let members = ["a", "b", "c"].map(member);
        let members = (1..).map(NodeId::new).zip(members).collect();
        let text = |peers: &[PeerHealth]| no_leader_text(NodeId::new(1), &members, peers);
        let (fresh, stale) = (Duration::from_millis(100), Duration::from_secs(2));
        assert_eq!(
            text(&[health(2, fresh), health(3, fresh)]),
            "no leader: an election is under way; try again"
        );
        assert_eq!(
            text(&[health(2, stale)]),
            "no leader: 2 of 3 voters do not answer: b (node 2, b:4801), c (node 3, c:4801); \
             2 are needed, start one of them"
        );
        assert_eq!(
            no_leader_text(NodeId::new(1), &BTreeMap::new(), &[]),
            "no leader: this node has not joined a cluster yet"
        );
    }
}
