//! Three etcd nodes on this machine, with etcd's own defaults.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::load::{self, Load};
use crate::processes::{self, Process};

/// From the start of the first process to the first put; etcd needs one or two seconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The running nodes.
pub(crate) struct Etcd {
    nodes: Vec<Process>,
    endpoints: Vec<String>,
}

impl Etcd {
    /// Starts three nodes with their data below `directory` and waits until every one takes a put.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let addresses = free_addresses(6)?;
        let (clients, peers) = addresses.split_at(3);
        let cluster: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(node, peer)| format!("n{node}=http://{peer}"))
            .collect();
        let mut nodes = Vec::new();
        for (node, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let name = format!("n{node}");
            let log = std::fs::File::create(directory.join(format!("{name}.log")))?;
            let mut command = Command::new("etcd");
            command
                .args(["--name", &name, "--initial-cluster", &cluster.join(",")])
                .args([
                    "--initial-cluster-state",
                    "new",
                    "--log-level",
                    "warn",
                    "--logger",
                    "zap",
                ])
                .arg("--data-dir")
                .arg(directory.join(&name))
                .args(["--listen-client-urls", &format!("http://{client}")])
                .args(["--advertise-client-urls", &format!("http://{client}")])
                .args(["--listen-peer-urls", &format!("http://{peer}")])
                .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log);
            let process = Process::start(&mut command);
            nodes.push(process.context("etcd comes with Debian's package etcd-server")?);
        }
        let etcd = Self {
            nodes,
            endpoints: clients.to_vec(),
        };
        etcd.wait_until_up()?;
        Ok(etcd)
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.endpoints.clone()
    }

    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        self.nodes
            .iter()
            .map(|node| processes::cpu_time(node.id()))
            .sum()
    }

    fn wait_until_up(&self) -> Result<()> {
        let start = Instant::now();
        let probe = Load {
            endpoints: self.endpoints(),
            connections: self.endpoints.len(),
            outstanding: self.endpoints.len(),
            value_bytes: 1,
            keys: 1,
            duration: Duration::from_millis(100),
        };
        loop {
            match load::run(&probe) {
                Ok(_) => return Ok(()),
                Err(error) if start.elapsed() > START_TIMEOUT => {
                    bail!(error.context("etcd does not take puts"))
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// Addresses on loopback that were free a moment ago.
fn free_addresses(count: usize) -> Result<Vec<String>> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()?;
    listeners
        .iter()
        .map(|listener| Ok(listener.local_addr()?.to_string()))
        .collect()
}
