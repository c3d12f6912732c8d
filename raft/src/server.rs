//! The receiving side of the peer messages of Raft.
//!
//! A request is decoded when it is taken, in arrival order, and given to openraft on the first
//! poll, also in that order; so appends of one leader reach the core in the order they were sent.
//! A message speaks only for the node whose connection it came on: a leader or candidate that
//! claims to be someone else is refused.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_seams::{Clock, Monotonic};
use openraft::raft::AppendEntriesResponse;

use crate::bus::{HandleError, PeerClass, PeerHandler};
use crate::message::{self, EnvelopeError, PeerReply, PeerRequest, RaftKind, SnapshotReply};
use crate::model::{GroupId, NodeId};
use crate::read_index::ReadIndex;
use crate::snapshot::Receiver;
use crate::state_machine::OpenRaft;
use crate::type_config::{Vote, node_of};

/// When this node last accepted a message of its leader.
#[derive(Debug, Default)]
pub(crate) struct LeaderContact {
    last: Mutex<Option<(NodeId, Monotonic)>>,
}

impl LeaderContact {
    fn note(&self, leader: NodeId, now: Monotonic) {
        *self
            .last
            .lock()
            .expect("nothing panics while it holds this lock") = Some((leader, now));
    }

    /// When `leader` was last heard from.
    pub(crate) fn of(&self, leader: NodeId) -> Option<Monotonic> {
        let last = *self
            .last
            .lock()
            .expect("nothing panics while it holds this lock");
        last.filter(|(heard, _)| *heard == leader).map(|(_, at)| at)
    }
}

/// Answers the Raft messages of peers.
pub(crate) struct Server {
    pub(crate) group: GroupId,
    pub(crate) raft: OpenRaft,
    pub(crate) reads: Arc<ReadIndex>,
    pub(crate) snapshots: Arc<Receiver>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) contact: Arc<LeaderContact>,
}

impl PeerHandler for Server {
    fn handle(
        &self,
        from: NodeId,
        _class: PeerClass,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, HandleError>> {
        let (kind, answer) = match self.dispatch(from, request) {
            Ok(started) => started,
            Err(error) => return std::future::ready(Err(error)).boxed(),
        };
        let clock = Arc::clone(&self.clock);
        async move {
            let body = answer.await?;
            Ok(PeerReply {
                kind: kind as u8,
                wall: clock.wall(),
                body,
            }
            .encode())
        }
        .boxed()
    }
}

type Answer = BoxFuture<'static, Result<Bytes, HandleError>>;

impl Server {
    fn dispatch(&self, from: NodeId, request: Bytes) -> Result<(RaftKind, Answer), HandleError> {
        let request =
            PeerRequest::decode(request).map_err(|error: EnvelopeError| malformed(&error))?;
        if request.group != self.group {
            let message = format!("group {} is not here", request.group);
            return Err(HandleError::Malformed(message));
        }
        let kind = RaftKind::from_u8(request.kind)
            .ok_or_else(|| HandleError::Malformed(format!("kind {} is unknown", request.kind)))?;
        let answer = match kind {
            RaftKind::Append => self.append(from, request.body)?,
            RaftKind::Vote | RaftKind::PreVote => self.vote(from, kind, request.body)?,
            RaftKind::Transfer => self.transfer(from, request.body)?,
            RaftKind::ReadIndex => self.read_index(),
            RaftKind::SnapshotBegin => self.snapshot_begin(from, request.body)?,
            RaftKind::SnapshotChunk => self.snapshot_chunk(from, request.body)?,
            RaftKind::SnapshotFinish => self.snapshot_finish(from, request.body)?,
        };
        Ok((kind, answer))
    }

