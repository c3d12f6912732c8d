//! `scripts/chaos`: kills nodes of a real cluster under load and gives a verdict.

#![expect(
    clippy::disallowed_methods,
    reason = "the program of a harness reads the clock and makes folders of its own"
)]
#![expect(
    clippy::print_stdout,
    reason = "the verdict goes to the person or script that asked"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Parser;
use kelp_cluster_tests::chaos::{self, ChaosOptions, ChaosReport};
use kelp_cluster_tests::kelp_program;

/// Writes through three nodes, kills one after the other with SIGKILL, and judges what is left.
#[derive(Parser)]
struct Arguments {
    /// The `kelp` program; the one beside this program by default.
    #[arg(long)]
    kelp: Option<PathBuf>,
    /// Folder for the data of the nodes; a temporary one by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How often a node is killed.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Writers, each with one write at a time.
    #[arg(long, default_value_t = 24)]
    writers: u32,
    /// Keys of each writer.
    #[arg(long, default_value_t = 50)]
    keys: u32,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// Write every key once before the first kill.
    #[arg(long)]
    fill: bool,
    /// Seconds of load before each kill; up to twice as long by chance.
    #[arg(long, default_value_t = 0.5)]
    calm: f64,
    /// Repeats the choices of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match run() {
        Ok(report) if report.violations.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("verdict: failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ChaosReport> {
    let arguments = Arguments::parse();
    let temporary = tempfile::tempdir()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let options = ChaosOptions {
        program: arguments.kelp.map_or_else(kelp_program, Ok)?,
        directory: arguments
            .dir
            .unwrap_or_else(|| temporary.path().join("cluster")),
        rounds: arguments.rounds,
        writers: arguments.writers,
        keys_per_writer: arguments.keys,
        value_bytes: arguments.value_bytes,
        fill: arguments.fill,
        calm: Duration::try_from_secs_f64(arguments.calm)?,
        seed: arguments.seed.unwrap_or(now.as_secs()),
    };
    println!("seed {}", options.seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(chaos::run(&options, |line| println!("{line}")))?;
    print(&report);
    Ok(report)
}

fn print(report: &ChaosReport) {
    let ledger = &report.ledger;
    println!(
        "{} writes acknowledged, {} unknown, {} refused; {} records",
        ledger.acknowledged_count(),
        ledger.unknown_count(),
        ledger.refused_count(),
        report.record_count,
    );
    let (applied, hash) = &report.agreed;
    println!("all nodes agree at index {applied}, chain hash {hash}");
    for violation in &report.violations {
        println!("violation: {violation:?}");
    }
    if report.violations.is_empty() {
        println!("verdict: ok, nothing acknowledged was lost");
    } else {
        println!("verdict: failed, {} violations", report.violations.len());
    }
}
