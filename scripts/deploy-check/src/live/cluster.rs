//! A development cluster of three nodes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::process::{self, Process};

/// A running cluster; it ends when it is dropped.
pub(super) struct Cluster {
    kelp: PathBuf,
    directory: PathBuf,
    nodes: Vec<Node>,
    _process: Process,
}

/// What `cluster.json` says of a node.
#[derive(Clone, Deserialize)]
pub(super) struct Node {
    pub(super) client: String,
    pub(super) resp: Option<String>,
    pub(super) peer: String,
    http: String,
}

#[derive(Deserialize)]
struct ClusterFile {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Status {
    leader: Option<u16>,
}

impl Cluster {
    /// Starts it on free ports and returns when it is ready.
    pub(super) fn start(kelp: &Path, directory: &Path) -> Result<Self> {
        let kelp = kelp
            .canonicalize()
            .with_context(|| kelp.display().to_string())?;
        let mut command = Command::new(&kelp);
        command
            .env("KELP_TELEMETRY", "local")
            .args(["dev", "--base-port", "0", "--resp-port", "0", "--dir"])
            .arg(directory);
        let mut process = Process::start(command.stdout(Stdio::piped()))?;
        let output = process
            .child()
            .stdout
            .take()
            .expect("stdout was asked to be a pipe");
        let mut lines = BufReader::new(output).lines();
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.starts_with("ready")));
        ensure!(is_ready, "the cluster did not become ready");
        // Reads on, so that the cluster never waits for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let file = std::fs::read_to_string(directory.join("cluster.json"))?;
        let file: ClusterFile = serde_json::from_str(&file).context("cluster.json")?;
        Ok(Self {
            kelp,
            directory: directory.to_owned(),
            nodes: file.nodes,
            _process: process,
        })
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The HTTP address of each node.
    pub(super) fn http(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.http.clone()).collect()
    }

    /// A command of `kelp` that knows the nodes.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let clients: Vec<_> = self.nodes.iter().map(|node| node.client.as_str()).collect();
        let mut command = Command::new(&self.kelp);
        command
            .env("KELP_ENDPOINTS", clients.join(","))
            .args(arguments);
        command
    }

    pub(super) fn leader(&self) -> Result<u16> {
        let text = process::output(&mut self.command(&["status", "-o", "json"]))?;
        let status: Status = serde_json::from_str(&text).context("kelp status")?;
        status.leader.context("no leader")
    }

    /// Starts or kills a node.
    pub(super) fn node(&self, action: &str, node: u16) -> Result<()> {
        let number = node.to_string();
        let mut command = self.command(&["dev", "node", action, &number, "--dir"]);
        process::output(command.arg(&self.directory)).map(drop)
    }

    /// Has `promtool` look at the names and texts of each node's metrics.
    pub(super) fn check_metrics(&self) -> Result<()> {
        for address in self.http() {
            let url = format!("http://{address}/metrics");
            let page = ureq::get(&url).call()?.body_mut().read_to_string()?;
            let mut promtool = Command::new("promtool")
                .args(["check", "metrics"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .context("cannot start promtool")?;
            let mut input = promtool.stdin.take().expect("stdin was asked to be a pipe");
            input.write_all(page.as_bytes())?;
            drop(input);
            let output = promtool.wait_with_output()?;
            if !output.status.success() {
                bail!("{url}: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
        Ok(())
    }
}
