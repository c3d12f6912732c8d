//! `kelp completion`: scripts that let a shell complete Kelp's commands and options.

use clap::Args;
use clap_complete::{Shell, generate};

use super::{Exit, Failure, command, console};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kelp completion bash > /etc/bash_completion.d/kelp
  kelp completion zsh > ~/.zfunc/_kelp
  kelp completion fish > ~/.config/fish/completions/kelp.fish")]
pub(super) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    generate(args.shell, &mut command(), "kelp", &mut script);
    console::data(&script)?;
    Ok(Exit::Done)
}
