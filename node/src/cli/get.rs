//! `kelp get`: reads one key.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use kelp_client::Record;
use serde_json::json;

use super::record::{JsonBytes, escape};
use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime, console};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct GetArgs {
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Prints exactly the bytes of the value and one line feed; -o raw leaves the line feed out. Exit
code 1: no such key. The answer includes every write that was acknowledged before, whichever
node is asked.

Examples:
  kelp get greeting
  kelp get logo -o raw > logo.png
  kelp get greeting -o json             key, value and revision";

pub(super) fn run(
    args: GetArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.resolve(above, environment)?;
    let key = args.key.into_vec();
    let record = client_runtime()?.block_on(async {
        let client = target.client()?;
        client
            .get_with(&key, &target.request_options())
            .await
            .map_err(|error| Failure::from(&error))
    })?;
    match record {
        Some(record) => {
            console::data(&printed(&key, &record, target.output))?;
            Ok(Exit::Done)
        }
        None => Err(absent(&key)),
    }
}

/// What is said of a key that is not there.
pub(super) fn absent(key: &[u8]) -> Failure {
    Failure::new(Exit::Negative, format!("no key '{}'", escape(key)))
}

fn printed(key: &[u8], record: &Record, output: OutputFormat) -> Vec<u8> {
    match output {
        OutputFormat::Raw => record.value.to_vec(),
        OutputFormat::Table => [&record.value[..], b"\n"].concat(),
        OutputFormat::Json => {
            let line = json!({
                "key": JsonBytes::of(key),
                "value": JsonBytes::of(&record.value),
                "revision": record.revision.get(),
            });
            format!("{line}\n").into_bytes()
        }
    }
}

#[cfg(test)]
mod tests;
