//! Every check that a change must pass, as one command; CI runs the same stages one by one.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{readme, repository, tidy};

pub(crate) const HELP: &str = "every check of a change, or only the stages named";

/// One stage: its name and what it runs in the root folder.
struct Stage {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

/// Cheap and telling stages first.
const STAGES: &[Stage] = &[
    Stage {
        name: "format",
        run: format,
    },
    Stage {
        name: "clippy",
        run: clippy,
    },
    Stage {
        name: "test",
        run: test,
    },
    Stage {
        name: "docs",
        run: docs,
    },
    Stage {
        name: "tidy",
        run: |root| tidy::check(root),
    },
    Stage {
        name: "deny",
        run: deny,
    },
];

/// Runs all stages, or only those named in `arguments`, and stops at the first that fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
    for argument in arguments {
        ensure!(
            names.contains(&argument.as_str()),
            "no stage {argument}; there are {names:?}"
        );
    }
    let root = repository::root()?;
    for stage in STAGES {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == stage.name) {
            continue;
        }
        let start = Instant::now();
        (stage.run)(&root).with_context(|| format!("stage {} failed", stage.name))?;
        eprintln!(
            "check: {} passed in {} s",
            stage.name,
            start.elapsed().as_secs()
        );
    }
    Ok(())
}

fn format(root: &Path) -> Result<()> {
    cargo(root, &["fmt", "--all", "--check"])
}

/// Compiles benches and examples too, so that they cannot rot.
fn clippy(root: &Path) -> Result<()> {
    cargo(
        root,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )
}

/// Runs what the README tells a newcomer to run, letter by letter.
fn test(root: &Path) -> Result<()> {
    let script = readme::test_command(root)?;
    succeed(
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(root),
    )
}

fn docs(root: &Path) -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps"];
    succeed(cargo_command(root, &arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks the dependency tree without the network; says so when the tool is not there.
fn deny(root: &Path) -> Result<()> {
    let tool = Command::new("cargo-deny").arg("--version").output();
    if !tool.is_ok_and(|output| output.status.success()) {
        eprintln!("check: deny left out, cargo-deny is not installed");
        return Ok(());
    }
    let arguments = [
        "--offline",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ];
    succeed(Command::new("cargo-deny").args(arguments).current_dir(root))
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    succeed(&mut cargo_command(root, arguments))
}

fn cargo_command(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(root);
    command
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
