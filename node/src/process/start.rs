//! `kelp start`: one node, from checked settings to its graceful end.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use kelp_client::TokioTransport;
use kelp_raft::{ClusterId, Member, NodeId, Timing};
use kelp_seams::{Clock, OsRng, SystemClock, ThreadExecutor};
use kelp_storage::{OpenError, RealFs, Seams};
use rustix::process::Signal;
use tokio::net::unix::pipe;
use tokio::runtime::Builder;
use tokio::signal::unix::{self, SignalKind};

use crate::certs::Identity;
use crate::cli::failure::{Exit, Failure, directory_hint};
use crate::config::{MemberSettings, NodeSettings};
use crate::descriptors;
use crate::node::{Node, NodeLimits, NodeOptions, StartError};
use crate::observe::logs;
use crate::tls::{ClientAuth, PortTls, TlsMaterial};

use super::files;

/// Requests take half of the cores; the log writer, the applier and the kernel's sockets take the
/// rest. More workers only wake each other: docs/benchmarks/etcd.md.
const CORES_PER_WORKER: usize = 2;

/// When the supervisor is gone nobody waits for a handover.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);
/// A directory with it holds, or is about to hold, the data of a node.
const IDENTITY_FILE: &str = "IDENTITY";
/// What a client may ask for in the TLS handshake of the client port.
const CLIENT_ALPN: &[&[u8]] = &[b"kelp/1"];
/// What a browser or Prometheus asks for in the TLS handshake of the HTTP port.
const HTTP_ALPN: &[&[u8]] = &[b"http/1.1"];

/// Runs one node until a signal ends it, the parent goes away, or it fails.
///
/// # Errors
/// `Usage` for unusable certificates or members, `Unavailable` for a taken port, `Refused` for a
/// data directory that is not this node's, in use or not writable.
pub fn run(settings: &NodeSettings, parent: Option<u32>) -> Result<Exit, Failure> {
    if let Some(parent) = parent {
        die_with(parent)?;
    }
    logs::init(settings.log_format, &settings.log)
        .map_err(|error| Failure::caused(Exit::Usage, &error))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads((cores / CORES_PER_WORKER).max(1))
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Refused, format!("cannot start: {error}")))?;
    let end = runtime.block_on(serve(settings, parent.is_some()));
    // A disk that hangs must not keep the process: what had to be closed is closed.
    runtime.shutdown_background();
    end
}

/// Asks the kernel to kill this process when its parent ends: a process that a debugger or a test
/// has halted cannot see its pipe close.
fn die_with(parent: u32) -> Result<(), Failure> {
    let refused = |error: io::Error| Failure::new(Exit::Refused, format!("--parent: {error}"));
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| refused(error.into()))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if now == Some(parent) {
        Ok(())
    } else {
        Err(refused(io::Error::other("the parent is gone already")))
    }
}

async fn serve(settings: &NodeSettings, has_parent: bool) -> Result<Exit, Failure> {
    let mut ends = Ends::new(has_parent)
        .map_err(|error| Failure::new(Exit::Refused, format!("cannot start: {error}")))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let options = node_options(settings, Arc::clone(&clock))?;
    let (node, cluster) = (options.node, options.cluster);
    let rng = OsRng::open()
        .map_err(|error| Failure::new(Exit::Refused, format!("/dev/urandom: {error}")))?;
    let seams = Seams {
        vfs: Arc::new(RealFs),
        executor: Arc::new(ThreadExecutor::new(Arc::clone(&clock))),
        rng: Arc::new(rng),
        clock,
    };
    let running = tokio::select! {
        started = Node::start(options, seams, Arc::new(TokioTransport)) => {
            started.map_err(|error| start_failure(&error))?
        }
        end = ends.next() => return Ok(end.exit()),
    };
    let addresses = running.addresses();
    tracing::info!(
        %node,
        %cluster,
        client = %addresses.client,
        peer = %addresses.peer,
        http = %addresses.http,
        resp = addresses.resp.map(tracing::field::display),
        "node serves"
    );
    tokio::select! {
        end = ends.next() => {
            tracing::info!(?end, "node stops");
            tokio::select! {
                () = running.stop(end.grace(settings.stop_grace)) => {}
                _ = ends.signal() => tracing::warn!("node ends at once: asked twice"),
            }
            Ok(end.exit())
        }
        reason = running.failed() => {
            Err(Failure::new(Exit::Refused, format!("the node cannot go on: {reason}")))
        }
    }
}

/// What ends a node from outside.
struct Ends {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    parent: Option<pipe::Receiver>,
}

/// Which of them it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Terminated,
    Interrupted,
    ParentGone,
}

impl End {
    fn exit(self) -> Exit {
        match self {
            Self::Terminated | Self::ParentGone => Exit::Done,
            Self::Interrupted => Exit::Interrupted,
        }
    }

    fn grace(self, wanted: Duration) -> Duration {
        match self {
            Self::Terminated | Self::Interrupted => wanted,
            Self::ParentGone => wanted.min(ORPHAN_GRACE),
        }
    }
}

impl Ends {
    fn new(has_parent: bool) -> io::Result<Self> {
        let parent = if has_parent {
            let input = io::stdin().as_fd().try_clone_to_owned()?;
            Some(pipe::Receiver::from_owned_fd(input)?)
        } else {
            None
        };
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            parent,
        })
    }

    async fn next(&mut self) -> End {
        let parent = self.parent.take();
        let parent_gone = async {
            match &parent {
                Some(pipe) => closed(pipe).await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            end = self.signal() => end,
            () = parent_gone => End::ParentGone,
        };
        self.parent = parent;
        end
    }

    async fn signal(&mut self) -> End {
        tokio::select! {
            _ = self.terminate.recv() => End::Terminated,
            _ = self.interrupt.recv() => End::Interrupted,
        }
    }
}

