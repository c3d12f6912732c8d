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
