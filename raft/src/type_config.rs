//! The types that openraft is instantiated with, and the checked way between them and ours.
//!
//! openraft sees node ids as `u64` and a log entry as opaque bytes; everything outside the
//! modules that name openraft sees [`NodeId`] and [`Entry`](crate::Entry).

use std::fmt;

use bytes::Bytes;
use kelp_storage::{EntryTerm, LogIndex, LogPosition};

use crate::model::{EntryOutcome, NodeId};

openraft::declare_raft_types!(
    /// The instantiation of openraft in this crate.
    pub(crate) TypeConfig:
        D = EntryBytes,
        R = EntryOutcome,
        NodeId = u64,
        Node = MemberNode,
);

pub(crate) type LeaderId = openraft::impls::leader_id_adv::LeaderId<u64, u64>;
pub(crate) type Vote = openraft::impls::Vote<LeaderId>;
pub(crate) type LogId = openraft::LogId<LeaderId>;
pub(crate) type LogPayload = openraft::EntryPayload<EntryBytes, u64, MemberNode>;
pub(crate) type RaftEntry = openraft::Entry<LeaderId, LogPayload>;
pub(crate) type Membership = openraft::Membership<u64, MemberNode>;
pub(crate) type StoredMembership = openraft::StoredMembership<LeaderId, u64, MemberNode>;

/// An encoded [`Entry`](crate::Entry), shared and never looked into by openraft.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EntryBytes(pub(crate) Bytes);

impl fmt::Debug for EntryBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}

impl fmt::Display for EntryBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// What the membership keeps about a node besides its role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemberNode {
    pub(crate) name: String,
    pub(crate) peer: String,
    pub(crate) client: String,
    pub(crate) http: String,
}

/// A node id as openraft wants it.
pub(crate) fn raft_node(node: NodeId) -> u64 {
    u64::from(node.get())
}

/// A node id that came back from openraft, where only ids of ours ever went in.
pub(crate) fn node_of(raft: u64) -> NodeId {
    NodeId::new(u16::try_from(raft).expect("openraft returns only ids that were 16 bits wide"))
}

/// A log id as storage wants it.
pub(crate) fn position_of(id: &LogId) -> LogPosition {
    LogPosition {
        index: LogIndex::new(id.index),
        term: term_of(&id.leader_id),
    }
}

/// A log id from storage.
pub(crate) fn log_id_of(position: LogPosition) -> LogId {
    LogId::new(leader_of(position.term), position.index.get())
}

pub(crate) fn term_of(leader: &LeaderId) -> EntryTerm {
    EntryTerm {
        term: leader.term,
        leader: leader.node_id,
    }
}

pub(crate) fn leader_of(term: EntryTerm) -> LeaderId {
    LeaderId {
        term: term.term,
        node_id: term.leader,
    }
}
