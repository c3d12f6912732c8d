//! `kelp dev`: a cluster on one machine in one command. Makes or resumes the directory,
//! certificates and ports, then hands over to the supervisor.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelp_raft::NodeId;
use kelp_seams::{OsRng, Rng, SystemClock};

use super::child::NodeProcess;
use super::cluster_file::{CLUSTER_FILE, ClusterFile, ClusterNode};
use super::files;
use super::layout::Layout;
use super::ports::{self, NodePorts};
use super::supervisor::{Signals, Started, Supervisor};
use crate::certs::{self, Authority, LEAF_LIFETIME, NodeRequest};
use crate::cli::console;
use crate::cli::failure::{Exit, Failure};

/// Electing takes a second; re-applying a long log after a restart takes more.
const READY_DEADLINE: Duration = Duration::from_mins(1);
/// More nodes than a cluster of voters should have.
pub(crate) const NODES_MAX: u16 = 9;
/// The base port when none is asked for.
pub(crate) const BASE_PORT: u16 = 4800;
/// The first Redis port when none is asked for.
pub(crate) const RESP_PORT: u16 = 6379;
/// How often free ports are looked for anew when another program took one in the meantime.
const FREE_PORT_ATTEMPTS: u32 = 4;
/// What the marker of a development directory says to whoever opens it.
const MARKER_TEXT: &[u8] = b"This directory belongs to `kelp dev`.\n";
/// The name in the client certificate.
const CLIENT_NAME: &str = "dev";

/// What `kelp dev` was asked for.
#[derive(Clone, Debug)]
pub struct DevOptions {
    /// How many nodes; what an existing directory has, or three.
    pub nodes: Option<u16>,
    /// Where the cluster lives; a temporary directory when absent.
    pub directory: Option<PathBuf>,
    /// The first port; 0 for any free ones.
    pub base_port: Option<u16>,
    /// The first Redis port; 0 for any free ones.
    pub resp_port: Option<u16>,
    /// Keep a temporary directory at the end.
    pub keep: bool,
    /// Start killed nodes again.
    pub restart: bool,
}

/// Runs a development cluster until a signal ends it.
///
/// # Errors
/// `Usage` for options that do not fit the directory, `Unavailable` for taken ports, `Refused` for
/// a directory that is in use or a node that does not start.
pub async fn run(options: &DevOptions) -> Result<Exit, Failure> {
    let mut signals = Signals::new().map_err(|error| broken(Path::new("/"), &error))?;
    let home = Home::open(options)?;
    let outcome = run_in(&home.layout, options, &mut signals).await;
    // After a failure the logs are worth reading; before the first start there are none.
    let has_logs = files::exists(&home.layout.root().join(CLUSTER_FILE));
    home.close(options.keep || (outcome.is_err() && has_logs));
    outcome
}

async fn run_in(
    layout: &Layout,
    options: &DevOptions,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let lock = files::lock(&layout.lock()).map_err(|error| broken(&layout.lock(), &error))?;
    let _lock = lock.ok_or_else(|| {
        Failure::new(
            Exit::Refused,
            format!(
                "another `kelp dev` runs in {}: stop it or choose another --dir",
                layout.root().display()
            ),
        )
    })?;
    let existing =
        ClusterFile::read(layout.root()).map_err(|error| broken(layout.root(), &error))?;
    if let Some(cluster) = existing {
        return supervise(layout, options, resume(cluster, options)?, signals)
            .await
            .map_err(|refusal| refusal.failure);
    }
    let mut attempts_left = if ports::are_any(options.base_port, options.resp_port) {
        FREE_PORT_ATTEMPTS
    } else {
        1
    };
    loop {
        let cluster = create(layout, options)?;
        let count = cluster.nodes.len();
        attempts_left -= 1;
        match supervise(layout, options, cluster, signals).await {
            Ok(exit) => return Ok(exit),
            Err(refusal) if refusal.port_taken && attempts_left > 0 => forget(layout, count)?,
            Err(refusal) => return Err(refusal.failure),
        }
    }
}

