//! Starting, stopping and failing.

use std::path::Path;
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_seams::{Executor, ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{
    Database, DatabaseOptions, EntryTerm, Fault, FaultOperation, FaultRule, LogEntry, LogNumber,
    LogPosition, MemFs, Seams, WriteBatch,
};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};

use super::*;
use crate::bus::{BusError, PeerBus, PeerClass};
use crate::error::{ProposeError, StartError};
use crate::message;
use crate::model::{ClusterId, GroupId};
use crate::options::{LeaderRestore, RaftOptions, RaftParts, Timing, raft_config};
use crate::payload;
use crate::retention::LogRetention;
use crate::state::{AppliedRecord, MetaKey};
use crate::testing::{Cluster, ClusterOptions, Recorder, entry, put};
use crate::type_config::{LeaderId, LogId, LogPayload, RaftEntry, Vote};

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

fn options(node: u16, cluster: u8) -> RaftOptions {
    RaftOptions {
        node: NodeId::new(node),
        cluster: ClusterId::new([cluster; 16]),
        group: GroupId::new(0),
        timing: Timing::default(),
        retention: LogRetention::default(),
    }
}

fn parts(disk: &MemFs) -> RaftParts {
    parts_on(disk).0
}

/// Parts of a replica whose jobs run only when the executor is stepped.
fn parts_on(disk: &MemFs) -> (RaftParts, Arc<SteppedExecutor>) {
    let clock = Arc::new(ManualClock::new());
    let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let seams = Seams {
        vfs: Arc::new(disk.clone()),
        clock,
        rng: Arc::new(SeededRng::new(1)),
        executor: Arc::clone(&executor) as Arc<dyn Executor>,
    };
    let options = DatabaseOptions::for_tests();
    let database = Database::open(Path::new("/data"), options, seams.clone()).unwrap();
    let parts = RaftParts {
        database,
        seams,
        bus: Arc::new(NoPeers),
        observer: Arc::new(Recorder::default()),
    };
    (parts, executor)
}

#[tokio::test]
async fn data_of_another_node_or_cluster_is_refused() {
    let disk = MemFs::new();
    let parts = parts(&disk);
    let raft = Raft::start(options(1, 7), parts.clone()).await.unwrap();
    raft.shutdown().await;
    for (node, cluster) in [(2, 7), (1, 8)] {
        let error = Raft::start(options(node, cluster), parts.clone())
            .await
            .err()
            .unwrap();
        let StartError::ForeignData { node, cluster } = error else {
            panic!("{error:?}")
        };
        assert_eq!((node, cluster), (NodeId::new(1), ClusterId::new([7; 16])));
    }
    let again = Raft::start(options(1, 7), parts).await.unwrap();
    again.shutdown().await;
}

#[tokio::test]
async fn a_log_that_begins_after_the_state_ends_is_refused() {
    let disk = MemFs::new();
    let (parts, executor) = parts_on(&disk);
    let log = parts.database.log(LogNumber::new(0)).unwrap();
    let through = LogPosition {
        index: LogIndex::new(41),
        term: EntryTerm { term: 1, leader: 1 },
    };
    log.discard_prefix(through).unwrap();
    executor.run_until_idle();
    let refused = Raft::start(options(1, 7), parts).await.err().unwrap();
    let StartError::LogGap { needed, first } = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((needed, first), (LogIndex::new(0), LogIndex::new(42)));
}

#[tokio::test]
async fn a_log_that_ends_before_the_state_goes_whatever_its_terms_are() {
    let (parts, executor) = parts_on(&MemFs::new());
    let log = parts.database.log(LogNumber::new(0)).unwrap();
    // A leader wrote it alone, and a later one led with entries of an earlier term. Its snapshot
    // was installed here, and a power cut came before the log was discarded.
    let alone = LogEntry {
        index: LogIndex::new(0),
        term: EntryTerm { term: 3, leader: 3 },
        payload: payload::encode(&LogPayload::Blank),
    };
    log.append(vec![alone], Box::new(drop)).unwrap();
    let installed = LogPosition {
        index: LogIndex::new(9),
        term: EntryTerm { term: 2, leader: 2 },
    };
    let applied = AppliedRecord {
        position: installed,
        clock: StampMillis::default(),
    };
    let mut batch = WriteBatch::new();
    batch.put(MetaKey::Applied.to_bytes(), applied.encode());
    let state = StateReader::open(&parts.database, GroupId::new(0)).unwrap();
    state.keyspace().write(batch).unwrap();
    executor.run_until_idle();
    let raft = Raft::start(options(1, 7), parts).await.unwrap();
    assert_eq!((log.purged(), log.last()), (Some(installed), None));
    raft.shutdown().await;
}

