//! `kelp del`: deletes one key.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::Args;
use serde_json::json;

use super::get::absent;
use super::{ClientArgs, Environment, Exit, Failure, OutputFormat, client_runtime, console};

#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 1: there was no such key. When it returns with 0 the key is gone on a majority of
nodes, for good.

Examples:
  kelp del greeting")]
pub(super) struct DelArgs {
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    #[command(flatten)]
    client: ClientArgs,
}

pub(super) fn run(
    args: DelArgs,
    above: ClientArgs,
    environment: Environment<'_>,
) -> Result<Exit, Failure> {
    let target = args.client.resolve(above, environment)?;
    let key = args.key.into_vec();
    let deleted = client_runtime()?.block_on(async {
        let client = target.client()?;
        client
            .delete(&key)
            .await
            .map_err(|error| Failure::from(&error))
    })?;
    if target.output == OutputFormat::Json {
        let line = json!({
            "existed": deleted.existed,
            "revision": deleted.revision.map(kelp_client::Revision::get),
        });
        console::data(format!("{line}\n").as_bytes())?;
    }
    if deleted.existed {
        Ok(Exit::Done)
    } else {
        Err(absent(&key))
    }
}
