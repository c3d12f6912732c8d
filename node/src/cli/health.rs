//! `kelp health`: whether the node of this host is ready, for supervisors of containers.

use clap::Args;

use super::start::{OptionArgs, settings};
use super::{Environment, Exit, Failure, client_runtime, console};
use crate::process::ask_health;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    options: OptionArgs,
}

const EXAMPLES: &str = "\
Takes the same flags, KELP_* variables and TOML file as `kelp start`, and asks the node that they
configure on its HTTP port. Exit codes: 0 ready; 1 it answers and is not ready; 3 no answer.

Examples:
  kelp health --config /etc/kelp/kelp.toml
  HEALTHCHECK CMD [\"kelp\", \"health\"]      in a container file; the options are in the environment";

pub(super) fn run(args: &HealthArgs, environment: Environment<'_>) -> Result<Exit, Failure> {
    let settings = settings(&args.options, environment)?;
    let health = client_runtime()?.block_on(ask_health(&settings))?;
    console::data(health.text.as_bytes())?;
    Ok(if health.is_ready {
        Exit::Done
    } else {
        Exit::Negative
    })
}
