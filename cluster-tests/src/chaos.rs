//! Kills nodes under load and judges what is left.
//!
//! Writers put and delete through all nodes, each on keys of its own, and note every answer in a
//! [`Ledger`]. Meanwhile, round after round, a node, or all of them, is killed as `kill -9` does,
//! sometimes half a frame is appended to its log (a killed process alone leaves no torn tail, since
//! the page cache survives it), and it is started again and must catch up. At the end nobody writes, and every
//! node must have applied the same entries, have the same chain hash, and hold what the ledger
//! allows.

mod nodes;
mod resources;
mod rounds;
mod torn_tail;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use kelp_seams::SeededRng;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::{DevCluster, Ledger, Violation};
use nodes::Nodes;
use rounds::Progress;
use writer::Writer;

pub use resources::NodeResources;
pub use rounds::RoundReport;

/// What to do to the cluster.
#[derive(Clone, Debug)]
pub struct ChaosOptions {
    /// The `kelp` program.
    pub program: PathBuf,
    /// Folder for the data of all nodes; a cluster that lies there is resumed.
    pub directory: PathBuf,
    /// How often a node is killed.
    pub rounds: u32,
    /// How many writers there are; half of them stay with one node, the others use any.
    pub writers: u32,
    /// Keys of each writer.
    pub keys_per_writer: u32,
    /// Writes every key once before the first kill, so that the data set has its full size.
    pub fill: bool,
    /// Shortest time of load before a kill; up to twice as long by chance.
    pub calm: Duration,
    /// Bytes of each value, at least [`ChaosOptions::VALUE_BYTES_MIN`].
    pub value_bytes: usize,
    /// Choices (victims, pauses, keys) follow from it; the timing of the processes does not.
    pub seed: u64,
}

impl ChaosOptions {
    /// A value names its writer and its number, so that no two are equal.
    pub const VALUE_BYTES_MIN: usize = 32;
}

/// What came of it.
#[derive(Debug)]
pub struct ChaosReport {
    /// What happened round by round.
    pub rounds: Vec<RoundReport>,
    /// All writes together.
    pub ledger: Ledger,
    /// Records that every node held at the end.
    pub record_count: usize,
    /// The applied index and the chain hash that all nodes agreed on.
    pub agreed: (u64, String),
    /// What may not be; empty when nothing was lost.
    pub violations: Vec<Violation>,
}

/// Runs the whole test; `say` gets a line for people now and then.
///
/// # Errors
/// When the cluster does not do what it must within its time: start, go on without the victim,
/// take the victim back, agree at the end. A lost write is no error but a violation in the report.
pub async fn run(options: &ChaosOptions, mut say: impl FnMut(&str)) -> Result<ChaosReport> {
    if options.value_bytes < ChaosOptions::VALUE_BYTES_MIN {
        bail!(
            "values need at least {} bytes",
            ChaosOptions::VALUE_BYTES_MIN
        );
    }
    let cluster = DevCluster::start(&options.program, &options.directory)?;
    let nodes = Nodes::connect(&cluster)?;
    let progress = Arc::new(Progress::default());
    let (stop, stopped) = watch::channel(false);
    let mut writers = JoinSet::new();
    for number in 0..options.writers {
        let writer = Writer::new(
            options,
            number,
            &nodes,
            Arc::clone(&progress),
            stopped.clone(),
        )?;
        writers.spawn(writer.run());
    }
    if options.fill {
        let key_count = u64::from(options.writers) * u64::from(options.keys_per_writer);
        progress.wait_until_filled(key_count).await?;
        say(&format!(
            "{key_count} keys of {} bytes are written",
            options.value_bytes
        ));
    }
    let random = SeededRng::new(options.seed);
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        let report = rounds::run(round, options.calm, &cluster, &nodes, &progress, &random).await?;
        say(&report.to_string());
        rounds.push(report);
    }
    stop.send_replace(true);
    let mut ledger = Ledger::new();
    let mut violations = Vec::new();
    while let Some(writer) = writers.join_next().await {
        let (own, wrong) = writer??;
        ledger.merge(own);
        violations.extend(wrong);
    }
    let agreed = nodes.wait_until_equal(AGREEMENT_TIMEOUT).await?;
    let mut record_count = 0;
    for state in nodes.read_all().await? {
        record_count = state.len();
        violations.extend(ledger.check_all(&state));
    }
    cluster.stop()?;
    Ok(ChaosReport {
        rounds,
        ledger,
        record_count,
        agreed,
        violations,
    })
}

/// Nobody writes: only what is in flight has to arrive.
const AGREEMENT_TIMEOUT: Duration = Duration::from_mins(1);
