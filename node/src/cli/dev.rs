//! `kelp dev`: arguments of the development cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};

use super::{Exit, Failure, client_runtime};
use crate::process::{Action, DevOptions, NODES_MAX, request, run_dev};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(super) struct DevArgs {
    #[command(subcommand)]
    command: Option<DevCommand>,
    /// How many nodes [default: 3, or what DIR holds]
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u16).range(1..=i64::from(NODES_MAX)),
    )]
    nodes: Option<u16>,
    /// Where the cluster lives; an existing one is resumed [default: a temporary directory, removed
    /// at the end]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// First port; node i uses PORT+10i for clients, +1 for peers, +2 for HTTP; 0 takes any free
    /// ones [default: 4800]
    #[arg(long, value_name = "PORT")]
    base_port: Option<u16>,
    /// First Redis port; node i uses PORT+i; 0 takes any free ones [default: 6379, or any free ones
    /// with --base-port 0]
    #[arg(long, value_name = "PORT")]
    resp_port: Option<u16>,
    /// Keep the temporary directory at the end
    #[arg(long)]
    keep: bool,
    /// Start a node again within a second when it was killed
    #[arg(long)]
    restart: bool,
}

const EXAMPLES: &str = "\
Every node is a process of its own, with certificates and a data directory, so it can be killed
like a real one. DIR/cluster.json names addresses, process ids and log files. Ctrl-C stops all
nodes.

Examples:
  kelp dev                                  three nodes on ports 4800 to 4822, nothing left behind
  kelp dev --dir ./demo                     the same, kept in ./demo and resumed the next time
  kelp dev --nodes 5 --base-port 0          five nodes on any free ports
  kelp dev node kill 2 --dir ./demo         kill -9 node 2; see what `kelp status` says
  kelp dev node start 2 --dir ./demo        bring it back";

#[derive(Debug, Subcommand)]
enum DevCommand {
    /// Start, stop or kill one node of a running development cluster
    Node {
        #[command(subcommand)]
        action: NodeAction,
    },
}

#[derive(Debug, Subcommand)]
enum NodeAction {
    /// Start a node that is down
    Start(NodeArgs),
    /// Stop a node gracefully; it stays down
    Stop(NodeArgs),
    /// Kill a node as `kill -9` does; it stays down unless the cluster runs with --restart
    Kill(NodeArgs),
}

#[derive(Debug, Args)]
struct NodeArgs {
    /// The node, from 1
    #[arg(value_name = "N")]
    node: u16,
    /// The directory of the running cluster, as `kelp dev` printed it
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

pub(super) fn run(args: DevArgs) -> Result<Exit, Failure> {
    // The supervisor's children die with the thread that started them: it is the main thread, which
    // lives longest.
    let runtime = client_runtime()?;
    match args.command {
        Some(DevCommand::Node { action }) => {
            let (action, args) = match action {
                NodeAction::Start(args) => (Action::Start, args),
                NodeAction::Stop(args) => (Action::Stop, args),
                NodeAction::Kill(args) => (Action::Kill, args),
            };
            runtime.block_on(request(&args.dir, action, args.node))?;
            Ok(Exit::Done)
        }
        None => runtime.block_on(run_dev(&DevOptions {
            nodes: args.nodes,
            directory: args.dir,
            base_port: args.base_port,
            resp_port: args.resp_port,
            keep: args.keep,
            restart: args.restart,
        })),
    }
}
