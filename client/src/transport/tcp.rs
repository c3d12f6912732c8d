//! TCP and UDP of the operating system, through tokio.
//!
//! Every stream has `TCP_NODELAY` set: both sides gather frames into large writes themselves, and
//! the last small segment of a batch must not wait for an acknowledgement. Keepalive probes find
//! out that the other machine is gone, on a connection that has nothing to say.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, UdpSocket, lookup_host};

use super::{BoxStream, Datagrams, Listener, Transport};

/// An idle connection is probed after this long.
const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);

/// Pause between probes that are not answered.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Probes without an answer after which the connection is broken.
const KEEPALIVE_PROBES: u32 = 3;

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
            prepare(&stream)?;
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

/// Sets what every stream needs, dialled or accepted.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

impl Listener for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        async move {
            let (stream, address) = TcpListener::accept(self).await?;
            prepare(&stream)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_prepared_stream_is_probed_when_it_has_been_idle() {
        #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        #[expect(clippy::disallowed_methods, reason = "this is the transport seam")]
        let stream = TcpStream::connect(address).await.unwrap();
        prepare(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(stream.nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
    }
}
