//! Peer links over loopback: who is let in, and what becomes of calls.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use kelp_client::{BoxStream, TokioTransport, Transport};
use kelp_raft::{
    Boot, BusError, ClusterId, DatabaseId, HandleError, NodeId, PeerBus, PeerClass, PeerHandler,
    SendPermit, StateError,
};
use kelp_seams::{Clock, ManualClock, SeededRng, WallMillis};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::client::TlsStream;

use super::book::lock;
use super::pipe::FramePipe;
use super::{
    DirectoryBook, FrameKind, Hello, PeerHealth, PeerLimits, PeerLinks, PeerOptions, PeerServer,
    RefusalReason,
};
use crate::certs::{Authority, Bundle, NodeRequest, node_name};
use crate::tls::{PeerTls, TlsMaterial, default_provider};

mod calls;
mod directories;
mod frames;
mod secrets;
mod security;

/// 2026-01-01, when the fixtures' clocks start.
const START: WallMillis = WallMillis::new(1_767_225_600_000);

/// Longer than anything here takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const CLUSTER: ClusterId = ClusterId::new([7; 16]);

fn node_id(number: u16) -> NodeId {
    NodeId::new(number)
}

fn clock_at(wall: WallMillis) -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.set_wall(wall);
    Arc::new(clock)
}

fn authority(cluster: ClusterId, seed: u64) -> Authority {
    Authority::generate(cluster, &*clock_at(START), &SeededRng::new(seed)).unwrap()
}

fn node_bundle(authority: &Authority, number: u16) -> Bundle {
    let request = NodeRequest::local(node_id(number));
    let rng = SeededRng::new(number.into());
    authority
        .issue_node(&request, &*clock_at(START), &rng)
        .unwrap()
}

fn material(bundle: &Bundle, clock: Arc<dyn Clock>) -> TlsMaterial {
    TlsMaterial::from_bundle(bundle, default_provider(), clock).unwrap()
}

/// For tests of slow peers, whose own side is not in a hurry.
fn hasty_limits() -> PeerLimits {
    PeerLimits {
        handshake: Duration::from_millis(200),
        hello: Duration::from_millis(200),
        ..PeerLimits::default()
    }
}

/// The directory of a node that was never emptied.
fn directory(number: u16) -> DatabaseId {
    DatabaseId::from_bytes([u8::try_from(number).unwrap(); 16])
}

/// A state that knows the directories of some nodes.
struct Known(fn(NodeId) -> Option<DatabaseId>);

impl DirectoryBook for Known {
    fn directory_of(&self, node: NodeId) -> Result<Option<DatabaseId>, StateError> {
        Ok(self.0(node))
    }
}

/// A state that knows the directories of all nodes.
fn all_known() -> Known {
    Known(|node| Some(directory(node.get())))
}

fn links(bundle: &Bundle, number: u16, wall: WallMillis) -> PeerLinks {
    links_over(Arc::new(TokioTransport), bundle, number, wall)
}

fn links_over(
    transport: Arc<dyn Transport>,
    bundle: &Bundle,
    number: u16,
    wall: WallMillis,
) -> PeerLinks {
    links_with(PeerLimits::default(), transport, bundle, number, wall)
}

fn links_with(
    limits: PeerLimits,
    transport: Arc<dyn Transport>,
    bundle: &Bundle,
    number: u16,
    wall: WallMillis,
) -> PeerLinks {
    let identity = (directory(number), all_known());
    links_of(identity, limits, transport, bundle, number, wall)
}

fn links_of(
    (directory, known): (DatabaseId, Known),
    limits: PeerLimits,
    transport: Arc<dyn Transport>,
    bundle: &Bundle,
    number: u16,
    wall: WallMillis,
) -> PeerLinks {
    let clock = clock_at(wall);
    let (node, boot) = (node_id(number), Boot::new(1));
    let tls = PeerTls::new(&material(bundle, clock.clone()), CLUSTER, node).unwrap();
    let options = PeerOptions {
        node,
        boot,
        directory,
        limits,
    };
    let rng = Arc::new(SeededRng::new(number.into()));
    PeerLinks::start(options, transport, tls, clock, rng, Arc::new(known))
}

/// A node that listens on loopback.
struct TestNode {
    number: u16,
    links: PeerLinks,
    server: PeerServer,
}

impl TestNode {
    async fn start(authority: &Authority, number: u16, handler: Arc<dyn PeerHandler>) -> Self {
        Self::start_at(authority, number, handler, START).await
    }

