//! One node, assembled: storage, Raft, peers, the way of writes, and the ports.
//!
//! The order of the start is part of the safety argument. The data directory is locked and bound
//! to this node's identity first; the boot is raised, and on disk, before any port opens; the
//! committed part of the log is applied before Raft starts; peers are let in before clients.
//!
//! The stop hands over first and drains then: readiness off, the leadership to another node, no new
//! clients, answers to what is in flight through the new leader, Raft, peers, storage. Each step
//! has a share of the grace period; what is not done by then is left to crash safety.

mod addresses;
mod bootstrap;
mod client_ports;
mod cluster_view;
mod error;
mod peer_service;
mod readiness;
mod stop;
mod vital;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kelp_client::{Listener, Transport};
use kelp_raft::{
    ClusterId, GroupId, LogRetention, Member, NodeId, Raft, RaftOptions, RaftParts, StateReader,
    Timing,
};
use kelp_seams::{Clock, Executor};
use kelp_storage::{Database, DatabaseOptions, Seams};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client_port::{Budget, ClusterView, PortContext, Seats};
use crate::descriptors::STRANGER_COUNT_MAX;
use crate::heartbeat::{HeartbeatParts, Heartbeats, NodeSurroundings};
use crate::leadership::Leadership;
use crate::observe::Observer;
use crate::peer::{PeerLimits, PeerLinks, PeerOptions, PeerServer, emptied_text};
use crate::proposer::outbox::OutboxLimits;
use crate::proposer::packer::Packer;
use crate::proposer::sender::{self, SenderParts};
use crate::proposer::{Proposer, announce};
use crate::redis_port::Cursors;
use crate::tls::{PeerTls, PortTls, TlsMaterial};

use client_ports::ClientPorts;
use cluster_view::NodeView;
use peer_service::PeerService;
use readiness::Readiness;
use vital::Vitals;

pub use crate::heartbeat::TelemetryMode;
pub use error::{Port, StartError};

/// The one Raft group that there is today.
const GROUP: GroupId = GroupId::new(0);

/// What one node is given.
pub struct NodeOptions {
    /// Identity within the cluster, as in the certificate.
    pub node: NodeId,
    /// The cluster, as in the certificate.
    pub cluster: ClusterId,
    /// The data directory; made if it is absent.
    pub directory: PathBuf,
    /// Where clients are listened for; port 0 takes any free one.
    pub client: SocketAddr,
    /// Where peers are listened for.
    pub peer: SocketAddr,
    /// Where metrics and health are served.
    pub http: SocketAddr,
    /// Where Redis clients are listened for, if they are.
    pub resp: Option<SocketAddr>,
    /// The first members of the cluster; the same on all of them. Once there is a log only their
    /// addresses count, and it may be empty; without a log an empty one founds nothing.
    pub members: BTreeMap<NodeId, Member>,
    /// Raft's timing; the same on all members.
    pub timing: Timing,
    /// Certificate and key of this node.
    pub material: TlsMaterial,
    /// How the client port answers new connections.
    pub client_tls: PortTls,
    /// How the HTTP port answers new connections.
    pub http_tls: PortTls,
    /// From where telemetry datagrams are taken.
    pub telemetry: TelemetryMode,
    /// How the Redis port answers new connections.
    pub resp_tls: PortTls,
    /// Bounds of the client port.
    pub limits: NodeLimits,
}

/// Bounds of a node's client port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// Client connections at once; more are refused as overloaded. Default 1,024.
    pub connection_count_max: usize,
    /// Bytes that all client connections may hold for requests, replies and half-read frames;
    /// beyond it requests are refused as overloaded. Default 256 MiB.
    pub held_bytes_max: usize,
}

impl Default for NodeLimits {
    fn default() -> Self {
        Self {
            connection_count_max: 1_024,
            held_bytes_max: 256 << 20,
        }
    }
}

/// The addresses that a node really listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAddresses {
    /// For clients.
    pub client: SocketAddr,
    /// For peers: TCP, and UDP of the same number.
    pub peer: SocketAddr,
    /// For HTTP.
    pub http: SocketAddr,
    /// For Redis clients, if they are listened for.
    pub resp: Option<SocketAddr>,
}

/// A running node. Dropping it without [`Node::stop`] is like killing the process.
pub struct Node {
    addresses: NodeAddresses,
    database: Database,
    raft: Raft,
    links: PeerLinks,
    peers: PeerServer,
    proposer: Arc<Proposer>,
    vitals: Vitals,
    executor: Arc<dyn Executor>,
    stopping: Arc<AtomicBool>,
    stop_ports: watch::Sender<bool>,
    stop_http: watch::Sender<bool>,
    client_ports: Vec<JoinHandle<()>>,
    http_port: JoinHandle<()>,
    heartbeats: JoinHandle<()>,
    /// The sender, and the announcement until it is through.
    writers: [JoinHandle<()>; 2],
}

/// What runs before clients are let in.
struct Core {
    addresses: NodeAddresses,
    database: Database,
    links: PeerLinks,
    heartbeats: Arc<Heartbeats>,
    raft: Raft,
    proposer: Arc<Proposer>,
    packer: Packer,
    vitals: Vitals,
    peers: PeerServer,
    client: Box<dyn Listener>,
    http: Box<dyn Listener>,
    resp: Option<Box<dyn Listener>>,
    cursors: Arc<Cursors>,
}

