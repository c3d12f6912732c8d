//! `kelp import`: writes every record of a file, many at once, and says how far it came.

use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::future::BoxFuture;
use indicatif::HumanBytes;
use kelp_client::{Client, ClientError};
use kelp_seams::{Executor, SystemClock, ThreadExecutor};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::connection::Target;
use super::record::{ReadError, Record, RecordFormat, RecordReader};
use super::{ClientArgs, Environment, Exit, Failure, client_runtime, console};
use crate::process::files;

mod pipeline;
pub(super) mod progress;

use pipeline::{Batch, Certainty, Outcome, Pipeline, Sink, Stop};
use progress::{Progress, count};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// The file; - reads standard input
    file: PathBuf,
    /// How records are written in it [default: jsonl for *.jsonl and *.json, else tsv]
    #[arg(long, value_enum)]
    format: Option<RecordFormat>,
    /// Skip so many bytes: the number that an interrupted import printed
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    resume_from: u64,
    /// How many connections to use
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u16).range(1..=64),
    )]
    connections: u16,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Formats, one record per line:
  tsv     KEY TAB VALUE; tab, line feed, carriage return and backslash are written
          \\t \\n \\r \\\\, any byte \\xHH
  jsonl   {\"key\":\"..\",\"value\":\"..\"}; {\"b64\":\"..\"} instead of a string
          for bytes that are not UTF-8

Every acknowledged record is on the disks of a majority. After an error the import says how many
records and bytes are surely written and how to continue from there; writing a record twice does
no harm. Of several records with one key the last one stays. A record waits up to 30 s for a
cluster that is electing, or for --timeout if that is longer.

Examples:
  kelp import packages.tsv
  zcat dump.jsonl.gz | kelp import - --format jsonl
  kelp import packages.tsv --resume-from 1048576";

/// What is read ahead, in batches; a batch is a megabyte, or one larger record.
const BATCHES_AHEAD: usize = 4;
/// How long an import waits for a cluster that is electing before it gives up, unless --timeout
/// says more: an import of an hour should outlive a failover.
const TIMEOUT_MIN: Duration = Duration::from_secs(30);

pub(super) fn run(
    args: &ImportArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let mut target = args.client.clone().resolve(above, environment)?;
    target.timeout = target.timeout.max(TIMEOUT_MIN);
    let source = Source::open(args)?;
    client_runtime()?.block_on(import(args, &target, source))
}

/// How often a write with an unknown outcome is repeated: each time another node is asked, so a
/// failover or two are survived.
const REPEATS_MAX: u32 = 4;

impl Sink for Client {
    fn put(&self, record: Record) -> BoxFuture<'static, Result<Certainty, ClientError>> {
        let client = self.clone();
        Box::pin(async move {
            let mut certainty = Certainty::Once;
            for _ in 0..REPEATS_MAX {
                match Client::put(&client, &record.key, &record.value).await {
                    Ok(_) => return Ok(certainty),
                    Err(ClientError::OutcomeUnknown { .. }) => certainty = Certainty::Perhaps,
                    Err(error) => return Err(error),
                }
            }
            Client::put(&client, &record.key, &record.value)
                .await
                .map(|_| certainty)
        })
    }
}

/// What is imported.
struct Source {
    reader: RecordReader<Box<dyn BufRead + Send>>,
    bytes: Option<u64>,
}

impl Source {
    fn open(args: &ImportArgs) -> Result<Self, Failure> {
        let name = args.file.to_string_lossy();
        let format = args.format.unwrap_or_else(|| RecordFormat::of_name(&name));
        let (input, bytes): (Box<dyn BufRead + Send>, _) = if name == "-" {
            (Box::new(BufReader::new(io::stdin())), None)
        } else {
            let missing = |error: io::Error| Failure::file(Exit::Usage, &args.file, &error);
            let file = files::open(&args.file).map_err(missing)?;
            let bytes = files::length(&args.file).map_err(missing)?;
            (
                Box::new(BufReader::with_capacity(1 << 16, file)),
                Some(bytes),
            )
        };
        let mut reader = RecordReader::new(input, format);
        reader
            .skip(args.resume_from)
            .map_err(|error| Failure::usage(format!("--resume-from: {error}")))?;
        Ok(Self { reader, bytes })
    }
}

async fn import(args: &ImportArgs, target: &Target, source: Source) -> Result<Exit, Failure> {
    let client = target.client_over(usize::from(args.connections))?;
    let progress = Progress::bytes(source.bytes);
    let started = Instant::now();
    let batches = read_ahead(source.reader);
    let show = |done: Outcome| progress.show(done.offset, done.records);
    let mut pipeline = Pipeline::new(&client, args.resume_from, &show);
    let stop = tokio::select! {
        stop = pipeline.run(batches) => stop,
        _ = tokio::signal::ctrl_c() => Stop::Interrupted,
    };
    let outcome = pipeline.outcome();
    progress.finish();
    conclude(args, stop, outcome, started.elapsed())
}

/// Reads batches on a thread of the executor, as fast as they are taken.
fn read_ahead(
    mut reader: RecordReader<Box<dyn BufRead + Send>>,
) -> mpsc::Receiver<Result<Batch, ReadError>> {
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    let executor = ThreadExecutor::new(Arc::new(SystemClock::new()));
    executor.run_blocking(Box::new(move || {
        loop {
            let (batch, fault) = Batch::read(&mut reader);
            let at_end = batch.is_empty();
            // A receiver that is gone has heard enough.
            if !at_end && sender.blocking_send(Ok(batch)).is_err() {
                return;
            }
            if let Some(fault) = fault {
                drop(sender.blocking_send(Err(fault)));
                return;
            }
            if at_end {
                return;
            }
        }
    }));
    batches
}

/// Says how far it came, and how to go on.
fn conclude(
    args: &ImportArgs,
    stop: Stop,
    outcome: Outcome,
    elapsed: Duration,
) -> Result<Exit, Failure> {
    let written = outcome.offset - args.resume_from;
    let failure = match stop {
        Stop::End => {
            console::message(format!(
                "imported {}, {} in {:.1} s",
                count(outcome.records),
                HumanBytes(written),
                elapsed.as_secs_f64(),
            ));
            return Ok(Exit::Done);
        }
        Stop::Interrupted => Failure::new(Exit::Interrupted, "interrupted"),
        Stop::Input(error) => Failure::usage(error.to_string()),
        Stop::Refused { record, error } => refused(record, &error),
        Stop::Doubtful { record } => Failure::new(
            Exit::Unknown,
            format!(
                "record {record}: an earlier record with its key had to be repeated, and the first \
                 attempt may still come through"
            ),
        ),
    };
    Err(failure.hint(format!(
        "{} and {} bytes are surely written; continue with --resume-from {}",
        count(outcome.records),
        outcome.offset,
        outcome.offset,
    )))
}

fn refused(record: u64, error: &ClientError) -> Failure {
    let failure = Failure::from(error);
    Failure::new(failure.exit, format!("record {record}: {error}"))
}

#[cfg(test)]
mod tests;
