//! `kelp config`: the configuration of a node, shown and checked without starting it.

use std::fmt::Write as _;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::start::{OptionArgs, settings};
use super::{Environment, Exit, Failure, console};
use crate::config::Merged;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

const EXAMPLES: &str = "\
Both take the same flags, KELP_* variables and TOML file as `kelp start`.

Examples:
  kelp config check --config kelp.toml     every problem at once; exit code 2 if there is one
  kelp config show --config kelp.toml      each value and where it came from";

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List every problem of the configuration
    Check {
        #[command(flatten)]
        options: OptionArgs,
    },
    /// Print each option with its value and where the value came from
    Show {
        #[command(flatten)]
        options: OptionArgs,
        /// How to print
        #[arg(short, long, value_enum, default_value_t = ShowFormat::Table)]
        output: ShowFormat,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
    /// Aligned columns
    Table,
    /// An object of name, value and origin per option
    Json,
}

pub(super) fn run(args: ConfigArgs, environment: Environment<'_>) -> Result<Exit, Failure> {
    match args.command {
        ConfigCommand::Check { options } => {
            settings(&options, environment)?;
            console::message("the configuration is sound");
            Ok(Exit::Done)
        }
        ConfigCommand::Show { options, output } => {
            let merged = options.merge(environment)?;
            let text = match output {
                ShowFormat::Table => table(&merged),
                ShowFormat::Json => json_text(&merged),
            };
            console::data(text.as_bytes())?;
            Ok(Exit::Done)
        }
    }
}

fn table(merged: &Merged) -> String {
    let rows: Vec<(&str, &str, String)> = merged
        .iter()
        .map(|(spec, value)| match value {
            Some(value) => (spec.name, value.text.as_str(), value.origin.to_string()),
            None => (spec.name, "-", "not set".to_owned()),
        })
        .collect();
    let name_width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    let value_width = rows
        .iter()
        .map(|row| row.1.chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for (name, value, origin) in rows {
        writeln!(text, "{name:name_width$}  {value:value_width$}  {origin}")
            .expect("a string takes every text");
    }
    text
}

fn json_text(merged: &Merged) -> String {
    let options: Vec<_> = merged
        .iter()
        .map(|(spec, value)| {
            json!({
                "name": spec.name,
                "value": value.map(|value| &value.text),
                "origin": value.map(|value| value.origin.to_string()),
            })
        })
        .collect();
    format!("{}\n", json!({ "options": options }))
}

#[cfg(test)]
mod tests;