#[tokio::test]
async fn a_replica_that_was_shut_down_answers_nothing() {
    let raft = Raft::start(options(1, 7), parts(&MemFs::new()))
        .await
        .unwrap();
    assert_eq!(raft.status().role, Role::Learner);
    raft.shutdown().await;
    assert_eq!(raft.stopped().await, StopReason::Shutdown);
    assert_eq!(raft.status().role, Role::Stopped);
    let read = raft.read_index(Duration::from_secs(1)).await;
    assert!(read.is_err());
    let request = message::request_header(5, GroupId::new(0), 0).freeze();
    drop(
        raft.handler()
            .handle(NodeId::new(2), PeerClass::Control, request)
            .await,
    );
}

#[tokio::test]
async fn peers_may_speak_only_for_themselves_and_about_this_group() {
    let raft = Raft::start(options(1, 7), parts(&MemFs::new()))
        .await
        .unwrap();
    let vote = openraft::raft::VoteRequest::new(
        Vote {
            leader_id: LeaderId {
                term: 9,
                node_id: 3,
            },
            committed: false,
        },
        None,
    );
    let kind = message::RaftKind::Vote;
    let own = message::encode_vote(GroupId::new(0), kind, &vote);
    let other_group = message::encode_vote(GroupId::new(4), kind, &vote);
    let handler = raft.handler();
    let control = PeerClass::Control;
    assert!(handler.handle(NodeId::new(2), control, own).await.is_err());
    assert!(
        handler
            .handle(NodeId::new(3), control, other_group)
            .await
            .is_err()
    );
    let unknown = message::request_header(63, GroupId::new(0), 0).freeze();
    assert!(
        handler
            .handle(NodeId::new(3), control, unknown)
            .await
            .is_err()
    );
    raft.shutdown().await;
}

#[tokio::test]
async fn members_are_checked_before_they_are_written() {
    let raft = Raft::start(options(1, 7), parts(&MemFs::new()))
        .await
        .unwrap();
    let member = |name: &str, voter| Member {
        name: name.to_owned(),
        peer: String::new(),
        client: String::new(),
        http: String::new(),
        voter,
    };
    let long = "n".repeat(STRING_BYTES_MAX + 1);
    for members in [
        BTreeMap::from([(NodeId::new(1), member("one", false))]),
        BTreeMap::from([(NodeId::new(1), member(&long, true))]),
        BTreeMap::from([(NodeId::new(2), member("two", true))]),
    ] {
        let result = raft.initialize(members).await;
        assert!(matches!(result, Err(RaftError::Invalid(_))), "{result:?}");
    }
    assert_eq!(raft.status().last_log, None);
    raft.shutdown().await;
}

