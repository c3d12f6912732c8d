//! `kelp bench`: measures how fast a cluster answers.
//!
//! Each client is one connection with a fixed number of requests under way. All of them run on one
//! thread, so that the program itself takes as little as it can of a machine that it may share
//! with the cluster. Without `--rate` the loop is closed: a slow cluster is asked less. With it, a
//! request is timed from when it should have been sent, so that a stall is seen by all that it
//! delayed.

use std::time::Duration;

use clap::Args;
use kelp_wire::VALUE_BYTES_MAX;

use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime, console};
use crate::config::quantity::{parse_bytes, parse_duration};

mod load;
mod report;
mod workload;

use load::{Load, Pace, Span};
use report::{Report, Setup};
use workload::{Distribution, WorkloadOptions};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BenchArgs {
    /// Connections, spread over the endpoints in turn
    #[arg(
        long,
        value_name = "N",
        default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..=1024),
    )]
    clients: u16,
    /// Requests under way on each connection
    #[arg(
        long,
        value_name = "N",
        default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..=1024),
    )]
    pipeline: u16,
    /// Size of values, as in 100 or 4KiB
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = parse_bytes)]
    value_bytes: u64,
    /// How many keys there are
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        value_parser = clap::value_parser!(u64).range(1..),
    )]
    keys: u64,
    /// How keys are chosen
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    distribution: Distribution,
    /// How many of a hundred requests are reads; the others are writes
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..=100),
    )]
    reads: u8,
    /// How long to measure
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = parse_duration,
        conflicts_with = "operations",
    )]
    duration: Duration,
    /// Measure so many requests instead
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Run so long before measuring
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    warm_up: Duration,
    /// Send so many requests a second, however fast the answers come
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Write every key once before, so that reads find them
    #[arg(long)]
    load: bool,
    /// What keys begin with
    #[arg(long, value_name = "TEXT", default_value = "bench:")]
    prefix: String,
    /// Two runs with one seed send the same requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Writes are durable on a majority before they count. The keys stay: use --prefix to keep them
apart from yours.

Examples:
  kelp bench                                              64 writes under way for 10 s
  kelp bench --clients 8 --pipeline 32 --value-bytes 1KiB
  kelp bench --reads 95 --distribution zipf --load        mostly reads, few keys often
  kelp bench --rate 5000 -o json                          at a steady pace, for a program";

pub(super) fn run(
    args: &BenchArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.clone().resolve(above, environment)?;
    let value_bytes = usize::try_from(args.value_bytes)
        .ok()
        .filter(|bytes| *bytes <= VALUE_BYTES_MAX)
        .ok_or_else(|| {
            Failure::usage(format!(
                "--value-bytes: at most {} MiB",
                VALUE_BYTES_MAX >> 20
            ))
        })?;
    let workload = WorkloadOptions {
        seed: args.seed,
        keys: args.keys,
        distribution: args.distribution,
        read_percent: args.reads,
        value_bytes,
        prefix: args.prefix.clone(),
    };
    let setup = Setup {
        endpoints: target.endpoints.clone(),
        clients: args.clients,
        pipeline: args.pipeline,
        outstanding: u32::from(args.clients) * u32::from(args.pipeline),
        value_bytes: args.value_bytes,
        keys: args.keys,
        distribution: args.distribution.word(),
        read_percent: args.reads,
        rate: args.rate,
        seed: args.seed,
    };
    let pace = Pace {
        rate: args.rate,
        warm_up: args.warm_up,
        span: match args.operations {
            Some(operations) => Span::Operations(operations),
            None => Span::Time(args.duration),
        },
    };
    let load = Load {
        target: &target,
        clients: args.clients,
        pipeline: args.pipeline,
        workload,
    };
    let measured = client_runtime()?.block_on(async {
        let connections = load.connect().await?;
        if args.load {
            load.fill(&connections).await?;
        }
        tokio::select! {
            measured = load.measure(&connections, &pace) => Ok(measured),
            _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted")),
        }
    })?;
    let report = Report::new(setup, &measured);
    let text = match target.output {
        OutputFormat::Table => report.table(),
        OutputFormat::Json | OutputFormat::Raw => report.json(),
    };
    console::data(text.as_bytes())?;
    report.verdict()
}
