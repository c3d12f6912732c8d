//! Three nodes in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelp_client::{Client, ClientError, RequestOptions};
use kelp_node::certs::{Authority, NodeRequest};
use kelp_node::node::{Node, NodeLimits, NodeOptions, StartError, TelemetryMode};
use kelp_node::status_report::StatusReport;
use kelp_node::tls::{ClientAuth, PortTls, TlsMaterial, default_provider};
use kelp_raft::{ClusterId, Member, NodeId, Timing};
use kelp_seams::{OsRng, Rng as _, SystemClock, ThreadExecutor};
use kelp_storage::{RealFs, Seams};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::links::TestTransport;

/// Far longer than anything here takes; only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A node on a runtime of its own, so that it can be killed whole.
pub(crate) struct TestNode {
    pub(crate) id: NodeId,
    pub(crate) member: Member,
    pub(crate) transport: TestTransport,
    /// Where Redis clients are listened for.
    pub(crate) resp: String,
    runtime: Option<Runtime>,
    node: Option<Node>,
}

/// Three nodes that form a cluster; the directory goes with it.
pub(crate) struct TestCluster {
    pub(crate) nodes: Vec<TestNode>,
    directory: TempDir,
    authority: Authority,
    members: BTreeMap<NodeId, Member>,
    options: ClusterOptions,
}

/// What a test wants other than usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterOptions {
    pub(crate) limits: NodeLimits,
    /// The client ports speak nothing but TLS.
    pub(crate) tls_only: bool,
    /// No datagram of any node reaches another from the start.
    pub(crate) udp_blocked: bool,
    pub(crate) telemetry: TelemetryMode,
}

/// A port that nobody listens on. It lies below those that the kernel gives to outgoing connections, and no two calls
/// return the same, so that it is still free when the node listens.
#[expect(
    clippy::disallowed_methods,
    reason = "the members must know their ports before they start"
)]
fn free_address() -> SocketAddr {
    static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut taken = TAKEN.lock().expect("nothing panics with this lock held");
    let rng = rng();
    loop {
        let port = 10_000 + u16::try_from(rng.next_u64() % 20_000).expect("small");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !taken.contains(&port) && TcpListener::bind(address).is_ok() {
            taken.insert(port);
            return address;
        }
    }
}

fn member(id: u16) -> (NodeId, Member) {
    let address = || free_address().to_string();
    let member = Member {
        name: format!("n{id}"),
        peer: address(),
        client: address(),
        http: address(),
        voter: true,
    };
    (NodeId::new(id), member)
}

fn rng() -> OsRng {
    OsRng::open().expect("the system has randomness")
}

fn seams() -> Seams {
    let clock = Arc::new(SystemClock::new());
    Seams {
        vfs: Arc::new(RealFs),
        clock: Arc::clone(&clock) as Arc<dyn kelp_seams::Clock>,
        rng: Arc::new(rng()),
        executor: Arc::new(ThreadExecutor::new(clock)),
    }
}

impl TestCluster {
    /// Starts `count` nodes and waits until one leads and all know it.
    pub(crate) fn start(count: u16) -> Self {
        let cluster = Self::start_with(count, ClusterOptions::default());
        cluster.wait_for_leader();
        cluster
    }

    /// Starts `count` nodes and waits until their ports are open.
    pub(crate) fn start_with(count: u16, options: ClusterOptions) -> Self {
        let clock = SystemClock::new();
        let authority =
            Authority::generate(ClusterId::new([7; 16]), &clock, &rng()).expect("keys can be made");
        let members: BTreeMap<NodeId, Member> = (1..=count).map(member).collect();
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let mut cluster = Self {
            nodes: Vec::new(),
            directory,
            authority,
            members,
            options,
        };
        for (id, member) in cluster.members.clone() {
            let transport = TestTransport::default();
            transport.block_udp(options.udp_blocked);
            cluster.nodes.push(TestNode {
                id,
                member,
                transport,
                resp: free_address().to_string(),
                runtime: None,
                node: None,
            });
            cluster.start_node(cluster.nodes.len() - 1);
        }
        cluster
    }

    /// Starts a node that is not running.
    pub(crate) fn start_node(&mut self, at: usize) {
        let (runtime, node) = self.launch(at).expect("the node starts");
        let test_node = &mut self.nodes[at];
        test_node.runtime = Some(runtime);
        test_node.node = Some(node);
    }

    /// Starts a node that must not serve, and returns why it does not.
    pub(crate) fn start_refused(&mut self, at: usize) -> String {
        match self.launch(at) {
            Err(error) => error.to_string(),
            Ok((runtime, node)) => {
                self.nodes[at].runtime = Some(runtime);
                self.nodes[at].node = Some(node);
                self.wait_for_failure(at)
            }
        }
    }

