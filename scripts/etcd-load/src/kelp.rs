//! Three Kelp nodes on this machine, started by `kelp dev` and loaded by `kelp bench`.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

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
            .args(["dev", "--base-port", "0", "--resp-port", "0", "--dir"])
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
        let cluster: Value = serde_json::from_slice(&cluster)?;
        let nodes = cluster["nodes"]
            .as_array()
            .context("cluster.json has no nodes")?;
        let pid =
            |node: &Value| u32::try_from(node["pid"].as_u64().context("no pid")?).context("pid");
        let client = |node: &Value| {
            Ok(node["client"]
                .as_str()
                .context("no client address")?
                .to_owned())
        };
        Ok(Self {
            program: program.to_path_buf(),
            _parent: parent,
            nodes: nodes.iter().map(pid).collect::<Result<_>>()?,
            endpoints: nodes.iter().map(client).collect::<Result<_>>()?,
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
        let mut command = Command::new(&self.program);
        command
            .args([
                "bench",
                "--endpoints",
                &load.endpoints.join(","),
                "-o",
                "json",
            ])
            .args(["--clients", &load.connections.to_string()])
            .args([
                "--pipeline",
                &(load.outstanding / load.connections).to_string(),
            ])
            .args(["--value-bytes", &load.value_bytes.to_string()])
            .args(["--keys", &load.keys.to_string(), "--reads", "0"])
            .args(["--duration", &format!("{}s", load.duration.as_secs())])
            .stderr(Stdio::inherit());
        let start = Instant::now();
        let output = command
            .output()
            .with_context(|| format!("cannot start {command:?}"))?;
        ensure!(
            output.status.success(),
            "kelp bench ended with {}",
            output.status
        );
        let report: Value =
            serde_json::from_slice(&output.stdout).context("kelp bench printed no JSON")?;
        outcome(&report, start.elapsed()).with_context(|| format!("kelp bench printed {report}"))
    }
}

fn outcome(report: &Value, whole: Duration) -> Result<Outcome> {
    let latency = |name: &str| {
        report["latency_us"][name]
            .as_u64()
            .with_context(|| format!("no {name}"))
    };
    let seconds = |name: &str| report[name].as_f64().with_context(|| format!("no {name}"));
    ensure!(report["errors"].as_u64() == Some(0), "puts have failed");
    let elapsed = Duration::from_secs_f64(seconds("seconds")?);
    ensure!(elapsed <= whole, "kelp bench claims more time than it took");
    Ok(Outcome {
        operations: report["operations"].as_u64().context("no operations")?,
        elapsed,
        p50: latency("p50")?,
        p99: latency("p99")?,
        max: latency("max")?,
        cpu: Duration::from_secs_f64(seconds("cpu_seconds")?),
    })
}
