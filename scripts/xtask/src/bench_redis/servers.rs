//! The two servers under load, each a child of this process that ends with it.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::figures;
use super::options::Options;

/// What is compared.
const TESTS: &str = "set,get,incr,mset";

/// Time for a server to answer; both need far less.
const START_TIME_MAX: Duration = Duration::from_mins(1);

/// A server that answers at `port`.
pub(super) struct Server {
    name: &'static str,
    child: Child,
    port: u16,
}

impl Server {
    /// One node, as `kelp dev` starts it.
    pub(super) fn start_kelp(program: &Path, directory: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(program);
        command
            .args(["dev", "--nodes", "1", "--base-port", "0", "--resp-port"])
            .arg(port.to_string())
            .arg("--dir")
            .arg(fresh(directory, "kelp")?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("kelp dev")?;
        let output = child
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
        thread::spawn(move || lines.for_each(drop));
        Self::answering("kelp", child, port)
    }

    /// A server that syncs every command, as Kelp does.
    pub(super) fn start_redis(directory: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--port", &port.to_string()])
            .arg("--dir")
            .arg(fresh(directory, "redis")?)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = command.spawn().context("redis-server")?;
        Self::answering("redis", child, port)
    }

    fn answering(name: &'static str, child: Child, port: u16) -> Result<Self> {
        let server = Self { name, child, port };
        let begun = Instant::now();
        while begun.elapsed() < START_TIME_MAX {
            let mut ping = Command::new("redis-cli");
            ping.args(["-p", &port.to_string(), "ping"]);
            let answer = ping.output().context("redis-cli")?;
            if answer.stdout.starts_with(b"PONG") {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{name} does not answer");
    }

    /// Loads the server with every kind of command; name and rate of each.
    pub(super) fn load(&self, options: &Options, pipeline: u32) -> Result<Vec<(String, f64)>> {
        let requests = options.requests.saturating_mul(pipeline);
        let mut command = Command::new("redis-benchmark");
        command.args(["-t", TESTS, "--csv"]);
        for (flag, number) in [
            ("-p", u32::from(self.port)),
            ("-c", options.clients),
            ("-n", requests),
            ("-P", pipeline),
            ("-d", options.value_bytes),
            ("-r", options.keys),
        ] {
            command.arg(flag).arg(number.to_string());
        }
        let output = command.output().context("redis-benchmark")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rates = figures::parse(&text);
        let asked = TESTS.split(',').count();
        ensure!(
            output.status.success() && rates.len() == asked,
            "redis-benchmark against {} gave:\n{text}{}",
            self.name,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(rates)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The parent of the nodes takes them with it: each ends when its pipe closes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An empty directory of this name.
fn fresh(directory: &Path, name: &str) -> Result<std::path::PathBuf> {
    let path = std::path::absolute(directory.join(name))?;
    if path.exists() {
        std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// A port that nobody listens on now.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
