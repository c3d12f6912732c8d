//! The sending end of a transfer.
//!
//! The receiver leads: each of its replies says where to go on, so nothing is remembered here from
//! one attempt to the next. Every message has its own deadline, there is none for the whole: a
//! transfer that makes progress may take as long as the state is large.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kelp_storage::PinnedVersion;
use openraft::errors::{NetworkError, ReplicationClosed, StreamingError, Unreachable};
use openraft::raft::SnapshotResponse;
use openraft::type_config::TypeConfigExt;
use openraft::{OptionalSend, RPCTypes, StorageError};

use super::shipping::{Shipment, SnapshotCounters};
use super::{Image, Shipping, Snapshot};
use crate::bus::PeerClass;
use crate::links::Links;
use crate::message::{
    self, BEGIN_BYTES_MAX, CHUNK_BYTES_MAX, Position, RaftKind, SnapshotBegin, SnapshotChunk,
    SnapshotReply, TransferId,
};
use crate::model::NodeId;
use crate::type_config::{TypeConfig, Vote};

/// How long the receiver may take for one message besides its way: a disk that needs longer for a
/// megabyte is stuck.
const STEP: Duration = Duration::from_secs(10);

/// Pause before the receiver is asked again whether it has installed the snapshot; its answer
/// takes a while by itself.
const FINISH_PAUSE: Duration = Duration::from_millis(50);

/// Pause before a receiver that installs another snapshot is asked again.
const BEGIN_PAUSE: Duration = Duration::from_secs(1);

/// Replies in a row that bring the transfer no further, before it is given up: a receiver that
/// forgot the transfer gives one, one that had written more than it could say another.
const FRUITLESS_MAX: u32 = 3;

type Failure = StreamingError<TypeConfig>;

/// Sends `snapshot` to `target` and returns once it is installed there, or not needed.
pub(crate) async fn send(
    links: &Links,
    shipping: &Arc<Shipping>,
    target: NodeId,
    vote: Vote,
    snapshot: Snapshot,
    cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
) -> Result<SnapshotResponse<TypeConfig>, Failure> {
    let Image::Pinned(pinned) = snapshot.snapshot else {
        return Err(local_error(&io::Error::other("a staged state is not sent")));
    };
    let sender = Sender {
        links,
        shipping,
        target,
        begin: SnapshotBegin {
            vote,
            meta: snapshot.meta,
            description: pinned.description(),
        },
        pinned,
    };
    tokio::select! {
        biased;
        closed = cancel => Err(StreamingError::Closed(closed)),
        answer = sender.run() => answer.map(SnapshotResponse::new),
    }
}

struct Sender<'a> {
    links: &'a Links,
    shipping: &'a Arc<Shipping>,
    target: NodeId,
    begin: SnapshotBegin,
    pinned: PinnedVersion,
}

