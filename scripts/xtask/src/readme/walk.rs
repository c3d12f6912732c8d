//! Walks through the README as a newcomer would: starts the `serve` command, waits until it is
//! ready, runs the other blocks beside it, and stops it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use super::blocks::{Block, Tag};

/// The `serve` command builds everything from nothing first.
const READY_TIMEOUT: Duration = Duration::from_mins(20);

/// Runs the blocks tagged with one of `tags` beside the `serve` block.
pub(super) fn walk(root: &Path, blocks: &[Block], tags: &[Tag]) -> Result<()> {
    let serve: Vec<&Block> = blocks
        .iter()
        .filter(|block| block.tag == Tag::Serve)
        .collect();
    let [serve] = serve.as_slice() else {
        bail!(
            "README.md needs one block tagged `sh serve`, not {}",
            serve.len()
        );
    };
    let script = script(blocks, tags);
    let server = Server::start(root, serve)?;
    let status = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(root)
        .status();
    server.stop()?;
    ensure!(
        status.context("cannot start bash")?.success(),
        "a command of README.md failed"
    );
    Ok(())
}

/// The script of all blocks: on an error it names the block.
fn script(blocks: &[Block], tags: &[Tag]) -> String {
    let mut script =
        String::from("trap 'echo \"README.md line $line: a command failed\" >&2' ERR\n");
    for block in blocks.iter().filter(|block| tags.contains(&block.tag)) {
        writeln!(script, "line={}\n{}", block.line, block.text).expect("a String takes any text");
    }
    script
}

/// The `serve` command in a process group of its own.
struct Server {
    child: Child,
}

impl Server {
    /// Starts the command and returns when it has printed a line that begins with `ready`.
    fn start(root: &Path, block: &Block) -> Result<Self> {
        let mut child = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &block.text])
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("cannot start bash")?;
        let output = child.stdout.take().expect("stdout was asked to be a pipe");
        let (ready, is_ready) = mpsc::channel();
        std::thread::spawn(move || {
            // Reads on after `ready`, so that the command never waits for room in the pipe.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                if line.starts_with("ready") {
                    // The walk may be over already.
                    let _ = ready.send(());
                }
            }
        });
        let server = Self { child };
        if is_ready.recv_timeout(READY_TIMEOUT).is_err() {
            server.stop()?;
            bail!(
                "line {}: the command ended or did not print `ready`",
                block.line
            );
        }
        Ok(server)
    }

    /// Asks the whole group to end, as a closed terminal would, and waits for the command.
    fn stop(mut self) -> Result<()> {
        let group = format!("-{}", self.child.id());
        Command::new("kill")
            .args(["-TERM", "--", &group])
            .status()
            .context("cannot call kill")?;
        self.child
            .wait()
            .context("cannot wait for the serve command")?;
        Ok(())
    }
}
