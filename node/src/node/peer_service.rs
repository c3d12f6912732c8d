//! What a node answers to its peers: Raft's messages go to Raft, forwarded writes to the packer, a
//! new node learns whether there is a log, and a scan where it stands.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_raft::{
    GroupId, HandleError, NODE_KIND_FIRST, NodeId, PeerClass, PeerHandler, PeerRequest, Raft,
    SendPermit,
};
use kelp_seams::Clock;

use crate::proposer::forward::{self, RequestError};
use crate::proposer::packer::{HandOverError, Packer};
use crate::redis_port::{self, Cursors};

/// Sorts peer requests by their kind.
pub(super) struct PeerService {
    raft: Raft,
    messages: Arc<dyn PeerHandler>,
    packer: Packer,
    cursors: Arc<Cursors>,
    clock: Arc<dyn Clock>,
    group: GroupId,
}

impl PeerService {
    pub(super) fn new(
        raft: Raft,
        packer: Packer,
        cursors: Arc<Cursors>,
        clock: Arc<dyn Clock>,
        group: GroupId,
    ) -> Self {
        Self {
            messages: raft.handler(),
            raft,
            packer,
            cursors,
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
        self.check_group(request)?;
        let clock = Arc::clone(&self.clock);
        let sub_batch = match forward::decode_request(from, &request.body) {
            Ok(sub_batch) => sub_batch,
            Err(error @ RequestError::Unreadable(_)) => {
                let reason = error.source().map(ToString::to_string);
                tracing::warn!(peer = %from, reason, "cannot read a forwarded sub-batch");
                let unreadable = Err(HandOverError::Unreadable);
                let reply = forward::encode_reply(clock.wall(), &unreadable);
                return Ok(std::future::ready(Ok(reply)).boxed());
            }
            Err(error @ RequestError::OfAnother) => {
                return Err(HandleError::Malformed(error.to_string()));
            }
        };
        let answer = self.packer.hand_over(sub_batch, SendPermit::default());
        Ok(async move { Ok(forward::encode_reply(clock.wall(), &answer.await)) }.boxed())
    }

    fn has_log(&self, request: &PeerRequest) -> Result<Bytes, HandleError> {
        self.check_group(request)?;
        let has_log = self.raft.status().last_log.is_some();
        Ok(forward::encode_has_log_reply(self.clock.wall(), has_log))
    }

    fn cursor(&self, request: &PeerRequest) -> Result<Bytes, HandleError> {
        self.check_group(request)?;
        let entry = redis_port::decode_request(&request.body)
            .map_err(|error| HandleError::Malformed(error.to_string()))?;
        let position = self.cursors.find(entry);
        Ok(redis_port::encode_reply(
            self.clock.wall(),
            position.as_ref(),
        ))
    }

    fn check_group(&self, request: &PeerRequest) -> Result<(), HandleError> {
        if request.group == self.group {
            return Ok(());
        }
        let text = format!("group {} is not here", request.group);
        Err(HandleError::Malformed(text))
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
            forward::HAS_LOG => std::future::ready(self.has_log(&decoded)).boxed(),
            redis_port::CURSOR => std::future::ready(self.cursor(&decoded)).boxed(),
            forward::FORWARD => self.forward(from, &decoded).unwrap_or_else(refused),
            kind if kind < NODE_KIND_FIRST => self.messages.handle(from, class, request),
            kind => refused(HandleError::Malformed(format!("kind {kind} is unknown"))),
        }
    }
}

fn refused(error: HandleError) -> BoxFuture<'static, Result<Bytes, HandleError>> {
    std::future::ready(Err(error)).boxed()
}

#[cfg(test)]
mod tests;
