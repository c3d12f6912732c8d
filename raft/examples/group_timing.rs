//! What one entry costs on its way through three replicas in one process: log, fsync, replication,
//! apply; everything but sockets and TLS.
//!
//! `cargo run --release -p kelp-raft --example group_timing -- DIRECTORY`

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use kelp_raft::{
    ApplyObserver, BatchNumber, Boot, BusError, ClusterId, EntryBuilder, GroupId, LogIndex,
    LogRetention, Member, NodeId, Operation, OwnSubBatch, PeerBus, PeerClass, PeerHandler, Raft,
    RaftOptions, RaftParts, Role, SubBatchBuilder, SubBatchId, Timing,
};
use kelp_seams::{Clock, OsRng, SystemClock, ThreadExecutor};
use kelp_storage::{Database, DatabaseOptions, RealFs, Seams};
use tokio::sync::{mpsc, oneshot};

const NODES: u16 = 3;
const VALUE_BYTES: usize = 100;
const DURATION: Duration = Duration::from_secs(5);

type AnyError = Box<dyn Error + Send + Sync>;
type Request = (Bytes, oneshot::Sender<Bytes>);
type Handlers = Arc<Mutex<BTreeMap<NodeId, Arc<dyn PeerHandler>>>>;

/// Delivers to handlers in the same process, in order, without delay.
struct Direct {
    from: NodeId,
    handlers: Handlers,
    links: Mutex<BTreeMap<(NodeId, PeerClass), mpsc::UnboundedSender<Request>>>,
}

impl PeerBus for Direct {
    fn call(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        let (reply, answer) = oneshot::channel();
        {
            let mut links = self.links.lock().expect("not poisoned");
            let link = links.entry((peer, class)).or_insert_with(|| {
                let (sender, receiver) = mpsc::unbounded_channel();
                tokio::spawn(deliver(
                    Arc::clone(&self.handlers),
                    self.from,
                    peer,
                    class,
                    receiver,
                ));
                sender
            });
            drop(link.send((request, reply)));
        }
        async move {
            match tokio::time::timeout(deadline, answer).await {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(_)) => Err(BusError::Lost("refused".to_owned())),
                Err(_) => Err(BusError::Timeout),
            }
        }
        .boxed()
    }
}

async fn deliver(
    handlers: Handlers,
    from: NodeId,
    to: NodeId,
    class: PeerClass,
    mut requests: mpsc::UnboundedReceiver<Request>,
) {
    let mut handling = FuturesOrdered::new();
    loop {
        tokio::select! {
            biased;
            request = requests.recv() => {
                let Some((request, reply)) = request else { return };
                let handler = handlers.lock().expect("not poisoned").get(&to).cloned();
                if let Some(handler) = handler {
                    let answer = handler.handle(from, class, request);
                    handling.push_back(answer.map(move |answer| (answer, reply)));
                }
            }
            Some((answer, reply)) = handling.next() => {
                if let Ok(answer) = answer {
                    drop(reply.send(answer));
                }
            }
        }
    }
}

struct Deaf;

impl ApplyObserver for Deaf {
    fn applied(&self, _index: LogIndex, _own: &[OwnSubBatch<'_>]) {}

    fn installed(&self, _index: LogIndex, _own_last: Option<(Boot, BatchNumber)>) {}
}

async fn start(number: u16, root: &Path, handlers: &Handlers) -> Result<Raft, AnyError> {
    let node = NodeId::new(number);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let seams = Seams {
        vfs: Arc::new(RealFs),
        clock: Arc::clone(&clock),
        rng: Arc::new(OsRng::open()?),
        executor: Arc::new(ThreadExecutor::new(clock)),
    };
    let directory = root.join(format!("n{number}"));
    let database = Database::open(&directory, DatabaseOptions::default(), seams.clone())?;
    database.raise_boot()?;
    let options = RaftOptions {
        node,
        cluster: ClusterId::new([7; 16]),
        group: GroupId::new(0),
        timing: Timing::default(),
        retention: LogRetention::default(),
    };
    let links = Mutex::default();
    let bus = Arc::new(Direct {
        from: node,
        handlers: Arc::clone(handlers),
        links,
    });
    let raft = Raft::start(
        options,
        RaftParts {
            database,
            seams,
            bus,
            observer: Arc::new(Deaf),
        },
    )
    .await?;
    handlers
        .lock()
        .expect("not poisoned")
        .insert(node, raft.handler());
    Ok(raft)
}

/// Proposes one entry after the other and waits for each; returns how long each took.
async fn worker(
    raft: Raft,
    sender: NodeId,
    boot: u64,
    commands: usize,
) -> Result<Vec<Duration>, AnyError> {
    let value = Bytes::from(vec![7; VALUE_BYTES]);
    let mut took = Vec::new();
    let end = tokio::time::Instant::now() + DURATION;
    let mut batch = BatchNumber::FIRST;
    while tokio::time::Instant::now() < end {
        let start = tokio::time::Instant::now();
        let mut builder = SubBatchBuilder::new();
        for command in 0..commands {
            let key = Bytes::from(format!("{sender}-{batch}-{command}"));
            builder.append(
                &Operation::Put {
                    key,
                    value: value.clone(),
                }
                .command(0),
            )?;
        }
        let id = SubBatchId {
            node: sender,
            boot: Boot::new(boot),
            batch,
        };
        let mut entry = EntryBuilder::new();
        entry.push(builder.take(id, batch))?;
        raft.propose(entry.finish(raft.now_stamp())).await?.await?;
        took.push(start.elapsed());
        batch = batch.next();
    }
    Ok(took)
}

#[expect(
    clippy::print_stdout,
    reason = "the numbers are the product of this program"
)]
async fn measure(raft: &Raft, boot: u64, workers: u16, commands: usize) -> Result<(), AnyError> {
    let tasks: Vec<_> = (0..workers)
        .map(|number| {
            tokio::spawn(worker(
                raft.clone(),
                NodeId::new(100 + number),
                boot,
                commands,
            ))
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await??);
    }
    took.sort_unstable();
    let entries = took.len();
    let per_second = entries / usize::try_from(DURATION.as_secs())?;
    println!(
        "{workers:4} in flight x {commands:4} commands: {per_second:6} entries/s {:8} commands/s  p50 {:?} p99 {:?}",
        per_second * commands,
        took[entries / 2],
        took[entries * 99 / 100],
    );
    Ok(())
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), AnyError> {
    let root = std::env::args()
        .nth(1)
        .ok_or("usage: group_timing DIRECTORY")?;
    let handlers = Handlers::default();
    let mut rafts = Vec::new();
    for number in 1..=NODES {
        rafts.push(start(number, Path::new(&root), &handlers).await?);
    }
    let member = |number: u16| Member {
        name: format!("n{number}"),
        peer: String::new(),
        client: String::new(),
        http: String::new(),
        voter: true,
    };
    let members = (1..=NODES)
        .map(|number| (NodeId::new(number), member(number)))
        .collect();
    rafts[0].initialize(members).await?;
    let mut epoch = rafts[0].status_watch();
    while rafts[0].status().role != Role::Leader {
        epoch.changed().await?;
    }
    rafts[0].read_index(Duration::from_secs(5)).await?;
    for (boot, (workers, commands)) in (1..).zip([(1, 1), (16, 1), (64, 1), (16, 100), (16, 1000)])
    {
        measure(&rafts[0], boot, workers, commands).await?;
    }
    for raft in rafts {
        raft.shutdown().await;
    }
    Ok(())
}
