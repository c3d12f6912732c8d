//! The accepting side of the peer links: decides who may talk to this node.
//!
//! ```text
//! accept -> first byte -> TLS handshake -> hello -> identity check -> welcome -> Session
//!              |              |             |            |
//!              +--------------+-- refusal --+------------+--> one log line, a counter, close
//! ```
//!
//! No request reaches the handler before the certificate has been found to be that of the node that
//! the hello names. There is one connection per peer and class: a new one ends the older one before
//! its first request is handled, so that bytes of a dead connection cannot overtake those of its
//! successor.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use kelp_client::{BoxStream, Listener};
use kelp_raft::{NodeId, PeerClass, PeerHandler};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsStream;

use super::book::{PeerRecord, lock};
use super::frame::{FrameError, FrameKind, Hello, Refusal, VERSION, Welcome};
use super::pipe::FramePipe;
use super::session::Session;
use super::{PeerLinks, RefusalReason};
use crate::tls::{FirstByte, Sniffed, sniff};

/// Pause after a failed accept: most often the process is out of file descriptors, and spinning
/// would not free any.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Refused connections are logged at most this often, since anybody can cause them.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Time for the bytes of a refusal to leave before the connection is dropped.
const FAREWELL: Duration = Duration::from_secs(1);

type PeerStream = TlsStream<Sniffed<BoxStream>>;

/// The peer port of a node. Dropping it closes the port and all accepted connections.
pub struct PeerServer {
    address: SocketAddr,
    task: JoinHandle<()>,
    /// Ends the task when it is dropped.
    stop: oneshot::Sender<()>,
}

impl PeerServer {
    /// Accepts peers on `listener` and hands their requests to `handler`. Takes identity, limits
    /// and records from `links`. Must be called within a tokio runtime.
    pub fn start(
        listener: Box<dyn Listener>,
        links: &PeerLinks,
        handler: Arc<dyn PeerHandler>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let limits = links.limits();
        let acceptor = Acceptor {
            links: links.clone(),
            handler,
            sessions: Mutex::default(),
            handshakes: Semaphore::new(limits.handshakes),
            refusal_log: Mutex::default(),
        };
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept_loop(listener, Arc::new(acceptor), stopped));
        Ok(Self {
            address,
            task,
            stop,
        })
    }

    /// The address listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and all accepted connections, and waits until they are gone. Requests whose
    /// handling has begun may still take effect; their replies are not sent.
    pub async fn stop(self) {
        drop(self.stop);
        // However the task ends, it is gone then.
        drop(self.task.await);
    }
}