#[test]
fn timing_that_cannot_work_is_refused_and_safety_switches_are_fixed() {
    let good = raft_config(&options(1, 7), LeaderRestore::Never).unwrap();
    assert_eq!(good.enable_leader_restore, Some(false));
    assert_eq!(good.enable_pre_vote, Some(true));
    assert_eq!(good.allow_log_reversion, Some(false));
    assert_eq!(good.quorum_loss_probe_interval, Some(1000));
    assert_eq!(good.max_in_snapshot_log_to_keep, u64::MAX);
    let mut bad = options(1, 7);
    bad.timing.election_min = bad.timing.heartbeat;
    let error = raft_config(&bad, LeaderRestore::Never).unwrap_err();
    assert!(matches!(error, StartError::Timing(_)));
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_stops_the_replica_for_good() {
    const EIO: i32 = 5;
    let mut cluster = Cluster::start(ClusterOptions::new(1)).await;
    cluster.put("key", "value").await;
    let node = NodeId::new(1);
    let raft = cluster.raft(node).clone();
    let rule = FaultRule::once(Some(FaultOperation::Sync), 0, Fault::Errno(EIO));
    cluster.node(node).faults.add(rule);
    let sub_batch = cluster.sub_batch(&[put("key", "lost")]);
    let proposal = raft.propose(entry(&raft, &sub_batch)).await.unwrap();
    assert_eq!(proposal.await.unwrap_err(), ProposeError::Stopped);
    let reason = raft.stopped().await;
    assert!(matches!(reason, StopReason::Storage(_)), "{reason:?}");
    assert_eq!(raft.status().role, Role::Stopped);
    // The process ends, and the next one finds what had been acknowledged.
    cluster.crash(node);
    cluster.restart(node).await;
    cluster.leader().await;
    assert!(cluster.read(node, "key").is_some());
}

#[tokio::test]
async fn appends_enter_the_core_in_order_although_their_task_has_used_up_its_budget() {
    let (parts, executor) = parts_on(&MemFs::new());
    let raft = Raft::start(options(1, 7), parts).await.unwrap();
    let leader = LeaderId {
        term: 5,
        node_id: 2,
    };
    let append = |index: u64| {
        let request = AppendEntriesRequest {
            vote: Vote {
                leader_id: leader,
                committed: true,
            },
            prev_log_id: index
                .checked_sub(1)
                .map(|before| LogId::new(leader, before)),
            entries: vec![RaftEntry {
                log_id: LogId::new(leader, index),
                payload: LogPayload::Blank,
            }],
            leader_commit: None,
        };
        let bytes = message::encode_append(GroupId::new(0), &request);
        raft.handler()
            .handle(NodeId::new(2), PeerClass::Append, bytes)
    };
    let (mut first, mut second) = (append(0), tokio::task::unconstrained(append(1)));
    std::future::poll_fn(|context| {
        while tokio::task::coop::has_budget_remaining() {
            let mut one = std::pin::pin!(tokio::task::coop::consume_budget());
            assert!(one.as_mut().poll(context).is_ready());
        }
        assert!(first.poll_unpin(context).is_pending());
        assert!(second.poll_unpin(context).is_pending());
        Poll::Ready(())
    })
    .await;
    let replies = futures_util::future::join(first, second);
    tokio::pin!(replies);
    let (first, second) = loop {
        executor.run_until_idle();
        if let Poll::Ready(replies) = futures_util::poll!(&mut replies) {
            break replies;
        }
        tokio::task::yield_now().await;
    };
    for reply in [first, second] {
        let body = message::PeerReply::decode(reply.unwrap()).unwrap().body;
        let reply = message::decode_append_reply(body).unwrap();
        assert_eq!(reply, AppendEntriesResponse::Success);
    }
    raft.shutdown().await;
}

/// A bus with a defect.
struct Panicking;

impl PeerBus for Panicking {
    fn call(
        &self,
        _peer: NodeId,
        _class: PeerClass,
        _request: Bytes,
        _deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        panic!("planted")
    }
}

#[tokio::test]
async fn a_panic_of_a_read_round_is_told_and_nobody_waits_for_it() {
    let (mut parts, executor) = parts_on(&MemFs::new());
    parts.bus = Arc::new(Panicking);
    let raft = Raft::start(options(1, 7), parts).await.unwrap();
    let leader = LeaderId {
        term: 5,
        node_id: 2,
    };
    let request = AppendEntriesRequest {
        vote: Vote {
            leader_id: leader,
            committed: true,
        },
        prev_log_id: None,
        entries: Vec::new(),
        leader_commit: None,
    };
    let bytes = message::encode_append(GroupId::new(0), &request);
    let handler = raft.handler();
    let mut heartbeat = handler.handle(NodeId::new(2), PeerClass::Append, bytes);
    while raft.status().leader.is_none() {
        executor.run_until_idle();
        let _ = futures_util::poll!(&mut heartbeat);
        tokio::task::yield_now().await;
    }
    let long = Duration::from_hours(1);
    for _ in 0..2 {
        assert_eq!(raft.read_index(long).await, Err(ReadError::Stopped));
    }
    assert_eq!(raft.stopped().await, StopReason::Panicked);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_core_is_told_as_one() {
    let cluster = Cluster::start(ClusterOptions::new(1)).await;
    let raft = cluster.raft(NodeId::new(1)).clone();
    let planted = raft.inner.raft.with_raft_state(|_| panic!("planted")).await;
    assert!(planted.is_err());
    assert_eq!(raft.stopped().await, StopReason::Panicked);
    let mut epoch = raft.status_watch();
    while epoch.changed().await.is_ok() {}
    assert_eq!(raft.status().role, Role::Stopped);
}
