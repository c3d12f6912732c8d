//! A group of replicas that can be started, cut off and deprived of power.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use kelp_seams::{Clock, Rng, SeededRng, SteppedExecutor};
use kelp_storage::{Database, DatabaseOptions, Direction, FaultFs, MemFs, Seams};
use tokio::time::Instant;

use super::{LocalNetwork, VirtualClock, eventually, within_patience};
use crate::model::{
    BatchNumber, Boot, ChainHash, ClusterId, EntryBuilder, EntryOutcome, GroupId, LogIndex, Member,
    NodeId, Operation, SubBatch, SubBatchBuilder, SubBatchId, SubBatchOutcome,
};
use crate::observer::{ApplyObserver, OwnSubBatch};
use crate::options::{LeaderRestore, RaftOptions, RaftParts, Timing};
use crate::raft::{Raft, RaftStatus, Role};
use crate::retention::LogRetention;

/// How long one attempt of a client may take, in virtual time.
const ATTEMPT: Duration = Duration::from_secs(2);

/// What a group is made of.
pub(crate) struct ClusterOptions {
    pub(crate) node_count: u16,
    pub(crate) seed: u64,
    pub(crate) restore: LeaderRestore,
    pub(crate) retention: LogRetention,
    pub(crate) database: DatabaseOptions,
}

impl ClusterOptions {
    pub(crate) fn new(node_count: u16) -> Self {
        Self {
            node_count,
            seed: 1,
            restore: LeaderRestore::Never,
            retention: LogRetention::default(),
            database: DatabaseOptions::for_tests(),
        }
    }
}

/// The part of a node that an executor drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The flusher of the write-ahead log.
    Disk,
    /// The applier, and reads of the log.
    Work,
}

struct Pump {
    executor: Arc<SteppedExecutor>,
    paused: bool,
}

/// The replicas that run at the moment.
pub(crate) type Rafts = Arc<Mutex<BTreeMap<NodeId, Raft>>>;

type Pumps = Arc<Mutex<BTreeMap<(NodeId, Part), Pump>>>;

/// A running node.
pub(crate) struct Node {
    pub(crate) raft: Raft,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) observer: Arc<Recorder>,
    pub(crate) disk: MemFs,
    /// Makes operations of the disk fail.
    pub(crate) faults: FaultFs,
    database: Database,
}

/// A group of replicas in one process.
pub(crate) struct Cluster {
    pub(crate) network: LocalNetwork,
    nodes: BTreeMap<NodeId, Node>,
    /// The replicas that run, for clients that are tasks of their own.
    rafts: Rafts,
    /// The disks of nodes that are down.
    disks: BTreeMap<NodeId, MemFs>,
    options: ClusterOptions,
    start: Instant,
    rng: SeededRng,
    pumps: Pumps,
    batch: BatchNumber,
    /// Snapshots that nodes have installed, those of former lives included.
    installs: Arc<AtomicU64>,
}

impl Cluster {
    /// Starts the nodes and makes all of them voters. Needs tokio's paused clock.
    pub(crate) async fn start(options: ClusterOptions) -> Self {
        let nodes = (1..=options.node_count).map(NodeId::new);
        let disks = nodes.map(|node| (node, MemFs::new())).collect();
        let cluster = Self::resume(options, disks).await;
        let first = NodeId::new(1);
        cluster
            .raft(first)
            .initialize(cluster.members())
            .await
            .unwrap();
        cluster.leader().await;
        cluster
    }

    /// Starts the nodes on disks that they left. Needs tokio's paused clock.
    pub(crate) async fn resume(options: ClusterOptions, disks: BTreeMap<NodeId, MemFs>) -> Self {
        let pumps = Pumps::default();
        tokio::spawn(pump(Arc::clone(&pumps)));
        let mut cluster = Self {
            network: LocalNetwork::default(),
            nodes: BTreeMap::new(),
            rafts: Rafts::default(),
            disks,
            start: Instant::now(),
            rng: SeededRng::new(options.seed),
            options,
            pumps,
            batch: BatchNumber::FIRST,
            installs: Arc::default(),
        };
        for node in cluster.down() {
            cluster.restart(node).await;
        }
        cluster
    }