    async fn start_at(
        authority: &Authority,
        number: u16,
        handler: Arc<dyn PeerHandler>,
        wall: WallMillis,
    ) -> Self {
        let links = links(&node_bundle(authority, number), number, wall);
        Self::over(links, number, handler).await
    }

    async fn start_with(limits: PeerLimits, authority: &Authority, number: u16) -> Self {
        let (bundle, transport) = (node_bundle(authority, number), Arc::new(TokioTransport));
        let links = links_with(limits, transport, &bundle, number, START);
        Self::over(links, number, Arc::new(Scripted::default())).await
    }

    async fn over(links: PeerLinks, number: u16, handler: Arc<dyn PeerHandler>) -> Self {
        let listener = TokioTransport.listen("127.0.0.1:0".parse().unwrap()).await;
        let server = PeerServer::start(listener.unwrap(), &links, handler).unwrap();
        Self {
            number,
            links,
            server,
        }
    }

    fn address(&self) -> String {
        self.server.local_addr().to_string()
    }

    fn introduce(&self, links: &PeerLinks) {
        links.set_peer_address(node_id(self.number), self.address());
    }

    async fn refused(&self, reason: RefusalReason) {
        let book = self.links.book();
        wait_until(|| book.refusals(reason) > 0).await;
        for other in RefusalReason::ALL {
            let expected = u64::from(other == reason);
            assert_eq!(book.refusals(other), expected, "refusals for {other:?}");
        }
    }

    async fn dial(&self) -> BoxStream {
        TokioTransport.connect(&self.address()).await.unwrap()
    }
}

async fn wait_until(condition: impl Fn() -> bool) {
    let reached = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached)
        .await
        .expect("the condition is reached in time");
}

async fn call(links: &PeerLinks, peer: u16, request: &'static str) -> Result<Bytes, BusError> {
    let request = Bytes::from_static(request.as_bytes());
    links
        .call(node_id(peer), PeerClass::Control, request, PATIENCE)
        .await
}

fn health_of(links: &PeerLinks, peer: u16) -> PeerHealth {
    let health = links.health();
    let found = health
        .into_iter()
        .find(|peer_health| peer_health.node == node_id(peer));
    found.expect("the peer has a record")
}

/// A TLS client as an intruder would write it: any certificate, resumption tried.
fn intruder(trusted: &Bundle, shown: &Bundle) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(trusted.authority_pem.as_bytes()).unwrap();
    roots.add(root).unwrap();
    let leaf = CertificateDer::from_pem_slice(shown.certificate_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(shown.key_pem.as_bytes()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(default_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![leaf], key)
        .unwrap();
    Arc::new(config)
}

async fn intrude(
    config: &Arc<rustls::ClientConfig>,
    target: &TestNode,
) -> std::io::Result<TlsStream<BoxStream>> {
    let name = ServerName::try_from(node_name(CLUSTER, node_id(target.number))).unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
    connector.connect(name, target.dial().await).await
}

fn hello(from: u16, target: u16) -> Hello {
    Hello {
        version_min: 1,
        version_max: 1,
        class: PeerClass::Control,
        cluster: CLUSTER,
        node: node_id(from),
        target: node_id(target),
        boot: Boot::new(1),
        directory: directory(from),
    }
}

async fn say_hello(stream: TlsStream<BoxStream>, hello: &Hello) -> FramePipe<TlsStream<BoxStream>> {
    let mut pipe = FramePipe::new(stream);
    let mut payload = bytes::BytesMut::new();
    hello.encode(&mut payload);
    let payload = payload.freeze();
    pipe.write_frame(FrameKind::Hello, &payload).await.unwrap();
    pipe
}

/// Whether nothing but the end of the connection comes.
async fn is_closed<S>(pipe: &mut FramePipe<S>) -> bool
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let read = tokio::time::timeout(PATIENCE, pipe.read_frame()).await;
    read.expect("the connection ends in time").is_err()
}

/// Answers "echo.." with itself, "stuck" never, and "break" with an error; remembers what it saw.
#[derive(Default)]
struct Scripted {
    seen: Mutex<Vec<(NodeId, PeerClass, Bytes)>>,
}

impl PeerHandler for Scripted {
    fn handle(
        &self,
        from: NodeId,
        class: PeerClass,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, HandleError>> {
        lock(&self.seen).push((from, class, request.clone()));
        match request.as_ref() {
            b"stuck" => pending().boxed(),
            b"break" => ready(Err(HandleError::Stopped)).boxed(),
            _ => ready(Ok(request)).boxed(),
        }
    }
}