impl Core {
    async fn start(
        options: &NodeOptions,
        seams: &Seams,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, StartError> {
        let peer_tls = PeerTls::new(&options.material, options.cluster, options.node)?;
        let database = open_database(options, seams)?;
        let client = listen(Port::Client, options.client, transport.as_ref()).await?;
        let peer = listen(Port::Peer, options.peer, transport.as_ref()).await?;
        let http = listen(Port::Http, options.http, transport.as_ref()).await?;
        let resp = match options.resp {
            Some(address) => Some(listen(Port::Resp, address, transport.as_ref()).await?),
            None => None,
        };
        let address = |listener: &dyn Listener| listener.local_addr().map_err(StartError::Socket);
        let addresses = NodeAddresses {
            client: address(client.as_ref())?,
            peer: address(peer.as_ref())?,
            http: address(http.as_ref())?,
            resp: resp.as_deref().map(address).transpose()?,
        };
        let links = open_links(options, &database, peer_tls, Arc::clone(&transport), seams)?;
        let limits = OutboxLimits::default();
        let proposer = Arc::new(Proposer::new(options.node, database.boot(), limits));
        let raft_options = RaftOptions {
            node: options.node,
            cluster: options.cluster,
            group: GROUP,
            timing: options.timing,
            retention: LogRetention::default(),
        };
        let parts = RaftParts {
            database: database.clone(),
            seams: seams.clone(),
            bus: Arc::new(links.clone()),
            observer: Arc::clone(&proposer) as Arc<dyn kelp_raft::ApplyObserver>,
        };
        let raft = Raft::start(raft_options, parts).await?;
        let vitals = Vitals::new();
        let named = options.members.keys().copied().collect();
        vitals.spawn(
            "addresses",
            addresses::follow(raft.clone(), links.clone(), named),
        );
        let (packer, packing) = Packer::new(raft.clone(), database.clone(), proposer.metrics());
        vitals.spawn("packer", packing);
        let clock = Arc::clone(&seams.clock);
        let cursors = Arc::new(Cursors::new(options.node, database.boot()));
        let known = Arc::clone(&cursors);
        let service = PeerService::new(raft.clone(), packer.clone(), known, clock, GROUP);
        let peers = PeerServer::start(peer, &links, Arc::new(service))
            .map_err(StartError::listen(Port::Peer, options.peer))?;
        let heartbeats = heartbeats(options, addresses.peer, &database, &raft, &links, seams);
        let heartbeats = Arc::new(Heartbeats::new(heartbeats, transport));
        Ok(Self {
            addresses,
            database,
            links,
            heartbeats,
            raft,
            proposer,
            packer,
            vitals,
            peers,
            client,
            http,
            resp,
            cursors,
        })
    }

    /// Sets the way of writes in motion, and lets the cluster know this node's directory.
    fn start_writes(
        &self,
        node: NodeId,
        leadership: &Arc<Leadership>,
        clock: &Arc<dyn Clock>,
    ) -> [JoinHandle<()>; 2] {
        let announcement = announce::run(
            Arc::clone(&self.proposer),
            self.raft.state(),
            Arc::clone(clock),
            node,
            self.database.id(),
        );
        let announcement = self.vitals.spawn("announcement", announcement);
        let parts = SenderParts {
            proposer: Arc::clone(&self.proposer),
            group: GROUP,
            bus: Arc::new(self.links.clone()),
            packer: self.packer.clone(),
            leadership: Arc::clone(leadership),
            clock: Arc::clone(clock),
        };
        [
            self.vitals.spawn("sender", sender::run(parts)),
            announcement,
        ]
    }

    /// What the ports of clients share.
    fn port_context(
        &self,
        options: &NodeOptions,
        seams: &Seams,
        leadership: &Arc<Leadership>,
        stopping: &Arc<AtomicBool>,
        observer: &Observer,
    ) -> PortContext {
        let view = NodeView::new(
            self.raft.clone(),
            self.links.clone(),
            Arc::clone(&self.heartbeats),
            Arc::clone(leadership),
            options.cluster,
            Arc::clone(stopping),
        );
        let connections = observer.connections();
        let limits = options.limits;
        PortContext {
            node: options.node,
            cluster: options.cluster,
            proposer: Arc::clone(&self.proposer),
            raft: self.raft.clone(),
            leadership: Arc::clone(leadership),
            view: Arc::new(view) as Arc<dyn ClusterView>,
            clock: Arc::clone(&seams.clock),
            executor: Arc::clone(&seams.executor),
            metrics: observer.requests(),
            seats: Seats::new(
                limits.connection_count_max,
                STRANGER_COUNT_MAX,
                Arc::clone(&connections),
            ),
            budget: Budget::new(limits.held_bytes_max, connections),
        }
    }

    /// Lets clients in.
    fn open_ports(
        self,
        options: NodeOptions,
        seams: Seams,
        leadership: Arc<Leadership>,
        writers: [JoinHandle<()>; 2],
    ) -> Node {
        let outbox = self.proposer.metrics();
        let stopping = Arc::new(AtomicBool::new(false));
        let observer = Observer::new(
            &self.raft,
            &self.database,
            &self.links,
            Arc::clone(&self.heartbeats),
            outbox,
            Arc::clone(&seams.clock),
        );
        observer.set_certificate_expiry(options.material.not_after());
        let port = self.port_context(&options, &seams, &leadership, &stopping, &observer);
        let readiness = Readiness::new(self.raft.clone(), leadership, Arc::clone(&stopping));
        let readiness = Arc::new(readiness);
        let (stop_ports, stop) = watch::channel(false);
        let client_ports = ClientPorts {
            client: (self.client, options.client_tls),
            resp: self
                .resp
                .zip(self.addresses.resp)
                .map(|(listener, address)| (listener, options.resp_tls, address)),
            context: Arc::new(port),
            database: self.database.clone(),
            links: self.links.clone(),
            cursors: self.cursors,
            resp_metrics: observer.resp(),
        };
        let client_ports = client_ports.open(&self.vitals, &stop);
        let (stop_http, stop) = watch::channel(false);
        let http = crate::http::run(self.http, options.http_tls, observer, readiness, stop);
        let http_port = self.vitals.spawn("http port", http);
        let heartbeats = self.heartbeats;
        // Not vital: what arrives from outside must not be able to end the node.
        let heartbeats = tokio::spawn(async move {
            heartbeats.run().await;
        });
        Node {
            addresses: self.addresses,
            database: self.database,
            raft: self.raft,
            links: self.links,
            peers: self.peers,
            proposer: self.proposer,
            vitals: self.vitals,
            executor: seams.executor,
            stopping,
            stop_ports,
            stop_http,
            client_ports,
            http_port,
            heartbeats,
            writers,
        }
    }
}

impl Node {
    /// Starts a node within a tokio runtime; returns when its ports are open.
    ///
    /// On the first start of a cluster the member with the lowest id initializes it.
    ///
    /// # Errors
    /// By what a person must do; see [`StartError`].
    pub async fn start(
        options: NodeOptions,
        seams: Seams,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, StartError> {
        let core = Core::start(&options, &seams, transport).await?;
        bootstrap::run(&options, &core.raft, &core.links).await?;
        let clock = Arc::clone(&seams.clock);
        let leadership = Leadership::new(core.raft.clone(), Arc::clone(&clock), options.timing);
        let leadership = Arc::new(leadership);
        let writers = core.start_writes(options.node, &leadership, &clock);
        Ok(core.open_ports(options, seams, leadership, writers))
    }

    /// Where the node listens.
    pub fn addresses(&self) -> NodeAddresses {
        self.addresses
    }

    /// Resolves when the node can no longer serve and the process must end, with the reason.
    pub async fn failed(&self) -> String {
        tokio::select! {
            reason = self.raft.stopped() => reason.to_string(),
            reason = self.proposer.failed() => reason,
            () = self.links.disowned() => emptied_text(self.links.node()),
            task = self.vitals.panicked() => format!("the {task} panicked, which is a bug"),
        }
    }
}

fn open_database(options: &NodeOptions, seams: &Seams) -> Result<Database, StartError> {
    let database = Database::open(
        &options.directory,
        DatabaseOptions::default(),
        seams.clone(),
    )?;
    database.raise_boot()?;
    Ok(database)
}

fn heartbeats(
    options: &NodeOptions,
    address: SocketAddr,
    database: &Database,
    raft: &Raft,
    links: &PeerLinks,
    seams: &Seams,
) -> HeartbeatParts {
    let surroundings = NodeSurroundings::new(
        raft.clone(),
        database.clone(),
        links.clone(),
        Arc::clone(&seams.vfs),
        Arc::clone(&seams.executor),
        options.directory.clone(),
    );
    HeartbeatParts {
        cluster: options.cluster,
        group: GROUP,
        node: options.node,
        boot: database.boot(),
        address,
        telemetry: options.telemetry,
        clock: Arc::clone(&seams.clock),
        surroundings: Arc::new(surroundings),
    }
}

async fn listen(
    port: Port,
    address: SocketAddr,
    transport: &dyn Transport,
) -> Result<Box<dyn Listener>, StartError> {
    transport
        .listen(address)
        .await
        .map_err(StartError::listen(port, address))
}

fn open_links(
    options: &NodeOptions,
    database: &Database,
    tls: PeerTls,
    transport: Arc<dyn Transport>,
    seams: &Seams,
) -> Result<PeerLinks, StartError> {
    let peer_options = PeerOptions {
        node: options.node,
        boot: database.boot(),
        directory: database.id(),
        limits: PeerLimits::default(),
    };
    let links = PeerLinks::start(
        peer_options,
        transport,
        tls,
        Arc::clone(&seams.clock),
        Arc::clone(&seams.rng),
        Arc::new(StateReader::open(database, GROUP)?),
    );
    for (node, member) in &options.members {
        links.set_peer_address(*node, member.peer.clone());
    }
    Ok(links)
}
