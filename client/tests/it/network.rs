//! An in-memory network of scripted nodes.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_client::{
    BoxStream, Client, ClientBuilder, Connection, ConnectionOptions, Datagrams, Listener, Transport,
};
use kelp_seams::{Rng, SeededRng};
use kelp_wire::{
    ClusterId, Decode, FrameLimits, HELLO_VERSION, HelloReply, NodeId, Opcode, ReadOptions,
    Request, RequestId, Response, ResponseFields, Revision, Status, WriteOptions, decode_request,
    encode_error, encode_response,
};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

pub(crate) const CLUSTER: ClusterId = ClusterId::new([0xCE; 16]);

/// What a connection holds in each direction unless a test wants less.
const STREAM_BYTES: usize = 64 * 1024;

/// How long a test waits for what must happen; time is paused, so it costs nothing.
const PATIENCE: Duration = Duration::from_mins(10);

/// A network on which some addresses have a node.
#[derive(Default)]
pub(crate) struct Network {
    nodes: Mutex<HashMap<String, Door>>,
    writes: Arc<AtomicUsize>,
}

struct Door {
    arrivals: mpsc::UnboundedSender<DuplexStream>,
    stream_bytes: usize,
}

impl Network {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(crate) fn node(&self, address: &str) -> Node {
        self.node_with_buffer(address, STREAM_BYTES)
    }

    /// A node whose streams take only so many bytes that are not read yet.
    pub(crate) fn node_with_buffer(&self, address: &str, stream_bytes: usize) -> Node {
        let (sender, arrivals) = mpsc::unbounded_channel();
        let door = Door {
            arrivals: sender,
            stream_bytes,
        };
        self.nodes
            .lock()
            .expect("no test panics inside")
            .insert(address.to_owned(), door);
        Node { arrivals }
    }

    /// How many writes clients have made in all.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    fn open(&self, address: &str) -> io::Result<BoxStream> {
        let nodes = self.nodes.lock().expect("no test panics inside");
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        let door = nodes.get(address).ok_or_else(refused)?;
        let (near, far) = duplex(door.stream_bytes);
        door.arrivals.send(far).map_err(|_| refused())?;
        Ok(Box::new(CountedStream {
            stream: near,
            writes: Arc::clone(&self.writes),
        }))
    }
}

impl Transport for Network {
    fn listen(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        async { Err(io::ErrorKind::Unsupported.into()) }.boxed()
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        async move { self.open(address) }.boxed()
    }

    fn bind_datagrams(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Datagrams>>> {
        async { Err(io::ErrorKind::Unsupported.into()) }.boxed()
    }

    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        async { Err(io::ErrorKind::Unsupported.into()) }.boxed()
    }
}

struct CountedStream {
    stream: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A node: it only accepts; what it says is up to the test.
pub(crate) struct Node {
    arrivals: mpsc::UnboundedReceiver<DuplexStream>,
}

impl Node {
    /// The next connection, before hello.
    pub(crate) async fn accept_raw(&mut self) -> Peer {
        let stream = timeout(PATIENCE, self.arrivals.recv())
            .await
            .expect("a connection comes in time")
            .expect("the network is there");
        Peer {
            stream: Box::new(stream),
            buffer: BytesMut::new(),
        }
    }

    /// The next connection, after an accepted hello.
    pub(crate) async fn accept(&mut self) -> Peer {
        let mut peer = self.accept_raw().await;
        let hello = peer.next().await;
        assert_eq!(hello.opcode, Opcode::Hello);
        peer.accept_hello(&hello, CLUSTER).await;
        peer
    }

    /// The next connection, after a TLS handshake and an accepted hello.
    pub(crate) async fn accept_tls(&mut self, acceptor: &TlsAcceptor) -> io::Result<Peer> {
        let raw = self.accept_raw().await;
        let mut peer = Peer {
            stream: Box::new(acceptor.accept(raw.stream).await?),
            buffer: BytesMut::new(),
        };
        let hello = peer.next().await;
        peer.accept_hello(&hello, CLUSTER).await;
        Ok(peer)
    }

    /// Whether no connection waits.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.arrivals.try_recv().is_err()
    }
}

/// A request as a node saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) id: RequestId,
    pub(crate) opcode: Opcode,
    pub(crate) key: Vec<u8>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) text: String,
}

impl Asked {
    fn new(id: RequestId, request: &Request<'_>) -> Self {
        let (key, deadline) = match request {
            Request::Put { key, options, .. } | Request::Delete { key, options, .. } => {
                (key.to_vec(), options.deadline)
            }
            Request::Get { key, options, .. } => (key.to_vec(), options.deadline),
            Request::Scan(scan) => (scan.cursor.unwrap_or(scan.start).to_vec(), None),
            Request::Hello(_) | Request::Echo { .. } | Request::Status => (Vec::new(), None),
        };
        Self {
            id,
            opcode: request.opcode(),
            key,
            deadline,
            text: format!("{request:?}"),
        }
    }
}

/// The node's end of one connection.
pub(crate) struct Peer {
    stream: BoxStream,
    buffer: BytesMut,
}

impl Peer {
    pub(crate) async fn next(&mut self) -> Asked {
        self.next_or_end().await.expect("the client is still there")
    }

