//! A transport whose outbound connections can be made to fall silent or break, by target address,
//! and whose datagrams can be made to reach nobody.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use kelp_client::{BoxStream, Datagrams, Listener, TokioTransport, Transport};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What happens to the connections to one address.
#[derive(Default)]
struct Link {
    /// Replies are held back.
    silent: bool,
    /// New connections never open.
    unreachable: bool,
    /// Connections with a lower number are broken.
    broken_below: u64,
    opened: u64,
    wakers: Vec<Waker>,
}

/// One node's way to the others.
#[derive(Clone, Default)]
pub(crate) struct TestTransport {
    links: Arc<Mutex<HashMap<String, Link>>>,
    udp_blocked: Arc<AtomicBool>,
}

impl TestTransport {
    /// From now on nothing comes back from `target`; requests still arrive there.
    pub(crate) fn hold_replies(&self, target: &str) {
        self.change(target, |link| link.silent = true);
    }

    /// From now on dialling `target` takes for ever.
    pub(crate) fn hold_dials(&self, target: &str) {
        self.change(target, |link| link.unreachable = true);
    }

    /// Breaks the open connections to `target`; new ones work.
    pub(crate) fn break_connections(&self, target: &str) {
        self.change(target, |link| {
            link.silent = false;
            link.broken_below = link.opened;
        });
    }

    /// From now on this node's datagrams reach nobody, or they do again.
    pub(crate) fn block_udp(&self, is_blocked: bool) {
        self.udp_blocked.store(is_blocked, Ordering::Relaxed);
    }

    fn change(&self, target: &str, change: impl FnOnce(&mut Link)) {
        let mut links = self.links();
        let link = links.entry(target.to_owned()).or_default();
        change(link);
        for waker in link.wakers.drain(..) {
            waker.wake();
        }
    }

    fn links(&self) -> MutexGuard<'_, HashMap<String, Link>> {
        self.links
            .lock()
            .expect("no test panics with this lock held")
    }
}

impl Transport for TestTransport {
    fn listen(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        TokioTransport.listen(address)
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        Box::pin(async move {
            let unreachable = self
                .links()
                .get(address)
                .is_some_and(|link| link.unreachable);
            if unreachable {
                std::future::pending::<()>().await;
            }
            let stream = TokioTransport.connect(address).await?;
            let mut links = self.links();
            let link = links.entry(address.to_owned()).or_default();
            let number = link.opened;
            link.opened += 1;
            let transport = self.clone();
            Ok(Box::new(TestStream {
                stream,
                transport,
                target: address.to_owned(),
                number,
            }) as BoxStream)
        })
    }

    fn bind_datagrams(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Datagrams>>> {
        let blocked = Arc::clone(&self.udp_blocked);
        Box::pin(async move {
            let socket = TokioTransport.bind_datagrams(address).await?;
            Ok(Box::new(TestDatagrams { socket, blocked }) as Box<dyn Datagrams>)
        })
    }

    fn resolve<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        TokioTransport.resolve(address)
    }
}

struct TestDatagrams {
    socket: Box<dyn Datagrams>,
    blocked: Arc<AtomicBool>,
}

impl Datagrams for TestDatagrams {
    fn try_send_to(&self, datagram: &[u8], target: SocketAddr) -> io::Result<usize> {
        if self.blocked.load(Ordering::Relaxed) {
            return Ok(datagram.len());
        }
        self.socket.try_send_to(datagram, target)
    }

    fn receive_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
        self.socket.receive_from(buffer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

struct TestStream {
    stream: BoxStream,
    transport: TestTransport,
    target: String,
    number: u64,
}

impl TestStream {
    fn is_broken(&self) -> bool {
        self.transport
            .links()
            .get(&self.target)
            .is_some_and(|link| self.number < link.broken_below)
    }
}

impl AsyncRead for TestStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        {
            let mut links = self.transport.links();
            let link = links.entry(self.target.clone()).or_default();
            if self.number < link.broken_below {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            link.wakers.push(context.waker().clone());
            if link.silent {
                return Poll::Pending;
            }
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TestStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_broken() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
