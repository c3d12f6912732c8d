//! The door to the network, for clients and nodes alike.
//!
//! Production code holds an `Arc<dyn Transport>` and never opens a socket itself, so that the same
//! code runs over a simulated network. Streams are plain bytes: TLS is laid over them by the
//! caller. Addresses are "host:port" texts where a name may have to be looked up, and socket
//! addresses where this machine's own are meant.

mod tcp;

use std::io;
use std::net::SocketAddr;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

pub use tcp::TokioTransport;

/// A connected, ordered stream of bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A stream of whatever kind.
pub type BoxStream = Box<dyn ByteStream>;

/// Opens streams, listeners and datagram sockets.
pub trait Transport: Send + Sync + 'static {
    /// Starts to listen on an address of this machine; port 0 takes any free port.
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>>;

    /// Opens a stream to "host:port". Has no deadline of its own; dropping the future gives up.
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>>;

    /// Opens a socket for datagrams on an address of this machine; port 0 takes any free port.
    fn bind_datagrams(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Datagrams>>>;

    /// Looks up "host:port"; not empty when it succeeds.
    fn resolve<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Accepts streams.
pub trait Listener: Send + Sync {
    /// Waits for the next stream. Cancel-safe. An error concerns one stream or a shortage (file
    /// descriptors): the caller waits a little and goes on.
    fn accept(&self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>>;

    /// The address listened on, with the real port.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Sends and receives datagrams, unordered and unreliable.
pub trait Datagrams: Send + Sync {
    /// Hands over one datagram at once, or fails with `WouldBlock` when the socket is full.
    fn try_send_to(&self, datagram: &[u8], target: SocketAddr) -> io::Result<usize>;

    /// Waits for a datagram; what does not fit the buffer is cut off. Cancel-safe.
    fn receive_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>>;

    /// The address bound, with the real port.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}
