//! Whether a peer still runs on the data directory that it announced.
//!
//! A node whose directory was emptied comes back under its old id without its votes and without the
//! entries that it acknowledged; with it, a majority could forget what a client was told. So both
//! sides of a connection name their directory in the greeting, and each compares the other's with
//! what the replicated state says. Until a node's announcement is applied here, which takes the
//! first second of its life in the cluster, any directory of it is let in.

use kelp_raft::{DatabaseId, NodeId, StateError, StateReader};

/// What the cluster knows of the data directories of its nodes.
pub trait DirectoryBook: Send + Sync + 'static {
    /// The directory that `node` announced first, as far as this node's state tells.
    ///
    /// # Errors
    /// The state cannot be read; then nobody is let in.
    fn directory_of(&self, node: NodeId) -> Result<Option<DatabaseId>, StateError>;
}

impl DirectoryBook for StateReader {
    fn directory_of(&self, node: NodeId) -> Result<Option<DatabaseId>, StateError> {
        self.view().directory_of(node)
    }
}

/// Why a node with another directory must not take part, and what helps.
pub(crate) fn emptied_text(node: NodeId) -> String {
    format!(
        "the data directory of node {node} was emptied or replaced: this node forgot what it voted \
         for; remove node {node} and add a new node, or restore its directory"
    )
}
