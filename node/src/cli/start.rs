//! `kelp start`: arguments of one node, made from the table of options.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::{Environment, Exit, Failure};
use crate::config::options::Shape;
use crate::config::{Layers, Merged, NodeSettings, OPTIONS};
use crate::process::{files, run_start};

/// Far above any configuration that a person writes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The options of a node, as flags: shared by `start` and `config`.
#[derive(Clone, Debug, Default)]
pub(super) struct OptionArgs {
    config: Option<PathBuf>,
    flags: BTreeMap<&'static str, String>,
}

/// `kelp start`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StartArgs {
    #[command(flatten)]
    options: OptionArgs,
    /// End when standard input closes or this process is gone; the development supervisor uses it
    #[arg(long, value_name = "PID", hide = true)]
    parent: Option<u32>,
}

const EXAMPLES: &str = "\
Options come from flags, then KELP_* variables, then the TOML file, then defaults; `kelp config
show` prints each value with its origin. SIGTERM hands leadership over, finishes what is in
flight and ends the process.

The first start on an empty directory needs --join or --member; later ones do without. A host must
listen where the list sends the others.

Examples (certificates first: `kelp certs --help`); of three hosts, on 10.0.0.1:
  kelp start --dir /var/lib/kelp --certs /etc/kelp/certs \\
      --client 10.0.0.1:4800 --peer 10.0.0.1:4801 --http 10.0.0.1:4802 \\
      --join 10.0.0.1:4801,10.0.0.2:4801,10.0.0.3:4801
A cluster of one on this machine:
  kelp start --dir data --certs n1 --join 127.0.0.1:4801
Everything from a file:
  KELP_LOG_FORMAT=json kelp start --config /etc/kelp/kelp.toml";

impl OptionArgs {
    /// Merges all layers.
    ///
    /// # Errors
    /// `Usage` with every fault of the file.
    pub(super) fn merge(&self, environment: Environment<'_>) -> Result<Merged, Failure> {
        let mut layers = Layers::with_flags(self.flags.clone());
        layers.add_environment(environment);
        let path = self.config.clone().or_else(|| {
            environment("KELP_CONFIG")
                .filter(|text| !text.is_empty())
                .map(PathBuf::from)
        });
        if let Some(path) = path {
            let bytes = files::read(&path, CONFIG_BYTES_MAX)
                .map_err(|error| Failure::file(Exit::Usage, &path, &error))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::usage(format!("{}: not UTF-8", path.display())))?;
            let faults: Vec<String> = layers
                .add_file(&path, &text)
                .iter()
                .map(ToString::to_string)
                .collect();
            if !faults.is_empty() {
                return Err(Failure::usage(faults.join("; ")));
            }
        }
        Ok(layers.merge())
    }
}

impl Args for OptionArgs {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("TOML file with any of these options, `-` written as `_` [env: KELP_CONFIG]");
        OPTIONS.iter().fold(command.arg(config), |command, spec| {
            let default = spec
                .default
                .map(|default| format!(" [default: {default}]"))
                .unwrap_or_default();
            let arg = Arg::new(spec.name)
                .long(spec.name)
                .value_name(spec.value)
                .help(format!("{}{default} [env: {}]", spec.help, spec.variable()));
            command.arg(match spec.shape {
                Shape::Single => arg.action(ArgAction::Set),
                Shape::List(_) => arg.action(ArgAction::Append),
                Shape::Switch => arg
                    .action(ArgAction::Set)
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OptionArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one::<PathBuf>("config").cloned();
        for spec in OPTIONS {
            let separator = match spec.shape {
                Shape::List(separator) => separator.to_string(),
                Shape::Single | Shape::Switch => String::new(),
            };
            let given = matches
                .try_get_many::<String>(spec.name)
                .map_err(|error| clap::Error::raw(ErrorKind::InvalidValue, error.to_string()))?;
            if let Some(texts) = given {
                let texts: Vec<&str> = texts.map(String::as_str).collect();
                self.flags.insert(spec.name, texts.join(&separator));
            }
        }
        Ok(())
    }
}

/// Merges and checks the options, or lists everything that is wrong with them.
pub(super) fn settings(
    options: &OptionArgs,
    environment: Environment<'_>,
) -> Result<NodeSettings, Failure> {
    let merged = options.merge(environment)?;
    NodeSettings::check(&merged).map_err(|problems| Failure::usage(problems.to_string()))
}

pub(super) fn run(args: &StartArgs, environment: Environment<'_>) -> Result<Exit, Failure> {
    let settings = settings(&args.options, environment)?;
    run_start(&settings, args.parent)
}
