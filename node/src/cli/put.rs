//! `kelp put`: writes one key.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use kelp_wire::VALUE_BYTES_MAX;
use serde_json::json;

use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime, console};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PutArgs {
    /// The key, 1 byte to 32 KiB
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value, up to 8 MiB; - reads it from standard input, byte by byte as it is
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
When it returns with exit code 0 the value is on the disks of a majority of nodes.

Examples:
  kelp put greeting 'hello, kelp'
  kelp put logo - < logo.png
  kelp put -- -key-with-a-dash value";

pub(super) fn run(
    args: PutArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.resolve(above, environment)?;
    let key = args.key.into_vec();
    let value = match args.value.into_vec() {
        text if text == b"-" => read_value(std::io::stdin().lock())?,
        text => text,
    };
    let written = client_runtime()?.block_on(async {
        let client = target.client()?;
        client
            .put(key, value)
            .await
            .map_err(|error| Failure::from(&error))
    })?;
    if target.output == OutputFormat::Json {
        let line = json!({ "revision": written.revision.get() });
        console::data(format!("{line}\n").as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Reads a value to its end, or one byte more than is allowed, which is then refused with its
/// limit.
fn read_value(input: impl Read) -> Result<Vec<u8>, Failure> {
    let limit = u64::try_from(VALUE_BYTES_MAX + 1).expect("8 MiB fits");
    let mut value = Vec::new();
    input
        .take(limit)
        .read_to_end(&mut value)
        .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    Ok(value)
}

#[cfg(test)]
mod tests;
