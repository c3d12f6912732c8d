//! `scripts/bench-restart`: how long a node with a long log takes to serve again after `kill -9`.
//!
//! Three nodes, so that the killed one also has to find its leader. The clock runs from the start
//! of the process until a linearizable read through that node is answered, which is after it has
//! applied everything that it had acknowledged.

#![expect(
    clippy::disallowed_methods,
    reason = "the program of a harness reads the clock and makes folders of its own"
)]
#![expect(
    clippy::print_stdout,
    reason = "the figures go to the person or script that asked"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use kelp_client::Client;
use kelp_cluster_tests::{ClusterNode, DevCluster, kelp_program};
use kelp_seams::{Rng as _, SeededRng};
use tokio::task::JoinSet;

/// Writes in flight while the log is filled.
const WRITERS: u64 = 256;

/// One attempt of the read that ends the clock; short, so that the clock is not rounded up.
const ATTEMPT_TIMEOUT: Duration = Duration::from_millis(500);

/// Longer than any start is worth waiting for.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Fills the log, kills one node with SIGKILL, starts it again, and tells how long that took.
#[derive(Parser)]
struct Arguments {
    /// The `kelp` program; the one beside this program by default.
    #[arg(long)]
    kelp: Option<PathBuf>,
    /// Keys and values to write before each kill, in MiB.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Bytes of each value.
    #[arg(long, default_value_t = 1000)]
    value_bytes: usize,
    /// How often it is done.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let temporary = tempfile::tempdir()?;
    let program = arguments.kelp.clone().map_or_else(kelp_program, Ok)?;
    let cluster = DevCluster::start(&program, &temporary.path().join("cluster"))?;
    let nodes = cluster.nodes()?;
    let mut times = Vec::new();
    for round in 0..arguments.rounds {
        fill(&arguments, round, &nodes).await?;
        let victim = &nodes[usize::try_from(round)? % nodes.len()];
        cluster.kill(&[victim.id]).await?;
        let log_bytes = log_bytes(victim)?;
        let begun = Instant::now();
        cluster.restart(victim.id)?;
        wait_until_it_reads(victim, begun).await?;
        let took = begun.elapsed();
        println!(
            "round {}: node {} with {} MiB of log files served again after {} ms",
            round + 1,
            victim.id,
            log_bytes >> 20,
            took.as_millis()
        );
        times.push(took);
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).context("no round was run")?;
    println!("median {} ms", median.as_millis());
    cluster.stop()
}

/// Writes as many bytes as were asked for, through all nodes.
async fn fill(arguments: &Arguments, round: u32, nodes: &[ClusterNode]) -> Result<()> {
    let endpoints: Vec<String> = nodes.iter().map(|node| node.client.clone()).collect();
    let write_count = (arguments.mib << 20) / u64::try_from(arguments.value_bytes)?;
    let next = Arc::new(AtomicU64::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let mut order = endpoints.clone();
        order.rotate_left(usize::try_from(writer)? % endpoints.len());
        let client = Client::builder().endpoints(order).build()?;
        let (next, value_bytes) = (Arc::clone(&next), arguments.value_bytes);
        let random = SeededRng::new(u64::from(round) << 32 | writer);
        writers.spawn(async move {
            let mut value = vec![0; value_bytes];
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= write_count {
                    return anyhow::Ok(());
                }
                random.fill(&mut value);
                let key = format!("restart/{round:03}/{number:012}");
                client.put(key, &value).await?;
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Reads through `node` alone until it answers.
async fn wait_until_it_reads(node: &ClusterNode, begun: Instant) -> Result<()> {
    let client = Client::builder()
        .endpoints([node.client.clone()])
        .timeout(ATTEMPT_TIMEOUT)
        .build()?;
    while client.get(b"restart/000/000000000000").await.is_err() {
        ensure!(
            begun.elapsed() < START_TIMEOUT,
            "node {} does not serve",
            node.id
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The length of the node's log files; the newest one has its room reserved.
fn log_bytes(node: &ClusterNode) -> Result<u64> {
    let mut bytes = 0;
    for file in std::fs::read_dir(&node.data_dir)? {
        let file = file?;
        if file.path().extension().is_some_and(|name| name == "wal") {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}
