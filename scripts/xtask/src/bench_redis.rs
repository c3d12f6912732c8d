//! Redis and a one-node Kelp under the same load of `redis-benchmark`, on this machine.
//!
//! Both write every command to the disk before they answer: Redis with `appendonly yes` and
//! `appendfsync always`, Kelp as always. The data of both lies in one directory, so on one disk. In
//! each round both are loaded with every kind of command, and the order changes from round to round
//! (A B, B A, ...), so that a machine that grows slower wrongs nobody. The median of the rounds
//! counts.

mod figures;
mod options;
mod servers;

use std::path::Path;

use figures::{Figures, Kind};
use options::Options;
use servers::Server;

/// One line for the list of chores.
pub(crate) const HELP: &str = "compare Kelp with Redis by redis-benchmark";

/// Runs the comparison and prints its table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let Some(options) = Options::read(arguments)? else {
        print!("{}", options::USAGE);
        return Ok(());
    };
    std::fs::create_dir_all(&options.directory)?;
    let kelp = Server::start_kelp(Path::new("target/release/kelp"), &options.directory)?;
    let redis = Server::start_redis(&options.directory)?;
    let servers = [kelp, redis];
    let mut figures = Figures::default();
    for round in 0..options.rounds {
        for pipeline in &options.pipelines {
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for place in order {
                for (kind, rate) in servers[place].load(&options, *pipeline)? {
                    figures.add(Kind::new(&kind, *pipeline), place, rate);
                }
            }
        }
        eprintln!("round {} of {} is done", round + 1, options.rounds);
    }
    print!("{}", figures.table());
    Ok(())
}
