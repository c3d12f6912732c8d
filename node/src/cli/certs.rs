//! `kelp certs`: the authority of a cluster and the certificates of its nodes and clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use kelp_raft::NodeId;
use kelp_seams::{OsRng, Rng, SystemClock};

use super::{Exit, Failure, console};
use crate::certs::{Authority, CertsError, NodeRequest, init_authority};

/// A day, the unit in which lifetimes are given.
const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CertsArgs {
    #[command(subcommand)]
    command: CertsCommand,
}

const EXAMPLES: &str = "\
The authority is made once per cluster and its key never lies on a node. Each node gets a bundle
of three files: its certificate, its key and the certificate of the authority.

Examples:
  kelp certs init --ca-dir ca                      a new cluster: prints its id
  kelp certs issue --ca-dir ca --node 1 --out n1   the bundle of node 1: copy it to its host
  kelp certs issue --ca-dir ca --client app --out app   the bundle of a client";

#[derive(Debug, Subcommand)]
enum CertsCommand {
    /// Make the authority of a new cluster and print the cluster id
    Init {
        /// Where the authority's certificate and key are kept
        #[arg(long, value_name = "DIR")]
        ca_dir: PathBuf,
    },
    /// Issue the bundle of a node or of a client
    Issue(IssueArgs),
}

#[derive(Debug, Args)]
struct IssueArgs {
    /// Where the authority is
    #[arg(long, value_name = "DIR")]
    ca_dir: PathBuf,
    /// Where to write the bundle; nothing is overwritten
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The node that the certificate stands for, from 1
    #[arg(
        long,
        value_name = "N",
        value_parser = value_parser!(u16).range(1..),
        conflicts_with = "client",
        required_unless_present = "client",
    )]
    node: Option<u16>,
    /// The client that the certificate stands for: lower-case letters, digits and dashes
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// A DNS name or IP address by which clients reach the node; may be repeated
    #[arg(long, value_name = "HOST", requires = "node")]
    host: Vec<String>,
    /// How long the certificate is valid
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = 730,
        value_parser = value_parser!(u32).range(1..=7300),
    )]
    days: u32,
}

pub(super) fn run(args: CertsArgs) -> Result<Exit, Failure> {
    match args.command {
        CertsCommand::Init { ca_dir } => {
            let authority = init_authority(&ca_dir, &SystemClock::new(), &rng()?)
                .map_err(|error| refused(&error))?;
            console::data(format!("{}\n", authority.cluster()).as_bytes())?;
            console::message(format!(
                "made the authority in {dir}: keep {dir}/ca.key off the nodes; \
                 next: kelp certs issue --ca-dir {dir} --node 1 --out n1",
                dir = ca_dir.display()
            ));
            Ok(Exit::Done)
        }
        CertsCommand::Issue(args) => {
            issue(&args, &rng()?).map_err(|error| refused(&error))?;
            say_issued(&args.out);
            Ok(Exit::Done)
        }
    }
}

fn issue(args: &IssueArgs, rng: &dyn Rng) -> Result<(), CertsError> {
    let clock = SystemClock::new();
    let authority = Authority::open(&args.ca_dir)?;
    let lifetime = DAY * args.days;
    let bundle = match (args.node, &args.client) {
        (Some(node), _) => {
            let mut request = NodeRequest::local(NodeId::new(node));
            request.hosts.extend(args.host.iter().cloned());
            request.lifetime = lifetime;
            authority.issue_node(&request, &clock, rng)?
        }
        (None, client) => {
            let name = client.as_deref().unwrap_or_default();
            authority.issue_client(name, lifetime, &clock, rng)?
        }
    };
    bundle.write(&args.out)
}

fn rng() -> Result<OsRng, Failure> {
    OsRng::open().map_err(|error| Failure::file(Exit::Refused, Path::new("/dev/urandom"), &error))
}

fn say_issued(out: &Path) {
    console::message(format!("wrote the bundle to {}", out.display()));
}

fn refused(error: &CertsError) -> Failure {
    Failure::caused(Exit::Refused, error)
}
