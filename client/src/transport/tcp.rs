//! TCP and UDP of the operating system, through tokio.
//!
//! Every stream has `TCP_NODELAY` set: both sides gather frames into large writes themselves, and
//! the last small segment of a batch must not wait for an acknowledgement.

use std::io;
use std::net::SocketAddr;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream, UdpSocket, lookup_host};

use super::{BoxStream, Datagrams, Listener, Transport};

/// The real network.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTransport;

impl Transport for TokioTransport {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        async move {
            #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
            let listener = TcpListener::bind(address).await?;
            Ok(Box::new(listener) as Box<dyn Listener>)
        }
        .boxed()
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        async move {
            #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxStream)
        }
        .boxed()
    }

    fn bind_datagrams(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Datagrams>>> {
        async move {
            #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
            let socket = UdpSocket::bind(address).await?;
            // Until tokio has seen the socket writable once, `try_send_to` would refuse.
            socket.writable().await?;
            Ok(Box::new(socket) as Box<dyn Datagrams>)
        }
        .boxed()
    }

    fn resolve<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        async move {
            #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
            let addresses: Vec<_> = lookup_host(address).await?.collect();
            if addresses.is_empty() {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "name has no address",
                ));
            }
            Ok(addresses)
        }
        .boxed()
    }
}

impl Listener for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        async move {
            let (stream, address) = TcpListener::accept(self).await?;
            stream.set_nodelay(true)?;
            Ok((Box::new(stream) as BoxStream, address))
        }
        .boxed()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}

impl Datagrams for UdpSocket {
    fn try_send_to(&self, datagram: &[u8], target: SocketAddr) -> io::Result<usize> {
        UdpSocket::try_send_to(self, datagram, target)
    }

    fn receive_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
        self.recv_from(buffer).boxed()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        UdpSocket::local_addr(self)
    }
}