    fn append(&self, from: NodeId, body: Bytes) -> Result<Answer, HandleError> {
        let request = message::decode_append(body).map_err(|error| malformed(&error))?;
        check_speaker(from, &request.vote)?;
        let raft = self.raft.clone();
        let contact = Arc::clone(&self.contact);
        let clock = Arc::clone(&self.clock);
        let answer = async move {
            // Appends must enter the core in order of arrival, which the first poll keeps only if
            // it goes all the way: a task that has used up tokio's budget would turn it away, and
            // a later append would pass it. Its conflict would then follow the acknowledgement of
            // the earlier one, as if the log had gone back.
            let reply = tokio::task::unconstrained(raft.append_entries(request)).await;
            let reply = reply.map_err(stopped)?;
            if !matches!(reply, AppendEntriesResponse::HigherVote(_)) {
                contact.note(from, clock.monotonic());
            }
            Ok(message::encode_append_reply(&reply))
        };
        Ok(answer.boxed())
    }

    fn vote(&self, from: NodeId, kind: RaftKind, body: Bytes) -> Result<Answer, HandleError> {
        let request = message::decode_vote(body).map_err(|error| malformed(&error))?;
        check_speaker(from, &request.vote)?;
        let raft = self.raft.clone();
        let answer = async move {
            let reply = match kind {
                RaftKind::PreVote => raft.pre_vote(request).await,
                _ => raft.vote(request).await,
            };
            Ok(message::encode_vote_reply(&reply.map_err(stopped)?))
        };
        Ok(answer.boxed())
    }

    fn transfer(&self, from: NodeId, body: Bytes) -> Result<Answer, HandleError> {
        let request = message::decode_transfer(body).map_err(|error| malformed(&error))?;
        check_speaker(from, request.from_leader())?;
        let raft = self.raft.clone();
        let answer = async move {
            let reply = raft.handle_transfer_leader(request).await;
            let reply = reply.map_err(|_| HandleError::Stopped)?;
            Ok(message::encode_transfer_reply(&reply))
        };
        Ok(answer.boxed())
    }

    fn read_index(&self) -> Answer {
        let reads = Arc::clone(&self.reads);
        async move { Ok(message::encode_read_reply(&reads.answer_peer().await)) }.boxed()
    }

    fn snapshot_begin(&self, from: NodeId, body: Bytes) -> Result<Answer, HandleError> {
        let begin = message::decode_begin(body).map_err(|error| malformed(&error))?;
        check_speaker(from, &begin.vote)?;
        let last = begin.meta.last_log_id;
        // openraft panics on a snapshot that no leader can have made.
        if !begin.vote.committed || last.is_none_or(|last| last.leader_id > begin.vote.leader_id) {
            let message = format!("node {from} cannot lead with a snapshot at {last:?}");
            return Err(HandleError::Malformed(message));
        }
        let snapshots = Arc::clone(&self.snapshots);
        let answer = async move { Ok(reply(&snapshots.begin(from, begin).await)) };
        Ok(answer.boxed())
    }

    fn snapshot_chunk(&self, from: NodeId, body: Bytes) -> Result<Answer, HandleError> {
        let chunk = message::decode_chunk(body).map_err(|error| malformed(&error))?;
        let snapshots = Arc::clone(&self.snapshots);
        let answer = async move { Ok(reply(&snapshots.chunk(from, chunk).await)) };
        Ok(answer.boxed())
    }

    fn snapshot_finish(&self, from: NodeId, body: Bytes) -> Result<Answer, HandleError> {
        let transfer = message::decode_finish(body).map_err(|error| malformed(&error))?;
        let snapshots = Arc::clone(&self.snapshots);
        let answer = async move { Ok(reply(&snapshots.finish(from, transfer).await)) };
        Ok(answer.boxed())
    }
}

fn reply(reply: &SnapshotReply) -> Bytes {
    message::encode_snapshot_reply(reply)
}

/// A vote names the node that leads or wants to; only that node may send it.
fn check_speaker(from: NodeId, vote: &Vote) -> Result<(), HandleError> {
    let speaker = node_of(vote.leader_id.node_id);
    if speaker == from {
        return Ok(());
    }
    Err(HandleError::Malformed(format!(
        "node {from} speaks for node {speaker}"
    )))
}

fn malformed(error: &dyn std::error::Error) -> HandleError {
    HandleError::Malformed(error.to_string())
}

fn stopped<E>(_error: E) -> HandleError {
    HandleError::Stopped
}