/// Removes a cluster that never served, so that it can be made anew on other ports. The directories
/// of its nodes were made, or were empty, when this process began.
fn forget(layout: &Layout, count: usize) -> Result<(), Failure> {
    for id in (1..).take(count) {
        let path = layout.node(id);
        files::remove_directory(&path).map_err(|error| broken(&path, &error))?;
    }
    files::remove(&layout.root().join(CLUSTER_FILE)).map_err(|error| broken(layout.root(), &error))
}

/// Why a cluster did not serve to its end.
struct Refusal {
    failure: Failure,
    port_taken: bool,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            port_taken: false,
        }
    }
}

/// Starts the nodes, says that they are ready, obeys until a signal comes, and ends them.
async fn supervise(
    layout: &Layout,
    options: &DevOptions,
    cluster: ClusterFile,
    signals: &mut Signals,
) -> Result<Exit, Refusal> {
    let processes = cluster
        .nodes
        .iter()
        .map(|node| NodeProcess::new(node.id, arguments(layout, node, &cluster), node.log.clone()))
        .collect();
    let mut supervisor = Supervisor::new(processes, cluster, layout.clone(), options.restart)
        .map_err(|error| broken(layout.root(), &error))?;
    let outcome = match supervisor.start_all(signals, READY_DEADLINE).await {
        Ok(Started::Ready { leader }) => match announce(supervisor.cluster(), layout, leader) {
            Ok(()) => supervisor.run(signals).await,
            Err(failure) => Err(failure),
        }
        .map_err(Refusal::from),
        Ok(Started::Ended(exit)) => Ok(exit),
        Ok(Started::PortTaken(failure)) => Err(Refusal {
            failure,
            port_taken: true,
        }),
        Err(failure) => Err(failure.into()),
    };
    let stopped = supervisor.stop_all(signals).await;
    stopped.map_err(|error| broken(layout.root(), &error))?;
    outcome
}

/// The directory of the cluster and who removes it.
struct Home {
    layout: Layout,
    temporary: bool,
}

impl Home {
    fn open(options: &DevOptions) -> Result<Self, Failure> {
        let (path, temporary) = if let Some(path) = &options.directory {
            files::create_directory(path).map_err(|error| Failure::directory(path, &error))?;
            claim(&Layout::new(path))?;
            (path.clone(), false)
        } else {
            let path = std::env::temp_dir().join(format!("kelp-dev-{:016x}", rng()?.next_u64()));
            files::create_new_directory(&path).map_err(|error| broken(&path, &error))?;
            claim(&Layout::new(&path))?;
            (path, true)
        };
        let path = files::absolute(&path).map_err(|error| broken(&path, &error))?;
        if path.to_str().is_none() {
            return Err(Failure::usage(format!(
                "{}: the path must be UTF-8, because cluster.json names it",
                path.display()
            )));
        }
        Ok(Self {
            layout: Layout::new(&path),
            temporary,
        })
    }

    /// Removes a temporary directory unless it is to stay.
    fn close(self, keep: bool) {
        if !self.temporary {
            return;
        }
        let path = self.layout.root();
        if keep {
            console::message(format!(
                "kept {path}: `kelp dev --dir {path}` resumes it",
                path = path.display()
            ));
        } else if let Err(error) = files::remove_directory(path) {
            console::message(format!("cannot remove {}: {error}", path.display()));
        }
    }
}

/// Marks an empty directory as that of a development cluster, and refuses one that holds anything
/// else than such a cluster: nothing of a stranger's may be taken over, let alone removed.
fn claim(layout: &Layout) -> Result<(), Failure> {
    let root = layout.root();
    if files::exists(&layout.marker()) || files::exists(&root.join(CLUSTER_FILE)) {
        return Ok(());
    }
    let names = files::list(root).map_err(|error| broken(root, &error))?;
    if let Some(name) = names.first() {
        return Err(Failure::new(
            Exit::Refused,
            format!(
                "{} holds {name} and no development cluster: give an empty or absent directory \
                 with --dir",
                root.display()
            ),
        ));
    }
    let marker = layout.marker();
    files::write_atomically(&marker, MARKER_TEXT).map_err(|error| Failure::directory(root, &error))
}

