//! Chores of the repository: `cargo xtask <chore>`.
//!
//! Each chore is one module with `run(arguments)` and one line in [`CHORES`]. Chores are small
//! programs that a person or CI calls; they know the folder layout and the README, and nothing of
//! Kelp's code.

#![expect(
    clippy::disallowed_methods,
    reason = "a chore reads the work tree and starts other programs; no seam of Kelp stands around it"
)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore talks to the person or the script that called it"
)]

mod bench_redis;
mod check;
mod debian_index;
mod readme;
mod repository;
mod tidy;

use std::process::ExitCode;

/// A chore: its name, its one-line help, and what it runs.
struct Chore {
    name: &'static str,
    help: &'static str,
    run: fn(&[String]) -> anyhow::Result<()>,
}

const CHORES: &[Chore] = &[
    Chore {
        name: "bench-redis",
        help: bench_redis::HELP,
        run: bench_redis::run,
    },
    Chore {
        name: "check",
        help: check::HELP,
        run: check::run,
    },
    Chore {
        name: "debian-index",
        help: debian_index::HELP,
        run: debian_index::run,
    },
    Chore {
        name: "readme",
        help: readme::HELP,
        run: readme::run,
    },
    Chore {
        name: "tidy",
        help: tidy::HELP,
        run: tidy::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let chosen = arguments
        .first()
        .and_then(|name| CHORES.iter().find(|chore| chore.name == name));
    let Some(chore) = chosen else {
        eprintln!("usage: cargo xtask <chore> [arguments]");
        for chore in CHORES {
            eprintln!("  {:<14} {}", chore.name, chore.help);
        }
        return ExitCode::from(2);
    };
    match (chore.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask {}: {error:#}", chore.name);
            ExitCode::FAILURE
        }
    }
}
