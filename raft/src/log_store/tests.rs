//! openraft's own storage suite over a log and a state of the engine, and what it does not ask.

mod filled;
mod suite;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kelp_seams::{Clock, ManualClock, SeededRng, SteppedExecutor};
use kelp_storage::{Database, DatabaseOptions, LogNumber, MemFs, Seams};
use openraft::type_config::TypeConfigExt;

use super::*;
use crate::type_config::{EntryBytes, LeaderId, LogPayload};

/// An engine on a disk in memory that a test steps by hand.
pub(super) struct Engine {
    pub(super) executor: Arc<SteppedExecutor>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) log: Log,
    pub(super) database: Database,
}

impl Engine {
    pub(super) fn open(disk: &MemFs) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock)));
        Self::open_on(disk, executor, clock)
    }

    /// An engine that is stepped together with others.
    pub(super) fn open_on(
        disk: &MemFs,
        executor: Arc<SteppedExecutor>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let seams = Seams {
            vfs: Arc::new(disk.clone()),
            clock: Arc::clone(&clock),
            rng: Arc::new(SeededRng::new(1)),
            executor: Arc::clone(&executor) as Arc<dyn Executor>,
        };
        let options = DatabaseOptions::for_tests();
        let database = Database::open(Path::new("/data"), options, seams).unwrap();
        let log = database.log(LogNumber::new(0)).unwrap();
        Self {
            executor,
            clock,
            log,
            database,
        }
    }

    pub(super) fn executor(&self) -> Arc<dyn Executor> {
        Arc::clone(&self.executor) as Arc<dyn Executor>
    }

    pub(super) fn store(&self) -> LogStore {
        LogStore::new(
            self.log.clone(),
            Arc::clone(&self.executor) as Arc<dyn Executor>,
        )
    }

    /// Runs `work` while the engine does its part.
    pub(super) async fn drive<T>(&self, work: impl Future<Output = T>) -> T {
        let executor = Arc::clone(&self.executor);
        let stepping = async move {
            loop {
                executor.run_until_idle();
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            value = work => value,
            () = stepping => unreachable!("stepping never ends"),
        }
    }
}

fn leader(term: u64) -> LeaderId {
    LeaderId { term, node_id: 1 }
}

fn normal(index: u64, bytes: usize) -> RaftEntry {
    let mut payload = vec![0; bytes];
    payload[0] = 1;
    RaftEntry {
        log_id: LogId::new(leader(1), index),
        payload: LogPayload::Normal(EntryBytes(Bytes::from(payload))),
    }
}

#[tokio::test]
async fn an_append_is_readable_before_it_is_durable_and_its_callback_waits_for_the_sync() {
    let engine = Engine::open(&MemFs::new());
    let mut store = engine.store();
    let (flushed, mut durable) = TypeConfig::oneshot();
    store
        .append([normal(0, 10)], IOFlushed::signal(flushed))
        .await
        .unwrap();
    let read = store.limited_get_log_entries(0, 1).await.unwrap();
    assert_eq!(read, [normal(0, 10)]);
    assert!(
        durable.try_recv().is_err(),
        "the callback came before the sync"
    );
    engine.executor.run_until_idle();
    durable.try_recv().unwrap().unwrap();
}

#[tokio::test]
async fn a_vote_is_on_disk_when_it_is_saved() {
    let disk = MemFs::new();
    let vote = Vote {
        leader_id: leader(3),
        committed: false,
    };
    let engine = Engine::open(&disk);
    let mut store = engine.store();
    let saving = store.save_vote(&vote);
    tokio::pin!(saving);
    assert!(
        futures_util::poll!(&mut saving).is_pending(),
        "no vote without a sync"
    );
    engine.drive(saving).await.unwrap();
    for seed in 0..8 {
        let engine = Engine::open(&disk.crash_clone(&SeededRng::new(seed)));
        assert_eq!(engine.store().read_vote().await.unwrap(), Some(vote));
    }
}

#[tokio::test]
async fn reads_are_cut_by_bytes_but_never_empty() {
    let engine = Engine::open(&MemFs::new());
    let mut store = engine.store();
    let half = READ_BYTES_MAX / 2;
    let sizes = [half, half, half, READ_BYTES_MAX + 1, 10];
    for (index, bytes) in (0..).zip(sizes) {
        store
            .append([normal(index, bytes)], IOFlushed::noop())
            .await
            .unwrap();
        engine.executor.run_until_idle();
    }
    let mut counts = Vec::new();
    let mut next = 0;
    while next < 5 {
        let read = engine
            .drive(store.limited_get_log_entries(next, 5))
            .await
            .unwrap();
        let bytes: usize = read
            .iter()
            .map(|entry| payload::encode(&entry.payload).len())
            .sum();
        assert!(
            read.len() == 1 || bytes <= READ_BYTES_MAX,
            "{bytes} bytes at once"
        );
        assert_eq!(read[0].log_id.index, next);
        next += u64::try_from(read.len()).unwrap();
        counts.push(read.len());
    }
    assert!(counts.len() >= 3, "{counts:?}");
    let all = engine.drive(store.try_get_log_entries(0..5)).await.unwrap();
    assert_eq!(all.len(), 5);
    let mut entries = Box::pin(engine.drive(store.entries_stream(1..5)).await);
    for index in 1..5 {
        let entry = engine
            .drive(futures_util::StreamExt::next(&mut entries))
            .await;
        assert_eq!(entry.unwrap().unwrap().log_id.index, index);
    }
}

#[tokio::test]
async fn committed_is_written_behind_and_never_ahead_of_the_log() {
    let disk = MemFs::new();
    let engine = Engine::open(&disk);
    let mut store = engine.store();
    store
        .append([normal(0, 10), normal(1, 10)], IOFlushed::noop())
        .await
        .unwrap();
    store
        .save_committed(Some(LogId::new(leader(1), 1)))
        .await
        .unwrap();
    engine.executor.run_until_idle();
    for seed in 0..16 {
        let engine = Engine::open(&disk.crash_clone(&SeededRng::new(seed)));
        let committed = engine.store().read_committed().await.unwrap();
        let last = engine.store().get_log_state().await.unwrap().last_log_id;
        assert!(committed.map(|id| id.index) <= last.map(|id| id.index));
    }
}