/// Takes the cluster as it was: its members know each other by their addresses.
fn resume(mut cluster: ClusterFile, options: &DevOptions) -> Result<ClusterFile, Failure> {
    let count = cluster.nodes.len();
    if options
        .nodes
        .is_some_and(|wanted| usize::from(wanted) != count)
    {
        return Err(Failure::usage(format!(
            "this directory holds a cluster of {count} nodes: \
             leave out --nodes or choose another --dir"
        )));
    }
    let mut ports = Vec::new();
    for node in &mut cluster.nodes {
        node.pid = None;
        ports.push(ports_of(node).ok_or_else(|| {
            Failure::usage("cluster.json does not name ports of this machine: choose another --dir")
        })?);
    }
    // Nodes that were made before there was a Redis port get one now.
    if ports.iter().any(|ports| ports.resp.is_none()) {
        let base = options.resp_port.unwrap_or(RESP_PORT);
        give_resp_ports(&mut cluster, &mut ports, base)?;
    }
    if !ports::are_as_wanted(&ports, options.base_port, options.resp_port) {
        return Err(Failure::usage(
            "this cluster keeps the ports that it was made with: leave out --base-port and \
             --resp-port",
        ));
    }
    ports::check_free(&ports)
        .map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))?;
    Ok(cluster)
}

fn ports_of(node: &ClusterNode) -> Option<NodePorts> {
    let port = |address: &str| address.strip_prefix("127.0.0.1:")?.parse().ok();
    Some(NodePorts {
        client: port(&node.client)?,
        peer: port(&node.peer)?,
        http: port(&node.http)?,
        resp: match &node.resp {
            Some(address) => Some(port(address)?),
            None => None,
        },
    })
}

/// Plans the Redis ports of nodes that have none.
fn give_resp_ports(
    cluster: &mut ClusterFile,
    ports: &mut [NodePorts],
    base: u16,
) -> Result<(), Failure> {
    ports::add_resp(ports, base, &rng()?).map_err(|error| Failure::usage(error.to_string()))?;
    for (node, ports) in cluster.nodes.iter_mut().zip(ports) {
        node.resp = ports.resp.map(|port| format!("127.0.0.1:{port}"));
    }
    Ok(())
}

/// Makes ports, certificates and directories. `cluster.json` comes last: a directory with it is
/// complete.
fn create(layout: &Layout, options: &DevOptions) -> Result<ClusterFile, Failure> {
    let count = options.nodes.unwrap_or(3);
    let rng = rng()?;
    let ports = match options.base_port.unwrap_or(BASE_PORT) {
        0 => ports::any_free(count, &rng),
        base => ports::from_base(base, count),
    };
    let resp_default = if options.base_port == Some(0) {
        0
    } else {
        RESP_PORT
    };
    let ports = ports.and_then(|mut ports| {
        ports::add_resp(&mut ports, options.resp_port.unwrap_or(resp_default), &rng)?;
        Ok(ports)
    });
    let ports = ports.map_err(|error| Failure::usage(error.to_string()))?;
    ports::check_free(&ports)
        .map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))?;
    let authority =
        certify(layout, count, &rng).map_err(|error| Failure::caused(Exit::Refused, &error))?;
    let mut nodes = Vec::new();
    for (id, ports) in (1..=count).zip(ports) {
        create_empty(&layout.node(id))?;
        nodes.push(ClusterNode {
            id,
            name: format!("n{id}"),
            pid: None,
            client: format!("127.0.0.1:{}", ports.client),
            resp: ports.resp.map(|port| format!("127.0.0.1:{port}")),
            peer: format!("127.0.0.1:{}", ports.peer),
            http: format!("127.0.0.1:{}", ports.http),
            data_dir: layout.data(id),
            log: layout.log(id),
        });
    }
    let cluster = ClusterFile {
        cluster_id: authority.cluster().to_string(),
        nodes,
    };
    cluster
        .write(layout.root())
        .map_err(|error| broken(layout.root(), &error))?;
    Ok(cluster)
}

/// Makes the directory of a node. One that an interrupted earlier start left is empty; data without
/// `cluster.json` is of a cluster that nobody can describe any more.
fn create_empty(path: &Path) -> Result<(), Failure> {
    files::create_directory(path).map_err(|error| broken(path, &error))?;
    let names = files::list(path).map_err(|error| broken(path, &error))?;
    if names.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Refused,
        format!(
            "{} holds the data of an earlier cluster whose {CLUSTER_FILE} is gone: bring it back, \
             or choose another --dir",
            path.display()
        ),
    ))
}

