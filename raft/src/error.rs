//! The errors of this crate, by what a caller does about them.

use std::time::Duration;

use kelp_storage::StorageError;

use crate::model::{ClusterId, LogIndex, NodeId};

/// Why a replica does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data directory belongs to another node or cluster: replace the node, do not reuse it.
    #[error("data belongs to node {node} of cluster {cluster}")]
    ForeignData {
        /// The node that wrote the data.
        node: NodeId,
        /// The cluster that it belonged to.
        cluster: ClusterId,
    },
    /// The owner record or the log cannot be understood: restore or replace the node.
    #[error("data cannot be used: {0}")]
    Corrupt(String),
    /// The timing is not possible: correct the configuration.
    #[error("timing is not valid: {0}")]
    Timing(String),
    /// The engine failed: see its error.
    #[error("storage failed")]
    Storage(#[from] StorageError),
    /// Entries between the state and the log are gone: replace the node.
    #[error("state ends before entry {needed}, but the log begins at entry {first}")]
    LogGap {
        /// The first entry that the state lacks.
        needed: LogIndex,
        /// The first entry that the log has, or would have.
        first: LogIndex,
    },
    /// openraft refused to start on this data.
    #[error("raft refused to start: {0}")]
    Raft(String),
}

/// Why an administrative operation did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaftError {
    /// The group has members already; nothing was changed.
    #[error("group is initialized already")]
    AlreadyInitialized,
    /// The operation is not possible as asked: correct it.
    #[error("not possible: {0}")]
    Invalid(String),
    /// Ask the leader instead; nothing was changed.
    #[error("this node does not lead")]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<NodeId>,
    },
    /// The target of a transfer misses entries of the leader: try again later.
    #[error("node {to} lags behind the leader")]
    Lagging {
        /// The node that should have become leader.
        to: NodeId,
    },
    /// The outcome was not seen in time; look at the status.
    #[error("not finished after {0:?}")]
    Timeout(Duration),
    /// The replica is stopped.
    #[error("raft is stopped")]
    Stopped,
}

/// Why a proposal has no outcome. What is known about its execution differs by variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// Not executed, and never will be by this proposal: send it to the leader.
    #[error("this node does not lead")]
    NotLeader {
        /// The leader, if one is known.
        leader: Option<NodeId>,
    },
    /// Not an encoded entry; not executed.
    #[error("entry cannot be decoded: {0}")]
    Invalid(String),
    /// The leader changed while the entry was in the log; it may still be executed.
    #[error("leader changed, outcome unknown")]
    Discarded,
    /// The replica stopped; the entry may still be executed.
    #[error("raft is stopped, outcome unknown")]
    Stopped,
}

/// Why a read has no point to read at. All of them may be tried again, on any node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No leader is known, or the one asked does not lead.
    #[error("no leader")]
    NoLeader {
        /// The leader, if another one is known.
        leader: Option<NodeId>,
    },
    /// The leader did not hear from a majority in time.
    #[error("no quorum")]
    NoQuorum,
    /// The leader could not be asked.
    #[error("leader cannot be reached: {0}")]
    Unreachable(String),
    /// The deadline of the caller passed.
    #[error("deadline passed")]
    Timeout,
    /// The replica is stopped.
    #[error("raft is stopped")]
    Stopped,
}

/// An error with its sources, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
