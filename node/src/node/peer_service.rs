//! What a node answers to its peers: Raft's messages go to Raft, forwarded writes to the packer.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_raft::{
    GroupId, HandleError, NODE_KIND_FIRST, NodeId, PeerClass, PeerHandler, PeerRequest,
};
use kelp_seams::Clock;

use crate::proposer::forward;
use crate::proposer::packer::Packer;

/// Sorts peer requests by their kind.
pub(super) struct PeerService {
    raft: Arc<dyn PeerHandler>,
    packer: Packer,
    clock: Arc<dyn Clock>,
    group: GroupId,
}

impl PeerService {
    pub(super) fn new(
        raft: Arc<dyn PeerHandler>,
        packer: Packer,
        clock: Arc<dyn Clock>,
        group: GroupId,
    ) -> Self {
        Self {
            raft,
            packer,
            clock,
            group,
        }
    }

    /// Queues the sub-batch before it returns, so that a link's order is kept.
    fn forward(
        &self,
        from: NodeId,
        request: &PeerRequest,
    ) -> Result<BoxFuture<'static, Result<Bytes, HandleError>>, HandleError> {
        if request.group != self.group {
            return Err(HandleError::Malformed(format!(
                "group {} is not here",
                request.group
            )));
        }
        let sub_batch = forward::decode_request(from, &request.body)
            .map_err(|error| HandleError::Malformed(error.to_string()))?;
        let answer = self.packer.hand_over(sub_batch);
        let clock = Arc::clone(&self.clock);
        Ok(async move { Ok(forward::encode_reply(clock.wall(), &answer.await)) }.boxed())
    }
}

impl PeerHandler for PeerService {
    fn handle(
        &self,
        from: NodeId,
        class: PeerClass,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, HandleError>> {
        let decoded = match PeerRequest::decode(request.clone()) {
            Ok(decoded) => decoded,
            Err(error) => return refused(HandleError::Malformed(error.to_string())),
        };
        match decoded.kind {
            forward::FORWARD => self.forward(from, &decoded).unwrap_or_else(refused),
            kind if kind < NODE_KIND_FIRST => self.raft.handle(from, class, request),
            kind => refused(HandleError::Malformed(format!("kind {kind} is unknown"))),
        }
    }
}

fn refused(error: HandleError) -> BoxFuture<'static, Result<Bytes, HandleError>> {
    std::future::ready(Err(error)).boxed()
}
