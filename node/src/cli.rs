//! The command line: what a person or a script types, and how the answer is given.
//!
//! One file per command. A command parses its arguments into validated types, does its work through
//! `kelp_client`, `crate::process`, `crate::certs` or `crate::config`, writes data to standard
//! output and words to standard error, and ends with an [`Exit`] code that scripts may rely on. The
//! environment is read here once and handed down; nothing below reads it again.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

mod bench;
mod certs;
mod completion;
mod config;
mod connection;
pub(crate) mod console;
mod del;
mod dev;
mod export;
pub mod failure;
mod get;
mod health;
mod import;
mod put;
pub mod record;
mod scan;
mod start;
mod status;

pub use connection::{ClientArgs, OutputFormat};
pub use failure::{Exit, Failure};

/// Kelp: a replicated, ordered key-value store in one program.
///
/// Start a cluster of three nodes on this machine with `kelp dev`. In another terminal, write and
/// read through any of its nodes.
#[derive(Debug, Parser)]
#[command(
    name = "kelp",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = EXAMPLES
)]
struct Cli {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  kelp dev                              three nodes on this machine, until Ctrl-C
  kelp put greeting 'hello, kelp'       write a key
  kelp get greeting                     read it back
  kelp scan --prefix user: --limit 10   list keys in order
  kelp status                           who leads, who lags
  kelp import packages.tsv              write every line of a file

Exit codes: 0 done; 1 not found; 2 usage or configuration; 3 unavailable, nothing was executed;
4 outcome unknown; 5 refused; 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a cluster on this machine
    Dev(dev::DevArgs),
    /// Run one node of a cluster
    Start(start::StartArgs),
    /// Write a key
    Put(put::PutArgs),
    /// Read a key
    Get(get::GetArgs),
    /// Delete a key
    Del(del::DelArgs),
    /// List keys and values in order
    Scan(scan::ScanArgs),
    /// Show the nodes of the cluster: who leads, who lags, who is down
    Status(status::StatusArgs),
    /// Ask the node of this host whether it is ready
    Health(health::HealthArgs),
    /// Write every record of a file
    Import(import::ImportArgs),
    /// Write every record of the cluster to a file
    Export(export::ExportArgs),
    /// Measure how fast the cluster answers
    Bench(bench::BenchArgs),
    /// Make certificates for nodes and clients
    Certs(certs::CertsArgs),
    /// Show or check the configuration of a node without starting it
    Config(config::ConfigArgs),
    /// Print a completion script for a shell
    Completion(completion::CompletionArgs),
}

/// Looks a variable of the environment up.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Runs the command that the process was started with and returns its exit code.
pub fn main() -> ExitCode {
    run(std::env::args_os(), &process_environment).into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command line reads the environment here, once, and hands it down"
)]
fn process_environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

fn run(arguments: impl IntoIterator<Item = OsString>, environment: Environment<'_>) -> Exit {
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match dispatch(cli, environment) {
        Ok(exit) => exit,
        Err(failure) => {
            if !failure.message.is_empty() {
                console::message(&failure);
            }
            failure.exit
        }
    }
}

/// The whole grammar, for parsing and for completion scripts.
fn command() -> clap::Command {
    Cli::command()
}

fn dispatch(cli: Cli, environment: Environment<'_>) -> Result<Exit, Failure> {
    let above = cli.client;
    match cli.command {
        Command::Dev(args) => dev::run(args),
        Command::Start(args) => start::run(&args, environment),
        Command::Put(args) => put::run(args, above, environment),
        Command::Get(args) => get::run(args, above, environment),
        Command::Del(args) => del::run(args, above, environment),
        Command::Scan(args) => scan::run(args, above, environment),
        Command::Status(args) => status::run(args, above, environment),
        Command::Health(args) => health::run(&args, environment),
        Command::Import(args) => import::run(&args, above, environment),
        Command::Export(args) => export::run(args, above, environment),
        Command::Bench(args) => bench::run(&args, above, environment),
        Command::Certs(args) => certs::run(args),
        Command::Config(args) => config::run(args, environment),
        Command::Completion(args) => completion::run(&args),
    }
}

/// Prints help where it was asked for, and one line of what is wrong otherwise.
fn refuse(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => match error.print() {
            Ok(()) => Exit::Done,
            Err(error) => Failure::output(&error).exit,
        },
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // The help itself is the answer; a closed standard error silences it.
            drop(error.print());
            Exit::Usage
        }
        _ => {
            console::message(usage_line(&error.to_string()));
            Exit::Usage
        }
    }
}

/// What is wrong, and where help is, out of the several lines that the parser writes.
fn usage_line(text: &str) -> String {
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    let fault = paragraphs.first().copied().unwrap_or(text);
    let fault = fault.strip_prefix("error: ").unwrap_or(fault);
    let fault = fault.split_whitespace().collect::<Vec<_>>().join(" ");
    let tip = paragraphs
        .iter()
        .filter_map(|paragraph| paragraph.trim().strip_prefix("tip: "))
        .find(|tip| tip.contains("exists"))
        .map(|tip| format!(" ({})", tip.trim()))
        .unwrap_or_default();
    format!("{fault}{tip}; --help shows what is possible")
}

/// A runtime for commands that talk to a cluster. One thread serves all their connections.
pub(crate) fn client_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Refused, format!("cannot start: {error}")))
}

#[cfg(test)]
mod tests;
