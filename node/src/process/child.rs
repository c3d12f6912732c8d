//! One node as a child process.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

use super::{files, identity};

/// Variables that would name other members or another file than the supervisor's arguments do.
const VARIABLES_WITHHELD: [&str; 3] = ["KELP_CONFIG", "KELP_JOIN", "KELP_MEMBER"];

/// A node that this process starts, signals and waits for.
///
/// Invariants: a child is dropped only after it was waited for, so its number is never a
/// stranger's.
pub(crate) struct NodeProcess {
    /// The node id.
    pub(crate) id: u16,
    /// The arguments behind `kelp start`.
    pub(crate) arguments: Vec<String>,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    child: Option<Child>,
}

impl NodeProcess {
    /// A node that does not run yet.
    pub(crate) fn new(id: u16, arguments: Vec<String>, log: PathBuf) -> Self {
        Self {
            id,
            arguments,
            log,
            child: None,
        }
    }

    /// The number of the running process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Starts the process unless it runs. It gets a pipe as standard input that closes when this
    /// process ends, a process group of its own so that Ctrl-C in the terminal reaches the
    /// supervisor alone, and its log file.
    #[expect(
        clippy::disallowed_methods,
        reason = "the development supervisor starts nodes as child processes"
    )]
    pub(crate) fn start(&mut self) -> io::Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        let log = files::append(&self.log)?;
        // The running program itself, also after its file was replaced by a newer build.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("kelp")
            .arg("start")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true);
        for variable in VARIABLES_WITHHELD {
            command.env_remove(variable);
        }
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// Sends a signal if the process runs.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        match self.pid() {
            Some(pid) => identity::send(pid, signal),
            None => Ok(()),
        }
    }

    /// Closes the pipe to the process, which then ends as it does when its parent is gone.
    pub(crate) fn release(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.stdin.take());
        }
    }

    /// How the process ended, once, if it ended.
    pub(crate) fn poll_exit(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else {
            return Ok(None);
        };
        let status = child.try_wait()?;
        if status.is_some() {
            self.child = None;
        }
        Ok(status)
    }

    /// Waits until the process ended, kills it at `deadline`, and waits then too.
    pub(crate) async fn wait_or_kill(&mut self, deadline: Instant) -> io::Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        if timeout_at(deadline, child.wait()).await.is_err() {
            child.kill().await?;
        }
        self.child = None;
        Ok(())
    }

    /// Asks the process to stop, and kills it if it has not within `grace`.
    pub(crate) async fn stop(&mut self, grace: Duration) -> io::Result<()> {
        self.signal(Signal::TERM)?;
        self.wait_or_kill(Instant::now() + grace).await
    }

    /// Ends the process at once.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        self.signal(Signal::KILL)?;
        self.wait_or_kill(Instant::now()).await
    }
}
