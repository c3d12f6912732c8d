//! Load of every kind that the dashboards show.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::cluster::Cluster;
use super::process::Process;

/// Pause between two rounds of the rarer operations.
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// A Redis node that does not answer for so long is down.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// A value, and a line that is none; docs/formats/heartbeat.md has the layout.
const TELEMETRY: &[u8] = b"\xa1\x05\x00\x12queue.depth=3\nlies";

/// Load that runs.
pub(super) struct Load {
    bench: Process,
    others: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

/// Loads the cluster through all its nodes until it is told to stop, at most for so long.
pub(super) fn start(cluster: &Cluster, limit: Duration) -> Result<Load> {
    let limit_text = format!("{}s", limit.as_secs());
    let mut bench = cluster.command(&["bench", "--clients", "6", "--pipeline", "8"]);
    bench.args(["--reads", "50", "--keys", "5000", "--value-bytes", "16KiB"]);
    bench
        .args(["--duration", &limit_text])
        .stdout(Stdio::null());
    let bench = Process::start(&mut bench)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut others = vec![rare_operations(cluster, Arc::clone(&stop))];
    for node in cluster.nodes() {
        let (address, stopped) = (node.peer.clone(), Arc::clone(&stop));
        others.push(std::thread::spawn(move || telemetry(&address, &stopped)));
        if let Some(address) = node.resp.clone() {
            let stopped = Arc::clone(&stop);
            others.push(std::thread::spawn(move || redis(&address, &stopped)));
        }
    }
    Ok(Load {
        bench,
        others,
        stop,
    })
}

impl Load {
    /// Ends all of it; an error if the largest part has ended by itself.
    pub(super) fn stop(mut self) -> Result<()> {
        let ended = self.bench.child().try_wait()?;
        drop(self.bench);
        self.stop.store(true, Ordering::Relaxed);
        for other in self.others {
            other.join().expect("a load ends without panic");
        }
        ensure!(ended.is_none(), "kelp bench ended: {ended:?}");
        Ok(())
    }
}

/// Scans, deletes, reads of absent keys and a request that is refused, each by the command line.
/// While a node is down some fail, which is wanted: dashboards show errors.
fn rare_operations(cluster: &Cluster, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    let too_long = "k".repeat(40_000);
    let arguments: [&[&str]; 5] = [
        &["put", "one", "1"],
        &["scan", "--limit", "10"],
        &["get", "absent"],
        &["del", "one"],
        &["get", &too_long],
    ];
    let mut commands: Vec<_> = arguments
        .iter()
        .map(|words| cluster.command(words))
        .collect();
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            for command in &mut commands {
                let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            }
            std::thread::sleep(ROUND_PAUSE);
        }
    })
}

/// Tells a node a value again and again, as a program beside it does.
fn telemetry(address: &str, stop: &AtomicBool) {
    let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
        return;
    };
    while !stop.load(Ordering::Relaxed) {
        let _ = socket.send_to(TELEMETRY, address);
        std::thread::sleep(ROUND_PAUSE);
    }
}

/// Speaks to one Redis port; connects again when the node was away.
fn redis(address: &str, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let _ = talk(address, stop);
        std::thread::sleep(ROUND_PAUSE);
    }
}

fn talk(address: &str, stop: &AtomicBool) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    let mut answer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        // The last one is an error: a number cannot be made of what the first one wrote.
        stream.write_all(b"SET redis word\r\nGET redis\r\nINCR counter\r\nINCR redis\r\n")?;
        let read = stream.read(&mut answer)?;
        ensure!(read > 0, "the node has closed the connection");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