    /// Why a running node ends by itself; it is gone then.
    pub(crate) fn wait_for_failure(&mut self, at: usize) -> String {
        let node = &mut self.nodes[at];
        let runtime = node.runtime.take().expect("the node runs");
        let running = node.node.take().expect("the node runs");
        let failed =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, running.failed()).await });
        runtime.shutdown_background();
        failed.expect("the node ends by itself")
    }

    /// Empties the data directory of a node that is not running.
    #[expect(
        clippy::disallowed_methods,
        reason = "what an operator does to the files of a node"
    )]
    pub(crate) fn empty_directory(&self, at: usize) {
        let directory = self.directory.path().join(&self.nodes[at].member.name);
        std::fs::remove_dir_all(directory).expect("a stopped node holds no files");
    }

    /// How many sorted tables lie in the data directory of a node.
    #[expect(
        clippy::disallowed_methods,
        reason = "what an operator sees of the files of a node"
    )]
    pub(crate) fn table_count(&self, at: usize) -> usize {
        let directory = self.directory.path().join(&self.nodes[at].member.name);
        let files = std::fs::read_dir(directory).expect("the directory can be read");
        files
            .filter(|file| {
                file.as_ref()
                    .is_ok_and(|file| file.path().extension().is_some_and(|name| name == "sst"))
            })
            .count()
    }

    fn launch(&self, at: usize) -> Result<(Runtime, Node), StartError> {
        let test_node = &self.nodes[at];
        let clock = SystemClock::new();
        let bundle = self
            .authority
            .issue_node(&NodeRequest::local(test_node.id), &clock, &rng())
            .expect("certificate");
        let material = TlsMaterial::from_bundle(&bundle, default_provider(), Arc::new(clock))
            .expect("usable bundle");
        let client_tls = || {
            if self.options.tls_only {
                PortTls::new(&material, ClientAuth::Required, &[], false).expect("usable bundle")
            } else {
                PortTls::plaintext()
            }
        };
        let address = |text: &str| text.parse().expect("members have socket addresses here");
        let options = NodeOptions {
            node: test_node.id,
            cluster: self.authority.cluster(),
            directory: self.directory.path().join(&test_node.member.name),
            client: address(&test_node.member.client),
            peer: address(&test_node.member.peer),
            http: address(&test_node.member.http),
            resp: Some(address(&test_node.resp)),
            members: self.members.clone(),
            timing: Timing::default(),
            telemetry: self.options.telemetry,
            client_tls: client_tls(),
            resp_tls: client_tls(),
            http_tls: PortTls::plaintext(),
            material,
            limits: self.options.limits,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let transport = Arc::new(test_node.transport.clone());
        let node = runtime.block_on(Node::start(options, seams(), transport));
        match node {
            Ok(node) => Ok((runtime, node)),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Ends a node without a word, like a kill.
    pub(crate) fn kill(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let Some(runtime) = node.runtime.take() {
            runtime.shutdown_background();
        }
        drop(node.node.take());
    }

    /// Stops a node gracefully.
    pub(crate) fn stop(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let (Some(runtime), Some(running)) = (node.runtime.take(), node.node.take()) {
            runtime.block_on(running.stop(Duration::from_secs(5)));
        }
    }

    /// A client of one node only.
    pub(crate) fn client(&self, at: usize) -> Client {
        Client::builder()
            .endpoints([self.nodes[at].member.client.clone()])
            .build()
            .expect("a valid endpoint")
    }

    /// What a node says of itself.
    pub(crate) async fn report(&self, at: usize) -> Result<StatusReport, ClientError> {
        let text = self.client(at).status().await?;
        Ok(StatusReport::decode(text.as_bytes()).expect("a node's report is valid"))
    }

    /// The place of the leader, once every running node names it.
    pub(crate) fn wait_for_leader(&self) -> usize {
        let runtime = Runtime::new().expect("a runtime can be made");
        let leader = runtime.block_on(eventually(async || {
            let mut leaders = Vec::new();
            for at in (0..self.nodes.len()).filter(|at| self.nodes[*at].node.is_some()) {
                let report = self.report(at).await.ok()?;
                leaders.push(report.leader.filter(|_| report.applied.is_some())?);
            }
            leaders.dedup();
            (leaders.len() == 1).then(|| leaders[0])
        }));
        self.nodes
            .iter()
            .position(|node| node.id.get() == leader)
            .expect("the leader is a member")
    }
}

/// Asks again and again until there is an answer.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asked = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked)
        .await
        .expect("it happens within the time")
}

/// Options for a request that may take long.
pub(crate) fn patient() -> RequestOptions {
    RequestOptions {
        timeout: Some(PATIENCE),
        ..RequestOptions::default()
    }
}
