//! What one node says about itself and its cluster: the JSON value of the status reply.
//!
//! The client port writes it, `kelp status` and the development supervisor read it. Readers ignore
//! fields that they do not know, so that old programs understand newer nodes; a field is never
//! renamed or given another meaning.

use serde::{Deserialize, Serialize};

/// The part that a node plays now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedRole {
    /// Leads.
    Leader,
    /// Follows a leader, or waits for one.
    Follower,
    /// Stands for election.
    Candidate,
    /// Receives the log without a vote.
    Learner,
    /// Takes no part any more.
    Stopped,
}

/// One member of the cluster as the node's membership names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedMember {
    /// The node id.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Whether it has a vote.
    pub voter: bool,
    /// Where clients reach it.
    pub client: String,
    /// Where peers reach it.
    pub peer: String,
    /// Where its metrics are.
    pub http: String,
}

/// What a node knows of another member by its UDP heartbeats. Null means not known, or not any
/// more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedHeartbeat {
    /// The other member.
    pub peer: u16,
    /// `waiting`, `arriving`, `missing`, or `blocked`: reached over TCP, and no heartbeat comes.
    pub state: String,
    /// Milliseconds since its last heartbeat arrived.
    pub age_ms: Option<u64>,
    /// The smoothed round trip in microseconds.
    pub round_trip_us: Option<u64>,
    /// Thousandths of its last heartbeats that did not arrive here.
    pub lost_permille: Option<u16>,
    /// Thousandths of this node's last heartbeats that did not arrive there, as it says.
    pub lost_there_permille: Option<u16>,
    /// Milliseconds by which its wall clock is ahead of this node's.
    pub clock_offset_ms: Option<i64>,
    /// The part that it plays, as it says.
    pub role: Option<ReportedRole>,
    /// Its term, as it says.
    pub term: Option<u64>,
    /// The last entry that it knows to be committed, as it says.
    pub committed: Option<u64>,
    /// The last entry that it has applied, as it says.
    pub applied: Option<u64>,
    /// Milliseconds since its last sync of the disk, as it says.
    pub sync_age_ms: Option<u32>,
    /// Microseconds within which 99 of 100 of its recent syncs ended, as it says.
    pub sync_p99_us: Option<u32>,
    /// Free bytes of its disk, as it says.
    pub disk_free_bytes: Option<u64>,
    /// Resident memory of its process, as it says.
    pub memory_bytes: Option<u64>,
    /// The version of its software, as it says.
    pub version: Option<String>,
}

/// The report of one node. Indexes are log indexes, which start at 0; null means none yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// 32 hexadecimal digits.
    pub cluster_id: String,
    /// The node that reports.
    pub node: u16,
    /// The part that it plays.
    pub role: ReportedRole,
    /// Its term.
    pub term: u64,
    /// The leader that it knows and has heard of lately.
    pub leader: Option<u16>,
    /// Milliseconds since it heard from the leader; on the leader, since a majority answered it.
    pub leader_contact_ms: Option<u64>,
    /// The last entry of its log.
    pub last_log: Option<u64>,
    /// The last entry that it knows to be committed.
    pub committed: Option<u64>,
    /// The last entry that it has applied.
    pub applied: Option<u64>,
    /// The chain hash after that entry, 32 hexadecimal digits: equal on all nodes at one applied
    /// index.
    pub chain_hash: String,
    /// Whether it hands over and stops.
    pub stopping: bool,
    /// All members, in the order of their ids.
    pub members: Vec<ReportedMember>,
    /// All other members by their heartbeats, in the order of their ids. Absent in reports of nodes
    /// that send none.
    #[serde(default)]
    pub heartbeats: Vec<ReportedHeartbeat>,
}

impl StatusReport {
    /// The JSON text.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts always encode")
    }

    /// Reads the JSON text of this or a newer node.
    pub fn decode(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

#[cfg(test)]
mod tests;
