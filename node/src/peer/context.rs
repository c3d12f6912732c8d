//! What both sides of the peer links share: who this node is, its limits, and who is let in.

use std::sync::Arc;

use kelp_client::Transport;
use kelp_raft::{Boot, DatabaseId, NodeId};
use kelp_seams::Rng;
use tokio::sync::watch;

use super::PeerLimits;
use super::directory::{DirectoryBook, emptied_text};
use super::frame::{Refusal, RefusalCode};
use crate::tls::PeerTls;

/// What all links of a node share.
pub(super) struct LinkContext {
    pub(super) boot: Boot,
    pub(super) directory: DatabaseId,
    pub(super) directories: Arc<dyn DirectoryBook>,
    /// Whether a peer has found this node's directory to be another one than it was.
    pub(super) disowned: watch::Sender<bool>,
    pub(super) limits: PeerLimits,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) tls: PeerTls,
    pub(super) rng: Arc<dyn Rng>,
}

impl LinkContext {
    /// Compares the directory that `peer` names with the one that it announced.
    pub(super) fn check_directory(
        &self,
        peer: NodeId,
        directory: DatabaseId,
    ) -> Result<(), Refusal> {
        let (code, text) = match self.directories.directory_of(peer) {
            Ok(known) if known.is_none_or(|known| known == directory) => return Ok(()),
            Ok(_) => (RefusalCode::Emptied, emptied_text(peer)),
            Err(error) => (
                RefusalCode::Other,
                format!("the state is unreadable: {error}"),
            ),
        };
        Err(Refusal { code, text })
    }

    /// Takes note that `peer` refuses this node. A peer that contradicts the replicated state is
    /// wrong itself.
    pub(super) fn refused_by(&self, peer: NodeId, refusal: &Refusal) {
        if refusal.code != RefusalCode::Emptied {
            return;
        }
        let own = self.tls.node();
        let known = self.directories.directory_of(own).ok().flatten();
        if known == Some(self.directory) {
            tracing::warn!(%peer, "peer does not know this node's directory, the state does");
            return;
        }
        let first = |disowned: &mut bool| !std::mem::replace(disowned, true);
        if self.disowned.send_if_modified(first) {
            tracing::error!(%peer, "refused by a peer: {}", emptied_text(own));
        }
    }
}