    /// The next request; `None` when the client closed the connection.
    pub(crate) async fn next_or_end(&mut self) -> Option<Asked> {
        loop {
            match decode_request(&self.buffer, &FrameLimits::FULL).expect("clients send frames") {
                Decode::Frame {
                    consumed,
                    id,
                    request,
                    ..
                } => {
                    let asked = Asked::new(id, &request.expect("clients send sound requests"));
                    self.buffer.advance(consumed);
                    return Some(asked);
                }
                Decode::Incomplete { .. } => {
                    let read = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer))
                        .await
                        .expect("a request comes in time")
                        .expect("memory does not fail");
                    if read == 0 {
                        return None;
                    }
                }
            }
        }
    }

    pub(crate) async fn next_many(&mut self, count: usize) -> Vec<Asked> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.next().await);
        }
        all
    }

    /// Reads what is there, without looking at it; how much.
    pub(crate) async fn take_some(&mut self) -> usize {
        self.buffer.reserve(STREAM_BYTES);
        let read = self.stream.read_buf(&mut self.buffer).await;
        read.expect("memory does not fail")
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        // The client may have gone, which is then the point of the test.
        let _sent = self.write_and_flush(bytes).await;
    }

    async fn write_and_flush(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    pub(crate) async fn send(&mut self, response: &Response<'_>) {
        let mut out = BytesMut::new();
        encode_response(&mut out, response);
        self.send_bytes(&out).await;
    }

    pub(crate) async fn accept_hello(&mut self, hello: &Asked, cluster: ClusterId) {
        let reply = HelloReply {
            version: HELLO_VERSION,
            features: 0,
            cluster,
            node: NodeId::new(1),
        };
        let response = Response {
            value: &reply.encode(),
            ..Response::new(hello.id, Opcode::Hello, Status::Ok)
        };
        self.send(&response).await;
    }

    /// Answers `ok` with a revision and a value.
    pub(crate) async fn answer(&mut self, asked: &Asked, value: &[u8]) {
        let response = Response {
            fields: ResponseFields::with_revision(Revision::new(65_536)),
            value,
            ..Response::new(asked.id, asked.opcode, Status::Ok)
        };
        self.send(&response).await;
    }

    pub(crate) async fn refuse(&mut self, asked: &Asked, status: Status) {
        self.refuse_for(asked, status, None).await;
    }

    pub(crate) async fn refuse_for(
        &mut self,
        asked: &Asked,
        status: Status,
        retry_after: Option<Duration>,
    ) {
        let fields = ResponseFields {
            retry_after,
            ..ResponseFields::default()
        };
        let mut out = BytesMut::new();
        encode_error(
            &mut out,
            asked.id,
            asked.opcode.to_byte(),
            status,
            &fields,
            "as scripted",
        );
        self.send_bytes(&out).await;
    }

    /// Answers every request with its key until the client goes.
    pub(crate) async fn answer_with_keys(mut self) {
        while let Some(asked) = self.next_or_end().await {
            self.answer(&asked, &asked.key.clone()).await;
        }
    }
}

pub(crate) fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Request<'a> {
    Request::Put {
        database: 0,
        key,
        value,
        options: WriteOptions::default(),
    }
}

pub(crate) fn get(key: &[u8]) -> Request<'_> {
    Request::Get {
        database: 0,
        key,
        options: ReadOptions::default(),
    }
}

pub(crate) fn within(duration: Duration) -> Instant {
    Instant::now() + duration
}

pub(crate) fn soon() -> Instant {
    within(Duration::from_secs(5))
}

/// A connection to a fresh node, with the node's end of it.
pub(crate) async fn connected(options: &ConnectionOptions) -> (Connection, Peer, Arc<Network>) {
    connected_with_buffer(options, STREAM_BYTES).await
}

pub(crate) async fn connected_with_buffer(
    options: &ConnectionOptions,
    stream_bytes: usize,
) -> (Connection, Peer, Arc<Network>) {
    let network = Network::new();
    let mut node = network.node_with_buffer("a:1", stream_bytes);
    let (connection, peer) = tokio::join!(
        Connection::open(network.as_ref(), "a:1", options, soon()),
        node.accept()
    );
    (connection.expect("the node accepts"), peer, network)
}

/// A client that begins with the first endpoint.
pub(crate) fn builder(network: &Arc<Network>, endpoints: &[&str]) -> ClientBuilder {
    Client::builder()
        .endpoints(endpoints.iter().copied())
        .transport(Arc::clone(network) as Arc<dyn Transport>)
        .rng(Arc::new(SeededRng::new(seed_for_first(endpoints.len()))))
}

pub(crate) fn client(network: &Arc<Network>, endpoints: &[&str]) -> Client {
    builder(network, endpoints)
        .build()
        .expect("endpoints are sound")
}

/// A seed whose first number chooses endpoint 0.
fn seed_for_first(endpoints: usize) -> u64 {
    let endpoints = u64::try_from(endpoints).expect("a handful");
    (0..1_000)
        .find(|seed| SeededRng::new(*seed).next_u64().is_multiple_of(endpoints))
        .expect("every third seed or so")
}