async fn accept_loop(
    listener: Box<dyn Listener>,
    acceptor: Arc<Acceptor>,
    mut stopped: oneshot::Receiver<()>,
) {
    let connections_max = acceptor.links.limits().connections;
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        match accepted {
            Err(error) => {
                tracing::warn!(%error, "cannot accept peer connections");
                sleep(ACCEPT_PAUSE).await;
            }
            Ok((stream, address)) if connections.len() < connections_max => {
                let acceptor = Arc::clone(&acceptor);
                connections.spawn(async move { acceptor.serve(stream, address).await });
            }
            Ok((_, address)) => {
                let refused = Refused::new(RefusalReason::Busy, "too many connections");
                acceptor.log_refusal(address, &refused);
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Why a connection is not served.
struct Refused {
    reason: RefusalReason,
    detail: String,
}

impl Refused {
    fn new(reason: RefusalReason, detail: impl Display) -> Self {
        let detail = detail.to_string();
        Self { reason, detail }
    }
}

#[derive(Default)]
struct RefusalLog {
    last: Option<Instant>,
    suppressed: u64,
}

struct Acceptor {
    links: PeerLinks,
    handler: Arc<dyn PeerHandler>,
    sessions: Mutex<Sessions>,
    handshakes: Semaphore,
    refusal_log: Mutex<RefusalLog>,
}

/// The session of each peer and class.
#[derive(Default)]
struct Sessions {
    open: HashMap<(NodeId, PeerClass), Slot>,
    next_generation: u64,
}

struct Slot {
    generation: u64,
    /// Tells the session to end.
    stop: oneshot::Sender<()>,
    /// Resolves when it has ended.
    ended: oneshot::Receiver<()>,
}

impl Acceptor {
    async fn serve(&self, stream: BoxStream, address: SocketAddr) {
        match self.admit(stream).await {
            Ok((pipe, hello, record)) => self.run_session(pipe, &hello, &record, address).await,
            Err(refused) => self.log_refusal(address, &refused),
        }
    }

    /// Brings a new connection to the point where requests may flow.
    async fn admit(
        &self,
        stream: BoxStream,
    ) -> Result<(FramePipe<PeerStream>, Hello, Arc<PeerRecord>), Refused> {
        let limits = self.links.limits();
        let shaken = timeout(limits.handshake, self.handshake(stream)).await;
        let stream = shaken.map_err(|_| Refused::new(RefusalReason::Slow, "slow handshake"))??;
        let mut pipe = FramePipe::new(stream);
        let heard = timeout(limits.hello, pipe.read_frame()).await;
        let frame = heard.map_err(|_| Refused::new(RefusalReason::Slow, "slow hello"))?;
        // With TLS 1.3 the dialler learns last that its certificate was refused, so an early end
        // shows up here.
        let frame = frame.map_err(|error| Refused::new(RefusalReason::Hello, error))?;
        let checked = read_hello(frame.kind, &frame.payload)
            .map_err(|error| Refused::new(RefusalReason::Hello, error))
            .and_then(|hello| self.check(&pipe, hello));
        match checked {
            Err(refused) => {
                say_farewell(&mut pipe, &refused.detail).await;
                Err(refused)
            }
            Ok((hello, record)) => Ok((pipe, hello, record)),
        }
    }

    async fn handshake(&self, stream: BoxStream) -> Result<PeerStream, Refused> {
        let failed = |error| Refused::new(RefusalReason::Handshake, error);
        let (first, stream) = sniff(stream).await.map_err(failed)?;
        if first == FirstByte::Plaintext {
            let detail = "plaintext, this port speaks tls only";
            return Err(Refused::new(RefusalReason::Plaintext, detail));
        }
        let permit = self.handshakes.acquire().await;
        let _permit = permit.map_err(|_| Refused::new(RefusalReason::Busy, "stopping"))?;
        self.links.tls().accept(stream).await.map_err(failed)
    }

    fn check(
        &self,
        pipe: &FramePipe<PeerStream>,
        hello: Hello,
    ) -> Result<(Hello, Arc<PeerRecord>), Refused> {
        let tls = self.links.tls();
        if hello.version_min > VERSION || hello.version_max < VERSION {
            let (low, high) = (hello.version_min, hello.version_max);
            let detail = format!("peer speaks versions {low} to {high}, this node {VERSION}");
            return Err(Refused::new(RefusalReason::Hello, detail));
        }
        if hello.cluster != tls.cluster() {
            let detail = format!(
                "peer belongs to cluster {}, this node to {}",
                hello.cluster,
                tls.cluster()
            );
            return Err(Refused::new(RefusalReason::Cluster, detail));
        }
        tls.verify_peer(pipe.stream(), hello.node)
            .map_err(|error| Refused::new(RefusalReason::Identity, error))?;
        if hello.target != tls.node() || hello.node == tls.node() {
            let (from, target, own) = (hello.node, hello.target, tls.node());
            let detail = format!("node {from} looks for node {target}, this is node {own}");
            return Err(Refused::new(RefusalReason::Target, detail));
        }
        let record = self.links.book().record(hello.node);
        let record = record.ok_or_else(|| Refused::new(RefusalReason::Busy, "too many peers"))?;
        Ok((hello, record))
    }

    async fn run_session(
        &self,
        mut pipe: FramePipe<PeerStream>,
        hello: &Hello,
        record: &Arc<PeerRecord>,
        address: SocketAddr,
    ) {
        let (stop, stopped) = oneshot::channel();
        // Dropped when this function ends, which tells a successor that this session is gone.
        let (_alive, ended) = oneshot::channel();
        let generation = self.succeed(hello, stop, ended).await;
        let open = record.accepted(hello.class);
        let mut welcome = BytesMut::new();
        Welcome {
            version: VERSION,
            cluster: self.links.tls().cluster(),
            node: self.links.tls().node(),
            boot: self.links.boot(),
        }
        .encode(&mut welcome);
        pipe.push(FrameKind::Welcome, 0, &welcome.freeze());
        pipe.lift_limit();
        let handler = Arc::clone(&self.handler);
        let limits = self.links.limits();
        let record = Arc::clone(record);
        let session = Session::new(pipe, hello.node, hello.class, handler, record, limits);
        let end = tokio::select! {
            end = session.run() => end,
            _ = stopped => Ok(()),
        };
        if let Err(error) = end {
            open.failed(&error.to_string());
            let (peer, class) = (hello.node.get(), hello.class);
            tracing::info!(peer, ?class, %address, %error, "peer connection ended");
        }
        let mut sessions = lock(&self.sessions);
        let key = (hello.node, hello.class);
        let own = sessions.open.get(&key);
        if own.is_some_and(|slot| slot.generation == generation) {
            sessions.open.remove(&key);
        }
    }

    /// Takes the place of an older session of the same peer and class, and waits until that has
    /// ended.
    async fn succeed(
        &self,
        hello: &Hello,
        stop: oneshot::Sender<()>,
        ended: oneshot::Receiver<()>,
    ) -> u64 {
        let (generation, older) = {
            let mut sessions = lock(&self.sessions);
            let generation = sessions.next_generation;
            sessions.next_generation += 1;
            let slot = Slot {
                generation,
                stop,
                ended,
            };
            let key = (hello.node, hello.class);
            (generation, sessions.open.insert(key, slot))
        };
        if let Some(older) = older {
            // Both fail only when the older session has ended by itself, which is all that is
            // wanted.
            older.stop.send(()).ok();
            drop(older.ended.await);
        }
        generation
    }

    fn log_refusal(&self, address: SocketAddr, refused: &Refused) {
        self.links.book().count_refusal(refused.reason);
        let mut log = lock(&self.refusal_log);
        let recent = log
            .last
            .is_some_and(|last| last.elapsed() < REFUSAL_LOG_INTERVAL);
        if recent {
            log.suppressed += 1;
            return;
        }
        log.last = Some(Instant::now());
        let suppressed = std::mem::take(&mut log.suppressed);
        let (reason, detail) = (refused.reason.label(), &refused.detail);
        tracing::warn!(%address, reason, detail, suppressed, "refused peer connection");
    }
}

fn read_hello(kind: FrameKind, payload: &[u8]) -> Result<Hello, FrameError> {
    if kind != FrameKind::Hello {
        return Err(FrameError::Unexpected(kind));
    }
    Hello::decode(payload)
}

/// Tells the dialler why it is refused, as well as that goes.
async fn say_farewell(pipe: &mut FramePipe<PeerStream>, detail: &str) {
    let mut payload = BytesMut::new();
    let text = detail.to_owned();
    Refusal { text }.encode(&mut payload);
    let farewell = async {
        pipe.write_frame(FrameKind::Refusal, &payload.freeze())
            .await?;
        pipe.shutdown().await
    };
    // The connection is dropped next, whether or not the text arrived.
    drop(timeout(FAREWELL, farewell).await);
}
