//! Clients that write while nodes lose power, links and disks at random.
//!
//! The nodes keep little in memory and next to nothing of their logs, so they flush all the time
//! and who was away for long gets a snapshot. A run is a seed. While faults go on, one leader per
//! term and equal histories at equal positions are checked; at the end everything is healed, and
//! then every acknowledged write must be on every node with the revision that its client was told,
//! which also shows that it was executed once. The same must hold after a power cut of all nodes.

use std::ops::Range;

use kelp_seams::{Rng, SeededRng};
use kelp_storage::LogIndex;

use super::*;
use crate::model::{BatchNumber, Boot, ChainHash, Revision, SubBatchId, SubBatchOutcome, Term};
use crate::retention::LogRetention;
use crate::testing::{Cluster, ClusterOptions, Part, Rafts, Verdict, attempt, put, sub_batch};

/// Seeds that are always run.
const SEEDS: Range<u64> = 0..4;
/// Runs other seeds instead: the first one and the count, as in `1000,50`.
const SEEDS_VARIABLE: &str = "KELP_RAFT_SEEDS";
/// Faults per run.
const STEPS: usize = 25;
/// Clients that write at the same time.
const CLIENTS: u16 = 3;
/// Pause of a client between its writes: most of what can go wrong needs time, not load.
const THINKING: Duration = Duration::from_millis(20);
/// A value long enough that a run fills many memtables.
const VALUE: &str = "a value that is long enough to fill the memtables of the tests soon";

struct Acknowledged {
    key: String,
    revision: Revision,
}

/// Writes one key after the other, each until it is acknowledged, as a sender of its own.
async fn client(
    rafts: Rafts,
    sender: NodeId,
    rng: SeededRng,
    stop: Arc<AtomicU64>,
) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut batch = BatchNumber::FIRST;
    while stop.load(Ordering::Relaxed) == 0 {
        let key = format!("{sender}-{batch}");
        let id = SubBatchId {
            node: sender,
            boot: Boot::new(1),
            batch,
        };
        let sub_batch = sub_batch(id, &[put(&key, VALUE)]);
        let revision = loop {
            let target = pick(&rafts, &rng);
            let outcome = match target {
                Some(raft) => attempt(&raft, &sub_batch).await,
                None => None,
            };
            if let Some(outcome) = outcome {
                break revision_of(&outcome.sub_batches[0]);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        acknowledged.push(Acknowledged { key, revision });
        batch = batch.next();
        tokio::time::sleep(THINKING).await;
    }
    acknowledged
}

/// A node that says it leads, or any node: what a client knows may be wrong.
fn pick(rafts: &Rafts, rng: &SeededRng) -> Option<Raft> {
    let rafts: Vec<Raft> = rafts.lock().unwrap().values().cloned().collect();
    let leaders: Vec<&Raft> = rafts
        .iter()
        .filter(|raft| raft.status().role == Role::Leader)
        .collect();
    if leaders.is_empty() {
        return choose(rng, &rafts).cloned();
    }
    choose(rng, &leaders).map(|raft| (*raft).clone())
}

fn choose<'a, T>(rng: &SeededRng, from: &'a [T]) -> Option<&'a T> {
    if from.is_empty() {
        return None;
    }
    let position = rng.next_u64() % u64::try_from(from.len()).unwrap();
    from.get(usize::try_from(position).unwrap())
}

fn revision_of(outcome: &SubBatchOutcome) -> Revision {
    match outcome {
        SubBatchOutcome::Executed(replies) | SubBatchOutcome::ExecutedEarlier(replies) => {
            replies[0].revision
        }
        other => panic!("refused: {other:?}"),
    }
}

/// What must hold at every moment.
#[derive(Default)]
struct Invariants {
    leaders: BTreeMap<Term, NodeId>,
    histories: BTreeMap<LogIndex, ChainHash>,
}

impl Invariants {
    fn check(&mut self, cluster: &Cluster) {
        for status in cluster.statuses() {
            assert!(status.applied <= status.committed.max(status.applied));
            if status.role == Role::Leader {
                let leader = *self.leaders.entry(status.term).or_insert(status.node);
                assert_eq!(leader, status.node, "two leaders in term {}", status.term);
            }
            let view = cluster.raft(status.node).state().view();
            if let Some(chain) = view.chain_record().unwrap() {
                let known = *self.histories.entry(chain.index).or_insert(chain.hash);
                assert_eq!(
                    known, chain.hash,
                    "histories differ at entry {}",
                    chain.index
                );
            }
        }
    }
}

