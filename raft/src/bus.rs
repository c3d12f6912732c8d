//! The seam between Raft and the peer links: who carries bytes from one node to another.
//!
//! `kelp-raft` calls [`PeerBus`] to reach a peer and hands a [`PeerHandler`] to whoever accepts
//! peer connections. Neither side knows sockets, TLS or addresses; the node implements the bus
//! over mTLS and the simulator over a lossy queue. What the bytes mean is in
//! `docs/formats/peer.md`, part 2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::model::NodeId;

/// The connection that a peer message travels on.
///
/// Classes do not wait for each other: a large append never delays a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerClass {
    /// Votes, heartbeats, read index and leader transfer: small and urgent.
    Control,
    /// Log entries.
    Append,
    /// Sub-batches on their way to the leader's proposer.
    Forward,
    /// Snapshot files.
    Snapshot,
}

/// Why a peer call has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The request was surely not delivered.
    #[error("peer is unreachable: {0}")]
    Unreachable(String),
    /// The connection broke; the request may have been delivered.
    #[error("connection to peer is lost: {0}")]
    Lost(String),
    /// The deadline passed; the request may have been delivered.
    #[error("peer did not reply in time")]
    Timeout,
}

/// Whether a request that waits may still leave, decided once: by who sends it or by who withdraws
/// it. Clones are about the same request.
#[derive(Clone, Debug, Default)]
pub struct SendPermit {
    state: Arc<AtomicU8>,
}

impl SendPermit {
    const OPEN: u8 = 0;
    const SENT: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// Asked right before the request leaves: true if it may, and then it counts as sent.
    pub fn claim(&self) -> bool {
        self.decide(Self::SENT)
    }

    /// True if the request has not left and now never will.
    pub fn withdraw(&self) -> bool {
        self.decide(Self::WITHDRAWN)
    }

    /// Whether both are about the same request.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    fn decide(&self, wanted: u8) -> bool {
        let order = Ordering::Relaxed;
        let decided = self
            .state
            .compare_exchange(Self::OPEN, wanted, order, order);
        decided.map_or_else(|found| found == wanted, |_| true)
    }
}

/// Carries requests to peers and brings their replies back.
pub trait PeerBus: Send + Sync + 'static {
    /// Sends `request` to `peer` and resolves to the reply.
    ///
    /// The request is enqueued on the connection of `class` before this function returns, so
    /// calls of one `(peer, class)` are delivered in the order they were made. Replies are matched
    /// by the bus and may come in any order. Dropping the future abandons the reply, not the
    /// delivery. The future fails with [`BusError::Timeout`] after `deadline`.
    fn call(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>>;

    /// Like [`PeerBus::call`], for a request that may be withdrawn while it waits for a connection.
    /// One that was withdrawn is surely not delivered.
    ///
    /// A bus that has no queue of its own need not implement this.
    fn call_permitted(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
        permit: SendPermit,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        if permit.claim() {
            return self.call(peer, class, request, deadline);
        }
        let error = BusError::Unreachable("withdrawn before it was sent".to_owned());
        std::future::ready(Err(error)).boxed()
    }
}

/// Why a peer request was not answered; the connection it came on is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandleError {
    /// The request breaks the format or names something that its sender may not speak for.
    #[error("peer request refused: {0}")]
    Malformed(String),
    /// This node no longer takes part in the group.
    #[error("raft is stopped")]
    Stopped,
}

/// Answers the requests of peers.
pub trait PeerHandler: Send + Sync + 'static {
    /// Takes one request and resolves to its reply.
    ///
    /// The caller invokes this in the order of arrival for each `(from, class)` and also makes
    /// the first poll of the returned futures in that order; completion may be in any order.
    /// `from` is the authenticated identity of the connection, never a field of the request.
    ///
    /// # Errors
    ///
    /// The connection must be closed: the peer is broken, hostile, or this node is stopping.
    fn handle(
        &self,
        from: NodeId,
        class: PeerClass,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, HandleError>>;
}
