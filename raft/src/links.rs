//! Calls of Raft messages to peers: envelope, deadline and clock around [`PeerBus`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use openraft::RPCTypes;
use openraft::errors::{NetworkError, RPCError, Timeout, Unreachable};

use crate::bus::{BusError, PeerBus, PeerClass};
use crate::clocks::PeerClocks;
use crate::message::{PeerReply, RaftKind};
use crate::model::{GroupId, NodeId};
use crate::options::Timing;
use crate::type_config::{TypeConfig, raft_node};

/// Slowest link that an append must still get through on. A request's deadline grows with its
/// bytes, so that a large entry on a slow link is late, not repeated for ever.
const APPEND_BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// How this replica reaches the others.
pub(crate) struct Links {
    pub(crate) node: NodeId,
    pub(crate) group: GroupId,
    pub(crate) timing: Timing,
    pub(crate) bus: Arc<dyn PeerBus>,
    pub(crate) clocks: Arc<PeerClocks>,
}

/// Why a call has no usable reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("peer sent a bad reply: {0}")]
    BadReply(String),
}

impl Links {
    /// Enqueues `request` at once and resolves to the body of the reply.
    pub(crate) fn call(
        &self,
        peer: NodeId,
        class: PeerClass,
        kind: RaftKind,
        request: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let reply = self.bus.call(peer, class, request, deadline);
        let clocks = Arc::clone(&self.clocks);
        Box::pin(async move {
            let reply = PeerReply::decode(reply.await?)
                .map_err(|error| CallError::BadReply(error.to_string()))?;
            if reply.kind != kind as u8 {
                return Err(CallError::BadReply(format!("reply of kind {}", reply.kind)));
            }
            clocks.observe(peer, reply.wall);
            Ok(reply.body)
        })
    }

    /// Deadline of an append of `bytes`, those queued before it included.
    ///
    /// It is also the progress timeout of an append stream: replies come in order, so a stream
    /// whose oldest request is answered in time makes progress.
    pub(crate) fn append_deadline(&self, bytes: usize) -> Duration {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let transfer =
            Duration::from_millis(bytes.saturating_mul(1000) / APPEND_BYTES_PER_SECOND_MIN);
        self.timing
            .election_max
            .saturating_mul(2)
            .saturating_add(transfer)
    }

    /// Deadline of a heartbeat: a later reply would not prolong the lease that it is sent for.
    pub(crate) fn heartbeat_deadline(&self) -> Duration {
        self.timing.heartbeat
    }

    /// Deadline of votes and of a leader transfer: a new election would start after it.
    pub(crate) fn election_deadline(&self) -> Duration {
        self.timing.election_min
    }

    /// What openraft is told about a failed call. It backs off from a peer that is unreachable.
    pub(crate) fn rpc_error(
        &self,
        error: CallError,
        target: NodeId,
        action: RPCTypes,
        timeout: Duration,
    ) -> RPCError<TypeConfig> {
        match error {
            CallError::Bus(BusError::Timeout) => RPCError::Timeout(Timeout {
                action,
                id: raft_node(self.node),
                target: raft_node(target),
                timeout,
            }),
            CallError::Bus(error) => RPCError::Unreachable(Unreachable::new(&error)),
            CallError::BadReply(_) => RPCError::Network(NetworkError::new(&error)),
        }
    }
}
