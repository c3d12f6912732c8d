//! What peers hear, from a node without a log.

use std::path::Path;
use std::time::Duration;

use kelp_raft::{
    BatchNumber, Boot, BusError, ClusterId, LogRetention, PeerBus, RaftOptions, RaftParts,
    SubBatch, SubBatchId, Timing,
};
use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{Database, DatabaseOptions, MemFs, Seams};

use super::*;
use crate::proposer::Proposer;
use crate::proposer::outbox::OutboxLimits;

const GROUP: GroupId = GroupId::new(0);

/// A bus of a node that knows nobody.
struct NoPeers;

impl PeerBus for NoPeers {
    fn call(
        &self,
        _peer: NodeId,
        _class: PeerClass,
        _request: Bytes,
        _deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        std::future::ready(Err(BusError::Unreachable("no peers".to_owned()))).boxed()
    }
}

async fn service() -> PeerService {
    let clock = Arc::new(ManualClock::new());
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock: clock.clone(),
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::new(SteppedExecutor::new(clock.clone())),
    };
    let options = DatabaseOptions::for_tests();
    let database = Database::open(Path::new("/data"), options, seams.clone()).unwrap();
    let node = NodeId::new(1);
    let proposer = Arc::new(Proposer::new(node, Boot::new(1), OutboxLimits::default()));
    let options = RaftOptions {
        node,
        cluster: ClusterId::new([7; 16]),
        group: GROUP,
        timing: Timing::default(),
        retention: LogRetention::default(),
    };
    let parts = RaftParts {
        database: database.clone(),
        seams,
        bus: Arc::new(NoPeers),
        observer: proposer.clone(),
    };
    let raft = Raft::start(options, parts).await.unwrap();
    let (packer, packing) = Packer::new(raft.clone(), database, proposer.metrics());
    tokio::spawn(packing);
    let cursors = Arc::new(Cursors::new(NodeId::new(1), Boot::new(1)));
    PeerService::new(raft, packer, cursors, clock, GROUP)
}

async fn ask(service: &PeerService, kind: u8, body: Bytes) -> Result<Bytes, HandleError> {
    let group = GROUP;
    let request = PeerRequest { kind, group, body }.encode();
    service
        .handle(NodeId::new(2), PeerClass::Forward, request)
        .await
}

fn sub_batch(node: u16) -> Bytes {
    SubBatch {
        id: SubBatchId {
            node: NodeId::new(node),
            boot: Boot::new(1),
            batch: BatchNumber::new(1),
        },
        floor: BatchNumber::new(1),
        command_count: 0,
        commands: Bytes::new(),
    }
    .encode()
}

#[tokio::test]
async fn sub_batch_that_cannot_be_read_is_answered_as_that() {
    let service = service().await;
    let body = Bytes::from_static(b"of a later version");
    let reply = ask(&service, forward::FORWARD, body).await;
    let answer = forward::decode_reply(reply.expect("the connection stays"));
    assert_eq!(answer, Ok(Err(HandOverError::Unreadable)));
}

#[tokio::test]
async fn sub_batch_of_another_node_closes_the_connection() {
    let service = service().await;
    let reply = ask(&service, forward::FORWARD, sub_batch(3)).await;
    assert!(matches!(reply, Err(HandleError::Malformed(_))), "{reply:?}");
}

#[tokio::test]
async fn node_without_a_log_says_so_and_leads_nobody() {
    let service = service().await;
    let reply = ask(&service, forward::HAS_LOG, Bytes::new()).await.unwrap();
    assert_eq!(forward::decode_has_log_reply(reply), Ok(false));
    let reply = ask(&service, forward::FORWARD, sub_batch(2)).await.unwrap();
    let refused = Err(HandOverError::NotLeader { leader: None });
    assert_eq!(forward::decode_reply(reply), Ok(refused));
}

#[tokio::test]
async fn unknown_kinds_close_the_connection() {
    let service = service().await;
    let reply = ask(&service, u8::MAX, Bytes::new()).await;
    assert!(matches!(reply, Err(HandleError::Malformed(_))), "{reply:?}");
}
