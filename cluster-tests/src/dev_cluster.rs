//! A cluster of real processes on this machine, as `kelp dev` starts it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal};
use serde::Deserialize;
use tokio::time::{Instant, sleep};

/// A killed process ends at once; noticing it takes the supervisor a moment on a busy machine.
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// How often `cluster.json` is looked at.
const POLL: Duration = Duration::from_millis(10);

/// One node as `cluster.json` describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct ClusterNode {
    /// The node id, from 1.
    pub id: u16,
    /// Its process; `None` while it is down.
    pub pid: Option<u32>,
    /// Address for clients.
    pub client: String,
    /// Address for metrics and health checks.
    pub http: String,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Its log file.
    pub log: PathBuf,
}

#[derive(Deserialize)]
struct ClusterFile {
    nodes: Vec<ClusterNode>,
}

/// A running `kelp dev`; dropping it stops all nodes.
#[derive(Debug)]
pub struct DevCluster {
    program: PathBuf,
    directory: PathBuf,
    parent: Child,
}

impl DevCluster {
    /// Starts three nodes on free ports, with their data below `directory`, and waits until they
    /// are ready; resumes the cluster that lies there already.
    ///
    /// # Errors
    /// When `kelp dev` ends before it is ready; its own message is on stderr.
    pub fn start(program: &Path, directory: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["dev", "--dir"]).arg(directory);
        if !directory.join("cluster.json").exists() {
            command.args(["--base-port", "0"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut parent = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = parent
            .stdout
            .take()
            .context("stdout was asked to be a pipe")?;
        let cluster = Self {
            program: program.to_path_buf(),
            directory: directory.to_path_buf(),
            parent,
        };
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        ensure!(
            lines.any(|line| line.starts_with("ready")),
            "kelp dev ended before it was ready"
        );
        // Reads on, so that `kelp dev` never waits for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(cluster)
    }

    /// The nodes as `cluster.json` has them now, in the order of their ids.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn nodes(&self) -> Result<Vec<ClusterNode>> {
        let path = self.directory.join("cluster.json");
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let file: ClusterFile = serde_json::from_slice(&text).context("cluster.json")?;
        Ok(file.nodes)
    }

    /// One node.
    ///
    /// # Errors
    /// When the cluster has no such node.
    pub fn node(&self, id: u16) -> Result<ClusterNode> {
        let found = self.nodes()?.into_iter().find(|node| node.id == id);
        found.with_context(|| format!("the cluster has no node {id}"))
    }

    /// Kills nodes as `kill -9` does, and waits until their end has been noticed.
    ///
    /// # Errors
    /// When one of them is down already, or does not end.
    pub async fn kill(&self, ids: &[u16]) -> Result<()> {
        for &id in ids {
            let pid = self
                .node(id)?
                .pid
                .with_context(|| format!("node {id} is down"))?;
            let pid = Pid::from_raw(i32::try_from(pid)?).context("process id 0")?;
            rustix::process::kill_process(pid, Signal::KILL).context("kill")?;
        }
        let deadline = Instant::now() + END_TIMEOUT;
        for &id in ids {
            while self.node(id)?.pid.is_some() {
                ensure!(
                    Instant::now() < deadline,
                    "node {id} was killed and does not end"
                );
                sleep(POLL).await;
            }
        }
        Ok(())
    }

    /// Starts a node that was killed.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&self, id: u16) -> Result<()> {
        let status = Command::new(&self.program)
            .args(["dev", "node", "start", &id.to_string(), "--dir"])
            .arg(&self.directory)
            .status()
            .context("cannot start kelp")?;
        ensure!(status.success(), "node {id} does not start: {status}");
        Ok(())
    }

    /// Stops all nodes gracefully and waits for them.
    ///
    /// # Errors
    /// When they do not end as asked.
    pub fn stop(mut self) -> Result<()> {
        self.ask_to_end();
        let status = self.parent.wait().context("cannot wait for kelp dev")?;
        ensure!(status.success(), "kelp dev ended with {status}");
        Ok(())
    }

    fn ask_to_end(&self) {
        let pid = i32::try_from(self.parent.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended already.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for DevCluster {
    fn drop(&mut self) {
        if let Ok(None) = self.parent.try_wait() {
            self.ask_to_end();
            let _ = self.parent.wait();
        }
    }
}