/// Makes the authority, or takes the one that an interrupted earlier start left, and all bundles
/// anew: nobody uses those of that start, because `cluster.json`, which completes the directory,
/// is not there yet.
fn certify(layout: &Layout, count: u16, rng: &dyn Rng) -> Result<Authority, certs::CertsError> {
    let clock = SystemClock::new();
    let directory = layout.authority();
    let authority = if files::exists(&directory.join(certs::AUTHORITY_KEY_FILE)) {
        Authority::open(&directory)?
    } else {
        certs::init_authority(&directory, &clock, rng)?
    };
    for id in 1..=count {
        let request = NodeRequest::local(NodeId::new(id));
        let bundle = authority.issue_node(&request, &clock, rng)?;
        bundle.replace(&layout.node_certs(id))?;
    }
    let bundle = authority.issue_client(CLIENT_NAME, LEAF_LIFETIME, &clock, rng)?;
    bundle.replace(&layout.client_certs())?;
    Ok(authority)
}

/// What the child gets behind `kelp start`.
fn arguments(layout: &Layout, node: &ClusterNode, cluster: &ClusterFile) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut add = |flag: &str, value: String| {
        arguments.push(format!("--{flag}"));
        arguments.push(value);
    };
    add("dir", node.data_dir.display().to_string());
    add("certs", layout.node_certs(node.id).display().to_string());
    add("name", node.name.clone());
    add("client", node.client.clone());
    add("peer", node.peer.clone());
    add("http", node.http.clone());
    if let Some(resp) = &node.resp {
        add("resp", resp.clone());
    }
    for member in &cluster.nodes {
        add(
            "member",
            format!(
                "id={},name={},peer={},client={},http={}",
                member.id, member.name, member.peer, member.client, member.http
            ),
        );
    }
    arguments
}

/// Prints `ready`, the endpoints and what to try next.
fn announce(cluster: &ClusterFile, layout: &Layout, leader: u16) -> Result<(), Failure> {
    let text = announcement(cluster, layout, leader, &program());
    match console::data(text.as_bytes()) {
        // Whoever read the first lines and went away still wants the cluster.
        Err(failure) if failure.exit == Exit::Done => Ok(()),
        other => other,
    }
}

fn announcement(cluster: &ClusterFile, layout: &Layout, leader: u16, program: &str) -> String {
    let mut lines = vec![
        "ready".to_owned(),
        format!(
            "cluster {} of {} nodes in {}",
            cluster.cluster_id,
            cluster.nodes.len(),
            layout.root().display()
        ),
    ];
    for node in &cluster.nodes {
        let role = if node.id == leader {
            "leader"
        } else {
            "follower"
        };
        lines.push(format!(
            "  node {} {role:<8}  client {}  redis {}  peer {}  http {}  pid {}",
            node.id,
            node.client,
            node.resp.as_deref().unwrap_or("-"),
            node.peer,
            node.http,
            node.pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
        ));
    }
    lines.push("try, in another terminal:".to_owned());
    lines.push(format!("  export KELP_ENDPOINTS={}", cluster.endpoints()));
    lines.push(format!("  {program} put greeting 'hello, kelp'"));
    lines.push(format!("  {program} get greeting"));
    lines.push(format!("  {program} status"));
    lines.push(format!(
        "  {program} dev node kill {leader} --dir {}",
        layout.root().display()
    ));
    lines.push("stop the cluster with Ctrl-C".to_owned());
    lines.join("\n") + "\n"
}

/// How the person who started this program would start it again.
fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    path.map_or_else(|| "kelp".to_owned(), |path| path.display().to_string())
}

fn rng() -> Result<OsRng, Failure> {
    OsRng::open().map_err(|error| broken(Path::new("/dev/urandom"), &error))
}

fn broken(path: &Path, error: &io::Error) -> Failure {
    Failure::file(Exit::Refused, path, error)
}

#[cfg(test)]
mod tests;
