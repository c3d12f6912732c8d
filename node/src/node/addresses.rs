//! Where the other members are dialled: as the log says, and as it changes.

use std::collections::BTreeSet;

use kelp_raft::{NodeId, Raft};

use crate::peer::PeerLinks;

/// Tells the links the addresses of the membership until Raft has stopped. The `named` members are
/// left alone: the command line has named them, and it may know newer addresses than the log.
pub(super) async fn follow(raft: Raft, links: PeerLinks, named: BTreeSet<NodeId>) {
    let mut changes = raft.status_watch();
    loop {
        for (node, member) in raft.status().members {
            if !named.contains(&node) {
                links.set_peer_address(node, member.peer);
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
