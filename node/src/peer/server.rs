//! The accepting side of the peer links: decides who may talk to this node.
//!
//! ```text
//! accept -> first byte -> TLS handshake -> hello -> identity check -> welcome -> Session
//!              |              |             |            |
//!              +--------------+-- refusal --+------------+--> one log line, a counter, close
//! ```
//!
//! Until the identity check a connection is a stranger: bounded apart from the sessions of peers,
//! and evicted by newer strangers, so that nobody from outside can keep the peers out.
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
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsStream;

use super::book::{PeerRecord, lock};
use super::frame::{FrameError, FrameKind, Hello, Refusal, RefusalCode, VERSION, Welcome};
use super::pipe::FramePipe;
use super::secret::HeldSecret;
use super::session::Session;
use super::strangers::{Place, Strangers};
use super::{PeerLinks, RefusalReason};
use crate::accept::{Accepting, LogLimit};
use crate::tls::{FirstByte, Sniffed, sniff};

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
            strangers: Strangers::new(limits),
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
    let mut accepting = Accepting::new(listener, "peer");
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let (stream, address) = tokio::select! {
            accepted = accepting.next() => accepted,
            _ = &mut stopped => break,
        };
        let place = acceptor.strangers.enter(address.ip());
        let acceptor = Arc::clone(&acceptor);
        connections.spawn(async move { acceptor.serve(stream, place, address).await });
    }
    drop(accepting);
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

struct Acceptor {
    links: PeerLinks,
    handler: Arc<dyn PeerHandler>,
    sessions: Mutex<Sessions>,
    strangers: Arc<Strangers>,
    refusal_log: Mutex<LogLimit>,
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
    async fn serve(&self, stream: BoxStream, mut place: Place, address: SocketAddr) {
        let admitted = tokio::select! {
            admitted = self.admit(stream) => admitted,
            () = place.lost() => Err(Refused::new(
                RefusalReason::Busy,
                "too many connections that have not said who they are",
            )),
        };
        drop(place);
        let ended = match admitted {
            Ok((pipe, hello, record)) => self.run_session(pipe, &hello, &record, address).await,
            Err(refused) => Err(refused),
        };
        if let Err(refused) = ended {
            self.log_refusal(address, &refused);
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
                say_farewell(&mut pipe, &refused).await;
                Err(refused)
            }
            Ok((hello, record)) => Ok((pipe, hello, record)),
        }
    }

    async fn handshake(&self, stream: BoxStream) -> Result<PeerStream, Refused> {
        let failed = |error| Refused::new(RefusalReason::Handshake, error);
        let sniffed = timeout(self.links.limits().first_byte, sniff(stream)).await;
        let sniffed = sniffed.map_err(|_| Refused::new(RefusalReason::Slow, "says nothing"))?;
        let (first, stream) = sniffed.map_err(failed)?;
        if first == FirstByte::Plaintext {
            let detail = "plaintext, this port speaks tls only";
            return Err(Refused::new(RefusalReason::Plaintext, detail));
        }
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
        let directory = self
            .links
            .context()
            .check_directory(hello.node, hello.directory);
        directory.map_err(|refusal| {
            let reason = match refusal.code {
                RefusalCode::Emptied => RefusalReason::Emptied,
                RefusalCode::Other => RefusalReason::Busy,
            };
            Refused::new(reason, refusal.text)
        })?;
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
    ) -> Result<(), Refused> {
        let (stop, stopped) = oneshot::channel();
        // Dropped when this function ends, which tells a successor that this session is gone.
        let (_alive, ended) = oneshot::channel();
        let Some(generation) = self.succeed(hello, stop, ended).await else {
            let refused = Refused::new(RefusalReason::Busy, "too many connections of peers");
            say_farewell(&mut pipe, &refused).await;
            return Err(refused);
        };
        let open = record.accepted(hello.class);
        // Before the welcome, after which heartbeats under it may come.
        let _secret = self.hold_secret(&pipe, hello, record);
        let mut welcome = BytesMut::new();
        Welcome {
            version: VERSION,
            cluster: self.links.tls().cluster(),
            node: self.links.tls().node(),
            boot: self.links.context().boot,
            directory: self.links.context().directory,
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
            let refusal = error
                .get_ref()
                .and_then(|error| error.downcast_ref::<Refusal>());
            if let Some(refusal) = refusal {
                self.links.context().refused_by(hello.node, refusal);
            }
            let (peer, class) = (hello.node.get(), hello.class);
            tracing::info!(peer, ?class, %address, %error, "peer connection ended");
        }
        let mut sessions = lock(&self.sessions);
        let key = (hello.node, hello.class);
        let own = sessions.open.get(&key);
        if own.is_some_and(|slot| slot.generation == generation) {
            sessions.open.remove(&key);
        }
        Ok(())
    }

    /// Keeps what both ends of a control connection know for the heartbeats of this peer.
    fn hold_secret(
        &self,
        pipe: &FramePipe<PeerStream>,
        hello: &Hello,
        record: &PeerRecord,
    ) -> Option<HeldSecret> {
        if hello.class != PeerClass::Control {
            return None;
        }
        match self.links.tls().secret(pipe.stream(), hello.node) {
            Ok(secret) => Some(record.hold_accepted_secret(secret)),
            Err(error) => {
                tracing::warn!(peer = hello.node.get(), %error, "no secret for heartbeats");
                None
            }
        }
    }

    /// Takes the place of an older session of the same peer and class, and waits until that has
    /// ended. `None` when there are too many sessions.
    async fn succeed(
        &self,
        hello: &Hello,
        stop: oneshot::Sender<()>,
        ended: oneshot::Receiver<()>,
    ) -> Option<u64> {
        let (generation, older) = {
            let mut sessions = lock(&self.sessions);
            let key = (hello.node, hello.class);
            let full = sessions.open.len() >= self.links.limits().connections;
            if full && !sessions.open.contains_key(&key) {
                return None;
            }
            let generation = sessions.next_generation;
            sessions.next_generation += 1;
            let slot = Slot {
                generation,
                stop,
                ended,
            };
            (generation, sessions.open.insert(key, slot))
        };
        if let Some(older) = older {
            // Both fail only when the older session has ended by itself, which is all that is
            // wanted.
            older.stop.send(()).ok();
            drop(older.ended.await);
        }
        Some(generation)
    }

    fn log_refusal(&self, address: SocketAddr, refused: &Refused) {
        self.links.book().count_refusal(refused.reason);
        let Some(suppressed) = lock(&self.refusal_log).permits(Instant::now()) else {
            return;
        };
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
async fn say_farewell(pipe: &mut FramePipe<PeerStream>, refused: &Refused) {
    let mut payload = BytesMut::new();
    let code = match refused.reason {
        RefusalReason::Emptied => RefusalCode::Emptied,
        _ => RefusalCode::Other,
    };
    let text = refused.detail.clone();
    Refusal { code, text }.encode(&mut payload);
    let farewell = async {
        pipe.write_frame(FrameKind::Refusal, &payload.freeze())
            .await?;
        pipe.shutdown().await
    };
    // The connection is dropped next, whether or not the text arrived.
    drop(timeout(FAREWELL, farewell).await);
}
