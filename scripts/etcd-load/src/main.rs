//! Loads etcd and Kelp in turn, in the same way, and compares them.
//!
//! Both run three nodes on this machine, each round on fresh data, in the order etcd, Kelp, Kelp,
//! etcd, so that a machine that gets slower or faster meanwhile favours none. The load is closed:
//! so many puts are always outstanding, over so many connections, spread over all three nodes. etcd
//! is loaded over gRPC by `load`, Kelp by its own `kelp bench`; both are one thread beside the
//! nodes, and their CPU time is printed too.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark starts processes, reads clocks and opens sockets; no seam of Kelp stands around it"
)]

mod etcd;
mod kelp;
mod load;
mod processes;
mod put;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use load::{Load, Outcome};
use report::{Round, System};

#[derive(Parser)]
#[command(about)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Loads an etcd cluster that runs already and prints one JSON object.
    Etcd {
        /// Client addresses of the nodes, as host:port.
        #[arg(long, value_delimiter = ',', default_value = "127.0.0.1:2379")]
        endpoints: Vec<String>,
        /// Puts that are always outstanding, over all connections together.
        #[arg(long, default_value_t = 64)]
        outstanding: usize,
        #[command(flatten)]
        shape: Shape,
    },
    /// Starts etcd and Kelp in turn, loads both, and prints the ratio.
    Compare {
        /// The `kelp` program, built for release.
        #[arg(long, default_value = "target/release/kelp")]
        kelp: PathBuf,
        /// Folder for the data of all nodes; emptied before and after.
        #[arg(long, default_value = "target/bench-etcd")]
        directory: PathBuf,
        /// Puts that are always outstanding; one comparison for each number.
        #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
        outstanding: Vec<usize>,
        /// Seconds of load before each measurement, not counted.
        #[arg(long, default_value_t = 2)]
        warm_up: u64,
        #[command(flatten)]
        shape: Shape,
    },
}

/// What every load has, whatever it loads.
#[derive(Args, Clone, Copy)]
struct Shape {
    /// Connections, spread over the nodes in turn.
    #[arg(long, default_value_t = 8)]
    connections: usize,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// Different keys, written in random order.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

impl Shape {
    fn load(self, endpoints: Vec<String>, outstanding: usize, seconds: u64) -> Load {
        Load {
            endpoints,
            outstanding,
            connections: self.connections,
            value_bytes: self.value_bytes,
            keys: self.keys,
            duration: Duration::from_secs(seconds),
        }
    }
}

fn main() -> Result<()> {
    match Arguments::parse().action {
        Action::Etcd {
            endpoints,
            outstanding,
            shape,
        } => {
            let outcome = load::run(&shape.load(endpoints, outstanding, shape.seconds))?;
            println!("{}", outcome.to_json());
        }
        Action::Compare {
            kelp,
            directory,
            outstanding,
            warm_up,
            shape,
        } => {
            for outstanding in outstanding {
                let mut rounds = Vec::new();
                for system in [System::Etcd, System::Kelp, System::Kelp, System::Etcd] {
                    let cluster = Cluster::start(system, &kelp, &directory)?;
                    cluster.load(&shape.load(cluster.endpoints(), outstanding, warm_up))?;
                    let cpu_before = cluster.cpu_time()?;
                    let load = shape.load(cluster.endpoints(), outstanding, shape.seconds);
                    let outcome = cluster.load(&load)?;
                    let nodes_cpu = cluster.cpu_time()?.saturating_sub(cpu_before);
                    rounds.push(Round {
                        system,
                        outcome,
                        nodes_cpu,
                    });
                    cluster.stop(&directory)?;
                }
                report::print(outstanding, shape, &rounds);
            }
        }
    }
    Ok(())
}

/// Three running nodes of either system.
enum Cluster {
    Etcd(etcd::Etcd),
    Kelp(kelp::Kelp),
}

impl Cluster {
    fn start(
        system: System,
        program: &std::path::Path,
        directory: &std::path::Path,
    ) -> Result<Self> {
        processes::remove(directory)?;
        std::fs::create_dir_all(directory)?;
        Ok(match system {
            System::Etcd => Self::Etcd(etcd::Etcd::start(directory)?),
            System::Kelp => Self::Kelp(kelp::Kelp::start(program, directory)?),
        })
    }

    fn endpoints(&self) -> Vec<String> {
        match self {
            Self::Etcd(cluster) => cluster.endpoints(),
            Self::Kelp(cluster) => cluster.endpoints(),
        }
    }

    fn load(&self, load: &Load) -> Result<Outcome> {
        match self {
            Self::Etcd(_) => load::run(load),
            Self::Kelp(cluster) => cluster.load(load),
        }
    }

    /// CPU time that all nodes together have used until now.
    fn cpu_time(&self) -> Result<Duration> {
        match self {
            Self::Etcd(cluster) => cluster.cpu_time(),
            Self::Kelp(cluster) => cluster.cpu_time(),
        }
    }

    fn stop(self, directory: &std::path::Path) -> Result<()> {
        drop(self);
        processes::remove(directory)
    }
}
