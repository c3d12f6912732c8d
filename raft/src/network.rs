//! openraft's network over the peer bus.
//!
//! One client per peer and purpose: log entries travel on the append connections, heartbeats,
//! votes and transfers on the control connections, so that a large append never delays the
//! message that keeps the leader in office. Snapshots have a connection of their own, too, and a
//! limit of bytes per second. Append requests are pipelined: the bus keeps the order of calls, so
//! several may be on their way while their replies are awaited in turn.

mod pipeline;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError};
use openraft::network::RPCOption;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RPCTypes, RaftNetworkFactory, RaftNetworkV2};

use crate::bus::PeerClass;
use crate::codec::CodecError;
use crate::links::Links;
use crate::message::{self, RaftKind};
use crate::model::NodeId;
use crate::snapshot::{self, Image, Shipping, Snapshot};
use crate::type_config::{MemberNode, TypeConfig, Vote, node_of};

use pipeline::Pipeline;

/// Makes the clients of a replica.
pub(crate) struct Network {
    links: Arc<Links>,
    shipping: Arc<Shipping>,
}

impl Network {
    pub(crate) fn new(links: Arc<Links>, shipping: Arc<Shipping>) -> Self {
        Self { links, shipping }
    }

    fn client(&self, target: u64, class: PeerClass) -> Client {
        Client {
            links: Arc::clone(&self.links),
            shipping: Arc::clone(&self.shipping),
            target: node_of(target),
            append_class: class,
        }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Client;

    async fn new_client(&mut self, target: u64, _node: &MemberNode) -> Client {
        self.client(target, PeerClass::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, _node: &MemberNode) -> Client {
        self.client(target, PeerClass::Control)
    }

    async fn new_snapshot_client(&mut self, target: u64, _node: &MemberNode) -> Client {
        self.client(target, PeerClass::Snapshot)
    }
}

/// Reaches one peer for one purpose.
pub(crate) struct Client {
    links: Arc<Links>,
    shipping: Arc<Shipping>,
    target: NodeId,
    append_class: PeerClass,
}

impl Client {
    /// Deadline of an append that has `bytes` in front of its end.
    fn append_deadline(&self, bytes: usize) -> Duration {
        match self.append_class {
            PeerClass::Control => self.links.heartbeat_deadline(),
            _ => self.links.append_deadline(bytes),
        }
    }

    /// A small request on the control connection.
    async fn control<T>(
        &self,
        kind: RaftKind,
        action: RPCTypes,
        request: Bytes,
        decode: impl FnOnce(Bytes) -> Result<T, CodecError>,
    ) -> Result<T, RPCError<TypeConfig>> {
        let deadline = self.links.election_deadline();
        let call = self
            .links
            .call(self.target, PeerClass::Control, kind, request, deadline);
        let body = call
            .await
            .map_err(|error| self.links.rpc_error(error, self.target, action, deadline))?;
        decode(body).map_err(|error| RPCError::Network(NetworkError::new(&error)))
    }
}

impl RaftNetworkV2<TypeConfig> for Client {
    type SnapshotData = Image;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        let bytes = message::encode_append(self.links.group, &request);
        let deadline = self.append_deadline(bytes.len());
        let kind = RaftKind::Append;
        let call = self
            .links
            .call(self.target, self.append_class, kind, bytes, deadline);
        let body = call.await.map_err(|error| {
            self.links
                .rpc_error(error, self.target, RPCTypes::AppendEntries, deadline)
        })?;
        message::decode_append_reply(body)
            .map_err(|error| RPCError::Network(NetworkError::new(&error)))
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<
        's,
        Result<
            BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>>,
            RPCError<TypeConfig>,
        >,
    >
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let replies: BoxStream<'s, _> = Box::pin(Pipeline::new(self, input));
        Box::pin(std::future::ready(Ok(replies)))
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let kind = RaftKind::Vote;
        let bytes = message::encode_vote(self.links.group, kind, &request);
        self.control(kind, RPCTypes::Vote, bytes, message::decode_vote_reply)
            .await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let kind = RaftKind::PreVote;
        let bytes = message::encode_vote(self.links.group, kind, &request);
        self.control(kind, RPCTypes::Vote, bytes, message::decode_vote_reply)
            .await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        // Its timeout is for the whole, which says nothing when states may be large.
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        snapshot::send(
            &self.links,
            &self.shipping,
            self.target,
            vote,
            snapshot,
            cancel,
        )
        .await
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let bytes = message::encode_transfer(self.links.group, &request);
        let decode = message::decode_transfer_reply;
        self.control(RaftKind::Transfer, RPCTypes::TransferLeader, bytes, decode)
            .await
    }
}
