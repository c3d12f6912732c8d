//! Three Kelp nodes on this machine, started by `kelp dev` and loaded by `kelp bench`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::load::{Load, Outcome};
use crate::processes::{self, Process};

/// The running nodes.
pub(crate) struct Kelp {
    program: PathBuf,
    /// `kelp dev`; the nodes are its children and end with it.
    _parent: Process,
    nodes: Vec<u32>,
    endpoints: Vec<String>,
}

impl Kelp {
    /// Starts three nodes with their data below `directory` and waits until they are ready.
    pub(crate) fn start(program: &Path, directory: &Path) -> Result<Self> {
        let data = directory.join("kelp");
        let mut command = Command::new(program);
        command
            .args(["dev", "--base-port", "0", "--dir"])
            .arg(&data);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut parent = Process::start(&mut command)?;
        let output = parent
            .child()
            .stdout
            .take()
            .context("stdout was asked to be a pipe")?;
        let mut lines = BufReader::new(output).lines();
        let ready = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.starts_with("ready"));
        ensure!(ready, "kelp dev ended before it was ready");
        // Reads on, so that `kelp dev` never waits for room in the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let cluster = std::fs::read(data.join("cluster.json")).context("cluster.json")?;
        let cluster: Cluster = serde_json::from_slice(&cluster).context("cluster.json")?;
        let pids = cluster
            .nodes
            .iter()
            .map(|node| node.pid.context("a node is down"));
        Ok(Self {
            program: program.to_path_buf(),
            _parent: parent,
            nodes: pids.collect::<Result<_>>()?,
            endpoints: cluster.nodes.into_iter().map(|node| node.client).collect(),
        })
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.endpoints.clone()
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        self.nodes
            .iter()
            .map(|&node| processes::cpu_time(node))
            .sum()
    }

    /// Runs `kelp bench` with the same load.
    pub(crate) fn load(&self, load: &Load) -> Result<Outcome> {
        let pipeline = load.outstanding / load.connections;
        let options = [
            ("--endpoints", load.endpoints.join(",")),
            ("--clients", load.connections.to_string()),
            ("--pipeline", pipeline.to_string()),
            ("--value-bytes", load.value_bytes.to_string()),
            ("--keys", load.keys.to_string()),
            ("--reads", "0".to_owned()),
            ("--duration", format!("{}s", load.duration.as_secs())),
            ("--output", "json".to_owned()),
        ];
        let mut command = Command::new(&self.program);
        command.arg("bench").stderr(Stdio::inherit());
        for (name, value) in options {
            command.args([name, &value]);
        }
        let output = command.output().context("cannot start kelp bench")?;
        let status = output.status;
        ensure!(status.success(), "kelp bench ended with {status}");
        let report: Report =
            serde_json::from_slice(&output.stdout).context("kelp bench printed no report")?;
        ensure!(report.errors == 0, "{} puts have failed", report.errors);
        Ok(Outcome {
            operations: report.operations,
            elapsed: Duration::from_secs_f64(report.seconds),
            p50: report.latency.p50,
            p99: report.latency.p99,
            max: report.latency.max,
            cpu: Duration::from_secs_f64(report.cpu_seconds),
        })
    }
}

/// `cluster.json`, as far as it is needed here.
#[derive(Deserialize)]
struct Cluster {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    pid: Option<u32>,
    client: String,
}

/// What `kelp bench` prints as JSON, as far as it is needed here.
#[derive(Deserialize)]
struct Report {
    seconds: f64,
    operations: u64,
    errors: u64,
    cpu_seconds: f64,
    #[serde(rename = "latency_us")]
    latency: Latencies,
}

#[derive(Deserialize)]
struct Latencies {
    p50: f64,
    p99: f64,
    max: f64,
}
