//! `kelp scan`: lists keys and values in order, page by page.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStringExt;

use bytes::Bytes;
use clap::Args;
use kelp_client::{ScanOptions, ScanRange, ScanRecord};
use serde_json::json;

use super::record::{JsonBytes, escape};
use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScanArgs {
    /// First key [default: the first of all]
    #[arg(allow_negative_numbers = true)]
    start: Option<OsString>,
    /// Key to stop before; it is not listed itself [default: none]
    #[arg(allow_negative_numbers = true)]
    end: Option<OsString>,
    /// Only keys that begin with this
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with_all = ["start", "end"],
    )]
    prefix: Option<OsString>,
    /// At most so many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// Keys without their values
    #[arg(long)]
    keys_only: bool,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Prints one record per line: key, tab, value, with \\t \\n \\r \\\\ and \\xHH for bytes that
would break the line. -o json prints an object per line, -o raw the value alone and unescaped.
Long scans are read in pages, so that they never hold the cluster up; a record written meanwhile
may or may not be listed.

Examples:
  kelp scan                              everything
  kelp scan --prefix user: --limit 10    the first ten users
  kelp scan a m                          keys from a up to, not including, m
  kelp scan --reverse --limit 1          the last key
  kelp scan -- -b -m                     keys that begin with a dash";

pub(super) fn run(
    args: ScanArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.clone().resolve(above, environment)?;
    let options = ScanOptions {
        range: range(args.start, args.end, args.prefix),
        limit: args.limit,
        reverse: args.reverse,
        keys_only: args.keys_only,
        request: target.request_options(),
        ..ScanOptions::default()
    };
    client_runtime()?.block_on(async {
        let mut scan = target.client()?.scan(options);
        let mut output = BufWriter::new(io::stdout().lock());
        while let Some(page) = scan
            .next_page()
            .await
            .map_err(|error| Failure::from(&error))?
        {
            for record in &page.records {
                write_record(&mut output, record, target.output, args.keys_only)
                    .map_err(|error| Failure::output(&error))?;
            }
            output.flush().map_err(|error| Failure::output(&error))?;
        }
        Ok(Exit::Done)
    })
}

fn range(start: Option<OsString>, end: Option<OsString>, prefix: Option<OsString>) -> ScanRange {
    let bytes = |text: OsString| Bytes::from(text.into_vec());
    match (prefix, start, end) {
        (Some(prefix), _, _) => ScanRange::Prefix(bytes(prefix)),
        (None, None, None) => ScanRange::All,
        (None, start, end) => ScanRange::Between {
            start: start.map(bytes).unwrap_or_default(),
            // An empty END means the end of all keys: nothing sorts before the empty key.
            end: end.map(bytes).filter(|end| !end.is_empty()),
        },
    }
}

fn write_record(
    output: &mut impl Write,
    record: &ScanRecord,
    format: OutputFormat,
    keys_only: bool,
) -> io::Result<()> {
    match (format, keys_only) {
        (OutputFormat::Table, false) => {
            writeln!(output, "{}\t{}", escape(&record.key), escape(&record.value))
        }
        (OutputFormat::Table, true) => writeln!(output, "{}", escape(&record.key)),
        (OutputFormat::Raw, keys_only) => {
            output.write_all(if keys_only {
                &record.key
            } else {
                &record.value
            })?;
            output.write_all(b"\n")
        }
        (OutputFormat::Json, keys_only) => {
            let mut line = json!({
                "key": JsonBytes::of(&record.key),
                "revision": record.revision.get(),
            });
            if !keys_only {
                line["value"] = json!(JsonBytes::of(&record.value));
            }
            writeln!(output, "{line}")
        }
    }
}

#[cfg(test)]
mod tests;