/// Waits until the other end of the pipe is gone; what comes through it means nothing.
async fn closed(pipe: &pipe::Receiver) {
    let mut bytes = [0; 64];
    loop {
        if pipe.readable().await.is_err() {
            return;
        }
        match pipe.try_read(&mut bytes) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
            Ok(_) | Err(_) => {}
        }
    }
}

/// What the node is given: the settings, and the identity that its certificate states.
fn node_options(settings: &NodeSettings, clock: Arc<dyn Clock>) -> Result<NodeOptions, Failure> {
    let material = TlsMaterial::load(&settings.certs, clock).map_err(|error| {
        Failure::caused(Exit::Usage, &error).hint(
            "give the bundle of this node with --certs; `kelp certs issue --node N` makes one",
        )
    })?;
    let Identity::Node(cluster, node) = material.summary().identity else {
        return Err(Failure::usage(format!(
            "{}: not the certificate of a node: `kelp certs issue --node N` makes one",
            settings.certs.display()
        )));
    };
    let port = |listener, alpn| {
        let plaintext = settings.allows_plaintext(listener);
        let auth = if plaintext {
            ClientAuth::Optional
        } else {
            ClientAuth::Required
        };
        PortTls::new(&material, auth, alpn, plaintext)
            .map_err(|error| Failure::caused(Exit::Usage, &error))
    };
    Ok(NodeOptions {
        node,
        cluster,
        directory: settings.directory.clone(),
        client: settings.client,
        peer: settings.peer,
        http: settings.http,
        resp: settings.resp,
        members: members(settings, node, cluster)?,
        timing: Timing {
            heartbeat: settings.heartbeat,
            election_min: settings.election_min,
            election_max: settings.election_max,
        },
        telemetry: settings.telemetry,
        client_tls: port(settings.client, CLIENT_ALPN)?,
        http_tls: port(settings.http, HTTP_ALPN)?,
        // Redis clients ask for no protocol. Without a listener the answer is never needed.
        resp_tls: port(settings.resp.unwrap_or(settings.client), &[])?,
        limits: NodeLimits {
            connection_count_max: descriptors::prepare(NodeLimits::default().connection_count_max),
            ..NodeLimits::default()
        },
        material,
    })
}

/// The members that were named. Only a node that has data already may go without: on an empty
/// directory it would have to guess, and two that guess make two histories of one cluster.
fn members(
    settings: &NodeSettings,
    node: NodeId,
    cluster: ClusterId,
) -> Result<BTreeMap<NodeId, Member>, Failure> {
    let members: BTreeMap<NodeId, Member> = settings
        .members
        .iter()
        .map(|member| (NodeId::new(member.id), member_of(member)))
        .collect();
    if members.is_empty() {
        if files::exists(&settings.directory.join(IDENTITY_FILE)) {
            return Ok(members);
        }
        return Err(Failure::usage(format!(
            "{} holds no data yet, and nothing says who the members are: name all first ones on \
             each of them, as in --join A:4801,B:4801,C:4801; --join {} founds a cluster of this \
             node alone",
            settings.directory.display(),
            settings.peer
        )));
    }
    let count = members.len();
    let own = settings.members.iter().find(|own| own.id == node.get());
    let Some(own) = own else {
        return Err(Failure::usage(format!(
            "the certificate is that of node {node} of cluster {cluster}, and --join or --member \
             names {count} members without it: name all first members on each of them"
        )));
    };
    let differences = settings.differences(own);
    if differences.is_empty() {
        return Ok(members);
    }
    Err(Failure::usage(format!(
        "--join or --member describes node {node} otherwise than its own options: {}; make them \
         agree (0.0.0.0 listens on every address of this host)",
        differences.join(", ")
    )))
}

fn member_of(settings: &MemberSettings) -> Member {
    Member {
        name: settings.name.clone(),
        peer: settings.peer.clone(),
        client: settings.client.clone(),
        http: settings.http.clone(),
        voter: true,
    }
}

/// The exit code and the next step for each way in which a node does not start.
fn start_failure(error: &StartError) -> Failure {
    match error {
        StartError::Listen { source, port, .. } => match source.kind() {
            io::ErrorKind::AddrInUse => Failure::caused(Exit::Unavailable, error).hint(format!(
                "stop the program that uses it, or choose another with --{port}"
            )),
            io::ErrorKind::PermissionDenied => Failure::caused(Exit::Usage, error)
                .hint(format!("choose a port above 1023 with --{port}")),
            _ => Failure::caused(Exit::Usage, error)
                .hint(format!("choose an address of this machine with --{port}")),
        },
        StartError::Directory(OpenError::Locked { .. }) => Failure::caused(Exit::Refused, error)
            .hint("stop the other process, or choose another directory with --dir"),
        StartError::Directory(OpenError::NotADatabase { .. }) => {
            Failure::caused(Exit::Refused, error)
                .hint("choose an empty or absent directory with --dir")
        }
        StartError::Directory(OpenError::Io { source, .. }) => {
            Failure::caused(Exit::Refused, error).hint(directory_hint(source.kind()))
        }
        StartError::Raft(kelp_raft::StartError::ForeignData { .. }) => {
            Failure::caused(Exit::Refused, error).hint(
                "give this node its own directory with --dir, or the certificates of that one",
            )
        }
        StartError::Raft(kelp_raft::StartError::Timing(_)) | StartError::Tls(_) => {
            Failure::caused(Exit::Usage, error)
        }
        _ => Failure::caused(Exit::Refused, error),
    }
}

#[cfg(test)]
mod tests;
