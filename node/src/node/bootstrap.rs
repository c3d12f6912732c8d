//! The first start of a node: whether to found the cluster.
//!
//! An empty directory is either that of a new node or one that was emptied. The other members know:
//! those that still have their logs refuse a node whose directory is another one than it was, and a
//! cluster that has a log is not founded again. If none of them answers, the member with the lowest
//! id founds the cluster; should it have been a member of one before, the others refuse it as soon
//! as they are back, and what it wrote alone was acknowledged to nobody.

use std::time::Duration;

use futures_util::future::join_all;
use kelp_raft::{NodeId, PeerBus, PeerClass, Raft, RaftError};

use super::{GROUP, NodeOptions, StartError};
use crate::peer::PeerLinks;
use crate::proposer::forward;

/// Time for the other members to answer. Those that are down refuse at once; those that do not
/// answer at all delay the first start only.
const ASK_DEADLINE: Duration = Duration::from_secs(1);

/// Makes the first membership if this node is the one to do so.
///
/// # Errors
/// [`StartError::Emptied`]: this node had another directory before.
pub(super) async fn run(
    options: &NodeOptions,
    raft: &Raft,
    links: &PeerLinks,
) -> Result<(), StartError> {
    if raft.status().last_log.is_some() {
        return Ok(());
    }
    let own = options.node;
    let others = options.members.keys().copied().filter(|node| *node != own);
    let logs = join_all(others.map(|node| has_log(links, node))).await;
    if links.is_disowned() {
        return Err(StartError::Emptied { node: own });
    }
    let lowest = options.members.keys().next();
    if lowest != Some(&own) || logs.contains(&Some(true)) {
        return Ok(());
    }
    match raft.initialize(options.members.clone()).await {
        Ok(()) => {
            tracing::info!(
                members = options.members.len(),
                cluster = %options.cluster,
                "cluster initialized"
            );
            Ok(())
        }
        Err(RaftError::AlreadyInitialized) => Ok(()),
        Err(error) => Err(StartError::Bootstrap(error)),
    }
}

/// Whether `node` has a log; `None` when it does not say.
async fn has_log(links: &PeerLinks, node: NodeId) -> Option<bool> {
    let request = forward::encode_has_log(GROUP);
    let reply = links
        .call(node, PeerClass::Control, request, ASK_DEADLINE)
        .await;
    match forward::decode_has_log_reply(reply.ok()?) {
        Ok(has_log) => Some(has_log),
        Err(error) => {
            tracing::warn!(peer = %node, %error, "peer does not say whether it has a log");
            None
        }
    }
}
