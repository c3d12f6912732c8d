//! Datagrams in memory: delivered at once, bounded, and lost as a test says.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kelp_client::{BoxStream, Datagrams, Listener, Transport};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc;

use crate::peer::lock;

/// Datagrams that one socket holds, like the buffer of a system.
pub(super) const HELD_MAX: usize = 256;

type Packet = (Vec<u8>, SocketAddr);

/// Says whether a datagram from one address to another arrives.
type Filter = Box<dyn FnMut(SocketAddr, SocketAddr) -> bool + Send>;

/// A network of sockets.
#[derive(Default)]
pub(super) struct Network {
    sockets: Mutex<HashMap<SocketAddr, mpsc::Sender<Packet>>>,
    filter: Mutex<Option<Filter>>,
    names: Mutex<HashMap<String, SocketAddr>>,
}

/// One node's way to the network.
pub(super) struct Door(pub(super) Arc<Network>);

impl Network {
    pub(super) fn set_filter(
        &self,
        filter: impl FnMut(SocketAddr, SocketAddr) -> bool + Send + 'static,
    ) {
        *lock(&self.filter) = Some(Box::new(filter));
    }

    pub(super) fn set_name(&self, name: &str, address: SocketAddr) {
        lock(&self.names).insert(name.to_owned(), address);
    }

    pub(super) fn send(&self, bytes: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<usize> {
        let passes = lock(&self.filter)
            .as_mut()
            .is_none_or(|filter| filter(from, to));
        let sockets = lock(&self.sockets);
        if let Some(socket) = sockets.get(&to).filter(|_| passes) {
            let sent = socket.try_send((bytes.to_vec(), from));
            sent.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        }
        Ok(bytes.len())
    }
}

struct Socket {
    network: Arc<Network>,
    address: SocketAddr,
    arrivals: AsyncMutex<mpsc::Receiver<Packet>>,
}

impl Transport for Door {
    fn listen(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        async { Err(io::ErrorKind::Unsupported.into()) }.boxed()
    }

    fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        async { Err(io::ErrorKind::Unsupported.into()) }.boxed()
    }

    fn bind_datagrams(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Datagrams>>> {
        async move {
            let mut sockets = lock(&self.0.sockets);
            let is_taken = sockets
                .get(&address)
                .is_some_and(|socket| !socket.is_closed());
            if is_taken {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            let (sender, arrivals) = mpsc::channel(HELD_MAX);
            sockets.insert(address, sender);
            Ok(Box::new(Socket {
                network: Arc::clone(&self.0),
                address,
                arrivals: AsyncMutex::new(arrivals),
            }) as Box<dyn Datagrams>)
        }
        .boxed()
    }

    fn resolve<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        let found = lock(&self.0.names).get(address).copied();
        async move {
            found
                .map(|found| vec![found])
                .ok_or(io::ErrorKind::NotFound.into())
        }
        .boxed()
    }
}

impl Datagrams for Socket {
    fn try_send_to(&self, datagram: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.network.send(datagram, self.address, target)
    }

    fn receive_from<'a>(
        &'a self,
        buffer: &'a mut [u8],
    ) -> BoxFuture<'a, io::Result<(usize, SocketAddr)>> {
        async move {
            let packet = self.arrivals.lock().await.recv().await;
            let (bytes, from) = packet.ok_or(io::ErrorKind::BrokenPipe)?;
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Ok((length, from))
        }
        .boxed()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