    pub(crate) fn members(&self) -> BTreeMap<NodeId, Member> {
        let member = |number: u16| Member {
            name: format!("n{number}"),
            peer: format!("10.0.0.{number}:4801"),
            client: format!("10.0.0.{number}:4800"),
            http: format!("10.0.0.{number}:4802"),
            voter: true,
        };
        (1..=self.options.node_count)
            .map(|number| (NodeId::new(number), member(number)))
            .collect()
    }

    /// The moment that virtual time is counted from.
    pub(crate) fn origin(&self) -> Instant {
        self.start
    }

    pub(crate) fn node(&self, node: NodeId) -> &Node {
        &self.nodes[&node]
    }

    pub(crate) fn raft(&self, node: NodeId) -> &Raft {
        &self.nodes[&node].raft
    }

    pub(crate) fn live(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    pub(crate) fn down(&self) -> Vec<NodeId> {
        self.disks.keys().copied().collect()
    }

    pub(crate) fn rafts(&self) -> Rafts {
        Arc::clone(&self.rafts)
    }

    pub(crate) fn statuses(&self) -> Vec<RaftStatus> {
        self.nodes.values().map(|node| node.raft.status()).collect()
    }

    /// How many snapshots were installed so far.
    pub(crate) fn installs(&self) -> u64 {
        self.installs.load(Ordering::Relaxed)
    }

    /// The disk of a node, up or down.
    pub(crate) fn disk(&self, node: NodeId) -> MemFs {
        let running = self.nodes.get(&node).map(|node| &node.disk);
        running.unwrap_or_else(|| &self.disks[&node]).clone()
    }

    /// Starts a node that is down on the disk it left.
    pub(crate) async fn restart(&mut self, node: NodeId) {
        let disk = self.disks.remove(&node).unwrap();
        let clock = Arc::new(VirtualClock::new(self.start));
        let executor = |part| {
            let executor = Arc::new(SteppedExecutor::new(Arc::clone(&clock) as Arc<dyn Clock>));
            let pump = Pump {
                executor: Arc::clone(&executor),
                paused: false,
            };
            self.pumps.lock().unwrap().insert((node, part), pump);
            executor
        };
        let (flushing, working) = (executor(Part::Disk), executor(Part::Work));
        let faults = FaultFs::new(Arc::new(disk.clone()));
        let seams = Seams {
            vfs: Arc::new(faults.clone()),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            rng: Arc::new(SeededRng::new(self.rng.next_u64())),
            executor: flushing,
        };
        let options = self.options.database.clone();
        let database = Database::open(Path::new("/data"), options, seams.clone()).unwrap();
        database.raise_boot().unwrap();
        let observer = Arc::new(Recorder {
            installs: Arc::clone(&self.installs),
            ..Recorder::default()
        });
        let options = RaftOptions {
            node,
            cluster: ClusterId::new([7; 16]),
            group: GroupId::new(0),
            timing: Timing::default(),
            retention: self.options.retention,
        };
        let parts = RaftParts {
            database: database.clone(),
            seams: Seams {
                executor: working,
                ..seams
            },
            bus: self.network.bus(node),
            observer: Arc::clone(&observer) as Arc<dyn ApplyObserver>,
        };
        let raft = Raft::start_with(options, parts, self.options.restore)
            .await
            .unwrap();
        self.network.attach(node, raft.handler());
        self.rafts.lock().unwrap().insert(node, raft.clone());
        self.nodes.insert(
            node,
            Node {
                raft,
                clock,
                observer,
                disk,
                faults,
                database,
            },
        );
    }

    /// Takes the power from a node: what its disk had not synced is lost, in part or wholly.
    pub(crate) fn crash(&mut self, node: NodeId) {
        let Node {
            raft,
            disk,
            database,
            ..
        } = self.nodes.remove(&node).unwrap();
        self.disks.insert(node, disk.crash_clone(&self.rng));
        self.network.detach(node);
        self.rafts.lock().unwrap().remove(&node);
        self.pumps.lock().unwrap().retain(|(of, _), _| *of != node);
        // The dead process's tasks only have to go away; they reach neither disk nor peers.
        tokio::spawn(async move {
            raft.shutdown().await;
            let _held_until_here = database;
        });
    }

    /// Stops or resumes a part of a node, as a disk that hangs does.
    pub(crate) fn pause(&self, node: NodeId, part: Part, paused: bool) {
        self.pumps
            .lock()
            .unwrap()
            .get_mut(&(node, part))
            .unwrap()
            .paused = paused;
    }

    /// Waits until a node leads that a majority follows and has acknowledged, so that it takes
    /// writes.
    pub(crate) async fn leader(&self) -> NodeId {
        self.leader_other_than(None).await
    }

    /// Waits for a leader that is not `former`.
    pub(crate) async fn leader_other_than(&self, former: Option<NodeId>) -> NodeId {
        let majority = usize::from(self.options.node_count) / 2 + 1;
        eventually("a leader", || {
            let statuses = self.statuses();
            let lease = Timing::default().election_max;
            let leads = |status: &&RaftStatus| {
                status.role == Role::Leader
                    && status.leader_contact.is_some_and(|contact| contact < lease)
            };
            statuses
                .iter()
                .filter(leads)
                .map(|status| status.node)
                .find(|node| {
                    let follow = |status: &&RaftStatus| status.leader == Some(*node);
                    Some(*node) != former && statuses.iter().filter(follow).count() >= majority
                })
        })
        .await
    }

    /// The next sub-batch of the test's own client, which counts as a node.
    pub(crate) fn sub_batch(&mut self, operations: &[Operation]) -> SubBatch {
        let id = SubBatchId {
            node: CLIENT,
            boot: Boot::new(1),
            batch: self.batch,
        };
        self.batch = self.batch.next();
        sub_batch(id, operations)
    }

    /// Leaves out numbers that the test's client used before.
    pub(crate) fn skip_batches(&mut self, count: usize) {
        for _ in 0..count {
            self.batch = self.batch.next();
        }
    }

    /// Writes until it is acknowledged, wherever the leader is.
    pub(crate) async fn put(&mut self, key: &str, value: &str) -> EntryOutcome {
        let sub_batch = self.sub_batch(&[put(key, value)]);
        self.submit(&sub_batch).await
    }

    /// Proposes `sub_batch`, again and again, until it is executed.
    pub(crate) async fn submit(&self, sub_batch: &SubBatch) -> EntryOutcome {
        loop {
            let leader = self.leader().await;
            if let Some(outcome) = attempt(self.raft(leader), sub_batch).await {
                match &outcome.sub_batches[0] {
                    SubBatchOutcome::Executed(_)
                    | SubBatchOutcome::ExecutedEarlier(_)
                    | SubBatchOutcome::ExecutedForgotten => return outcome,
                    other => panic!("sub-batch {:?} was refused: {other:?}", sub_batch.id),
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What `node` reads locally under `key`, without asking anybody.
    pub(crate) fn read(&self, node: NodeId, key: &str) -> Option<Bytes> {
        let record = self
            .raft(node)
            .state()
            .view()
            .get(0, key.as_bytes())
            .unwrap();
        record.map(|record| record.value)
    }

    /// Waits until all running nodes have applied the whole log of the leader, and returns what
    /// each of them says its history is.
    pub(crate) async fn settle(&self) -> Vec<(NodeId, Option<(LogIndex, ChainHash)>)> {
        let leader = self.leader().await;
        let settled = within_patience(|| {
            let last = self.raft(leader).status().last_log;
            let all = self
                .nodes
                .values()
                .all(|node| node.raft.status().applied == last);
            all.then_some(())
        })
        .await;
        assert!(settled.is_some(), "never settled: {:#?}", self.statuses());
        let history = |(id, node): (&NodeId, &Node)| {
            let chain = node.raft.state().view().chain_record().unwrap();
            (*id, chain.map(|chain| (chain.index, chain.hash)))
        };
        self.nodes.iter().map(history).collect()
    }

    /// Asserts that all running nodes did the same and hold the same.
    pub(crate) async fn assert_agreement(&self) {
        let histories = self.settle().await;
        let first = histories[0].1;
        assert!(
            histories.iter().all(|(_, history)| *history == first),
            "replicas diverged: {histories:?}"
        );
        let content = |node: &Node| -> Vec<_> {
            let view = node.raft.state().view();
            let range = (Bound::Unbounded, Bound::Unbounded);
            let entries = view.engine().range(range, Direction::Forward);
            entries.map(Result::unwrap).collect()
        };
        let mut contents = self.nodes.iter().map(|(id, node)| (id, content(node)));
        let (_, expected) = contents.next().unwrap();
        for (node, found) in contents {
            assert!(found == expected, "node {node} holds other bytes");
        }
    }
}

/// The id under which the tests' client numbers its sub-batches.
pub(crate) const CLIENT: NodeId = NodeId::new(1);

pub(crate) fn put(key: &str, value: &str) -> Operation {
    Operation::Put {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value.as_bytes()),
    }
}

pub(crate) fn sub_batch(id: SubBatchId, operations: &[Operation]) -> SubBatch {
    let mut builder = SubBatchBuilder::new();
    for operation in operations {
        builder.append(&operation.command(0)).unwrap();
    }
    builder.take(id, BatchNumber::FIRST)
}

pub(crate) fn entry(raft: &Raft, sub_batch: &SubBatch) -> Bytes {
    let mut builder = EntryBuilder::new();
    builder.push(sub_batch.clone()).unwrap();
    builder.finish(raft.now_stamp())
}

/// Proposes once; `None` when there is no outcome in time.
pub(crate) async fn attempt(raft: &Raft, sub_batch: &SubBatch) -> Option<EntryOutcome> {
    let proposal = raft.propose(entry(raft, sub_batch)).await.ok()?;
    tokio::time::timeout(ATTEMPT, proposal).await.ok()?.ok()
}

/// Steps everything that is ready, and lets time pass only when nothing is.
async fn pump(pumps: Pumps) {
    loop {
        let ready: Vec<Arc<SteppedExecutor>> = {
            let pumps = pumps.lock().unwrap();
            pumps
                .values()
                .filter(|pump| !pump.paused)
                .map(|pump| Arc::clone(&pump.executor))
                .collect()
        };
        let steps: usize = ready.iter().map(|executor| executor.run_until_idle()).sum();
        if steps == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

/// What an observer heard of one sub-batch: entry, batch, outcome, and what its view had applied.
type Seen = (LogIndex, BatchNumber, SubBatchOutcome, Option<LogIndex>);

/// Remembers what the applier told.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) seen: Mutex<Vec<Seen>>,
    /// The states that replaced that of this node.
    pub(crate) installed: Mutex<Vec<LogIndex>>,
    installs: Arc<AtomicU64>,
}

impl ApplyObserver for Recorder {
    fn applied(&self, index: LogIndex, own: &[OwnSubBatch<'_>]) {
        let mut seen = self.seen.lock().unwrap();
        for own in own {
            let applied = own.view.applied().unwrap();
            seen.push((index, own.batch, own.outcome.clone(), applied));
        }
    }

    fn installed(&self, index: LogIndex, _own_last: Option<(Boot, BatchNumber)>) {
        self.installed.lock().unwrap().push(index);
        self.installs.fetch_add(1, Ordering::Relaxed);
    }
}