impl Sender<'_> {
    async fn run(&self) -> Result<Vote, Failure> {
        let mut reply = self.ask_begin().await?;
        // A receiver that cannot be reached holds no log.
        let mut shipment: Option<Shipment> = None;
        let mut best = None;
        let mut fruitless = 0;
        loop {
            reply = match reply {
                SnapshotReply::Vote(vote) => {
                    if let Some(shipment) = shipment.filter(|_| vote <= self.begin.vote) {
                        shipment.finish();
                    }
                    return Ok(vote);
                }
                SnapshotReply::Failed(reason) => {
                    tracing::error!(peer = %self.target, reason, "snapshot was refused");
                    return Err(self.unreachable(&format!("snapshot was refused: {reason}")));
                }
                SnapshotReply::Unknown => {
                    fruitless += 1;
                    if fruitless > FRUITLESS_MAX {
                        return Err(self.unreachable("transfer is forgotten again and again"));
                    }
                    best = None;
                    self.ask_begin().await?
                }
                SnapshotReply::Working => {
                    tokio::time::sleep(BEGIN_PAUSE).await;
                    self.ask_begin().await?
                }
                SnapshotReply::Position(transfer, at) => {
                    fruitless = if Some(at) > best { 0 } else { fruitless + 1 };
                    if fruitless > FRUITLESS_MAX {
                        return Err(self.unreachable("receiver does not go on"));
                    }
                    best = best.max(Some(at));
                    shipment
                        .get_or_insert_with(|| self.shipping.start(&self.begin.meta, &self.pinned));
                    self.go_on(transfer, at).await?
                }
            };
        }
    }

    /// Sends the chunk that belongs at `at`, or asks for the end.
    async fn go_on(&self, transfer: TransferId, at: Position) -> Result<SnapshotReply, Failure> {
        let file = usize::try_from(at.file).unwrap_or(usize::MAX);
        if file >= self.pinned.file_count() {
            return self.ask_finish(transfer).await;
        }
        let left = self.pinned.file_bytes(file).checked_sub(at.offset);
        let Some(left @ 1..) = left else {
            return Err(self.unreachable("receiver asks for bytes behind the end of a file"));
        };
        let count = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(CHUNK_BYTES_MAX);
        let pinned = self.pinned.clone();
        let read = move || pinned.read(file, at.offset, count);
        let bytes = kelp_seams::blocking(&*self.shipping.executor, read).await;
        let bytes = bytes.map_err(|error| local_error(&error))?;
        let bytes = bytes.map_err(|error| local_error(&error))?;
        if bytes.len() != count {
            let message = format!("file {file} of the snapshot ends before its length");
            return Err(local_error(&io::Error::other(message)));
        }
        self.shipping.paced(count).await;
        let chunk = SnapshotChunk {
            transfer,
            at,
            bytes,
        };
        let request = message::encode_chunk(self.links.group, &chunk);
        let reply = self.call(RaftKind::SnapshotChunk, request).await?;
        let count = u64::try_from(count).expect("a chunk is bounded");
        SnapshotCounters::add(&self.shipping.counters.sent_bytes, count);
        Ok(reply)
    }

    async fn ask_begin(&self) -> Result<SnapshotReply, Failure> {
        let request = message::encode_begin(self.links.group, &self.begin);
        if request.len() > BEGIN_BYTES_MAX {
            return Err(self.unreachable("the state has too many files to be described"));
        }
        self.call(RaftKind::SnapshotBegin, request).await
    }

    /// Asks until the receiver has installed the snapshot or says what it lacks.
    async fn ask_finish(&self, transfer: TransferId) -> Result<SnapshotReply, Failure> {
        loop {
            let request = message::encode_finish(self.links.group, transfer);
            match self.call(RaftKind::SnapshotFinish, request).await? {
                SnapshotReply::Working => tokio::time::sleep(FINISH_PAUSE).await,
                other => return Ok(other),
            }
        }
    }

    async fn call(&self, kind: RaftKind, request: bytes::Bytes) -> Result<SnapshotReply, Failure> {
        let deadline = self.links.append_deadline(request.len()) + STEP;
        let class = PeerClass::Snapshot;
        let call = self.links.call(self.target, class, kind, request, deadline);
        let body = call.await.map_err(|error| {
            let action = RPCTypes::InstallSnapshot;
            self.links.rpc_error(error, self.target, action, deadline)
        })?;
        message::decode_snapshot_reply(body)
            .map_err(|error| StreamingError::Network(NetworkError::new(&error)))
    }

    /// Makes openraft wait before it tries again.
    fn unreachable(&self, reason: &str) -> Failure {
        tracing::warn!(peer = %self.target, reason, "snapshot is not sent");
        StreamingError::Unreachable(Unreachable::from_string(reason))
    }
}

/// A snapshot that cannot be read here: the replica must stop.
fn local_error(error: &(impl std::error::Error + 'static)) -> Failure {
    StreamingError::StorageError(StorageError::read_snapshot(
        None,
        TypeConfig::err_from_error(error),
    ))
}