/// Does one random thing to the cluster.
async fn disturb(cluster: &mut Cluster, rng: &SeededRng) {
    let live = cluster.live();
    let down = cluster.down();
    let node = *choose(rng, &live).unwrap_or(&NodeId::new(1));
    match rng.next_u64() % 10 {
        0..=2 if live.len() > 1 => cluster.crash(node),
        0..=4 => {
            for node in down {
                cluster.restart(node).await;
            }
        }
        5 => cluster.network.isolate(&[node]),
        6 => cluster.network.filter(move |message| {
            if message.to == node {
                Verdict::Lose
            } else {
                Verdict::Pass
            }
        }),
        7 => {
            let rng = SeededRng::new(rng.next_u64());
            cluster.network.filter(move |_| match rng.next_u64() % 8 {
                0 => Verdict::Lose,
                1 => Verdict::Delay(Duration::from_millis(rng.next_u64() % 120)),
                _ => Verdict::Pass,
            });
        }
        8 if live.contains(&node) => {
            cluster.pause(node, Part::Disk, rng.next_u64().is_multiple_of(2));
        }
        _ => cluster.network.heal(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a soak chooses its seeds from outside"
)]
fn seeds() -> Range<u64> {
    let Ok(asked) = std::env::var(SEEDS_VARIABLE) else {
        return SEEDS;
    };
    let (first, count) = asked.split_once(',').expect("first,count");
    let first: u64 = first.parse().unwrap();
    first..first + count.parse::<u64>().unwrap()
}

/// Runs `seed` and answers how many snapshots were installed.
async fn run(seed: u64) -> u64 {
    let options = ClusterOptions {
        seed,
        retention: LogRetention {
            kept_bytes: 2 << 10,
            flush_bytes: 8 << 10,
            ..LogRetention::default()
        },
        ..ClusterOptions::new(3 + 2 * (u16::from(seed.is_multiple_of(4))))
    };
    let mut cluster = Cluster::start(options).await;
    let rng = SeededRng::new(seed);
    let stop = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let sender = NodeId::new(100 + number);
            let rng = SeededRng::new(rng.next_u64());
            tokio::spawn(client(cluster.rafts(), sender, rng, Arc::clone(&stop)))
        })
        .collect();
    let mut invariants = Invariants::default();
    for _ in 0..STEPS {
        disturb(&mut cluster, &rng).await;
        tokio::time::sleep(Duration::from_millis(rng.next_u64() % 800)).await;
        invariants.check(&cluster);
    }
    cluster.network.heal();
    for node in cluster.live() {
        cluster.pause(node, Part::Disk, false);
    }
    for node in cluster.down() {
        cluster.restart(node).await;
    }
    stop.store(1, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    assert!(
        acknowledged.len() > 10,
        "seed {seed}: only {} writes",
        acknowledged.len()
    );
    assert_all_there(&cluster, seed, &acknowledged).await;
    invariants.check(&cluster);
    for node in cluster.live() {
        cluster.crash(node);
    }
    for node in cluster.down() {
        cluster.restart(node).await;
    }
    assert_all_there(&cluster, seed, &acknowledged).await;
    invariants.check(&cluster);
    cluster.installs()
}

/// Asserts that all nodes agree and have everything that a client was told about.
async fn assert_all_there(cluster: &Cluster, seed: u64, acknowledged: &[Acknowledged]) {
    cluster.assert_agreement().await;
    for node in cluster.live() {
        let view = cluster.raft(node).state().view();
        for Acknowledged { key, revision } in acknowledged {
            let record = view.get(0, key.as_bytes()).unwrap();
            let found = record.map(|record| record.revision);
            assert_eq!(found, Some(*revision), "seed {seed}: {key} on node {node}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_acknowledged_is_lost_or_done_twice_whatever_fails() {
    let mut installs = 0;
    for seed in seeds() {
        println!("seed {seed}");
        installs += run(seed).await;
    }
    assert!(installs > 0, "no run went through a snapshot");
}
