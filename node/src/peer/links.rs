//! The dialling side of the peer links: finds the connection of each call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use kelp_client::Transport;
use kelp_raft::{BusError, NodeId, PeerBus, PeerClass, SendPermit};
use kelp_seams::{Clock, Rng};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::book::{PeerBook, PeerHealth, lock};
use super::context::LinkContext;
use super::directory::DirectoryBook;
use super::link::Link;
use super::{PeerLimits, PeerOptions};
use crate::tls::PeerTls;

/// All outbound connections of a node. Cheap to clone; the last clone that goes closes them.
#[derive(Clone)]
pub struct PeerLinks {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<LinkContext>,
    book: Arc<PeerBook>,
    links: RwLock<HashMap<(NodeId, PeerClass), Running>>,
    /// `None` once the links are stopped.
    tasks: Mutex<Option<JoinSet<()>>>,
    runtime: Handle,
}

/// A link and the handle to its task, which the task set owns.
struct Running {
    link: Arc<Link>,
    task: AbortHandle,
}

impl PeerLinks {
    /// Makes the links of a node; nothing is dialled before the first call. Must be called within a
    /// tokio runtime, where its tasks then run.
    pub fn start(
        options: PeerOptions,
        transport: Arc<dyn Transport>,
        tls: PeerTls,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        directories: Arc<dyn DirectoryBook>,
    ) -> Self {
        debug_assert_eq!(options.node, tls.node());
        let context = LinkContext {
            boot: options.boot,
            directory: options.directory,
            directories,
            disowned: watch::Sender::new(false),
            limits: options.limits,
            transport,
            tls,
            rng,
        };
        Self {
            inner: Arc::new(Inner {
                context: Arc::new(context),
                book: Arc::new(PeerBook::new(clock)),
                links: RwLock::default(),
                tasks: Mutex::new(Some(JoinSet::new())),
                runtime: Handle::current(),
            }),
        }
    }

    /// Tells where `peer` is dialled, as `host:port`. An open connection stays; the next dial uses
    /// the new address, and does so without waiting for an earlier failure's pause. This node's own
    /// id is ignored.
    pub fn set_peer_address(&self, peer: NodeId, address: String) {
        if peer == self.inner.context.tls.node() {
            return;
        }
        let Some(record) = self.inner.book.record(peer) else {
            tracing::warn!(peer = peer.get(), "too many peers, address is ignored");
            return;
        };
        if record.set_address(address) {
            let links = self
                .inner
                .links
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            for ((node, _), running) in links.iter() {
                if *node == peer {
                    running.link.forget_failures();
                }
            }
        }
    }

    /// Closes the connections to a peer that has left the cluster, and forgets it. Its open calls
    /// fail.
    pub fn remove_peer(&self, peer: NodeId) {
        let links = self.inner.links.write();
        let mut links = links.unwrap_or_else(PoisonError::into_inner);
        links.retain(|(node, _), running| {
            if *node == peer {
                running.task.abort();
            }
            *node != peer
        });
        self.inner.book.forget(peer);
    }

    /// The health of every known peer.
    pub fn health(&self) -> Vec<PeerHealth> {
        self.inner.book.health()
    }

    /// The records that this side shares with [`super::PeerServer`].
    pub fn book(&self) -> Arc<PeerBook> {
        Arc::clone(&self.inner.book)
    }

    /// Whether a peer has refused this node because its data directory is another one than it was.
    pub fn is_disowned(&self) -> bool {
        *self.inner.context.disowned.borrow()
    }

    /// Resolves when [`PeerLinks::is_disowned`] holds.
    pub async fn disowned(&self) {
        let mut disowned = self.inner.context.disowned.subscribe();
        // The sender lives as long as these links.
        drop(disowned.wait_for(|disowned| *disowned).await);
    }

    /// Closes all connections and waits until they are gone. Calls fail from here on.
    pub async fn stop(&self) {
        let tasks = lock(&self.inner.tasks).take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }

    /// The node whose links these are.
    pub fn node(&self) -> NodeId {
        self.inner.context.tls.node()
    }

    pub(super) fn tls(&self) -> &PeerTls {
        &self.inner.context.tls
    }

    pub(super) fn context(&self) -> &LinkContext {
        &self.inner.context
    }

    pub(super) fn limits(&self) -> &PeerLimits {
        &self.inner.context.limits
    }

    /// Dials the control connection to `peer` if it is not open, unless a pause after failures is
    /// under way. A peer without an address is left alone.
    pub(crate) fn want_control(&self, peer: NodeId) {
        if let Ok(link) = self.link(peer, PeerClass::Control) {
            link.want();
        }
    }

    fn link(&self, peer: NodeId, class: PeerClass) -> Result<Arc<Link>, BusError> {
        let key = (peer, class);
        let inner = &self.inner;
        let links = inner.links.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = links.get(&key) {
            return Ok(Arc::clone(&running.link));
        }
        drop(links);
        if peer == inner.context.tls.node() {
            return Err(BusError::Unreachable("a node does not call itself".into()));
        }
        let record = inner.book.record(peer);
        let record = record.ok_or_else(|| BusError::Unreachable("too many peers".to_owned()))?;
        if record.address().is_none() {
            return Err(BusError::Unreachable(format!(
                "no address of node {peer} is known"
            )));
        }
        let mut links = inner.links.write().unwrap_or_else(PoisonError::into_inner);
        let entry = match links.entry(key) {
            Entry::Occupied(entry) => return Ok(Arc::clone(&entry.get().link)),
            Entry::Vacant(entry) => entry,
        };
        let mut tasks = lock(&inner.tasks);
        let tasks = tasks.as_mut();
        let tasks = tasks.ok_or_else(|| BusError::Unreachable("links are stopped".to_owned()))?;
        // Tasks of removed peers are reaped here, where a new one is added.
        while tasks.try_join_next().is_some() {}
        let link = Arc::new(Link::new(peer, class, record, Arc::clone(&inner.context)));
        let task = tasks.spawn_on(Arc::clone(&link).run(), &inner.runtime);
        entry.insert(Running {
            link: Arc::clone(&link),
            task,
        });
        Ok(link)
    }
}

impl PeerBus for PeerLinks {
    fn call(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        self.call_permitted(peer, class, request, deadline, SendPermit::default())
    }

    fn call_permitted(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
        permit: SendPermit,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        let deadline = Instant::now() + deadline;
        let queued = self.link(peer, class).and_then(|link| {
            let (id, receiver) = link.enqueue(request, permit)?;
            Ok((link, id, receiver))
        });
        match queued {
            Err(error) => ready(Err(error)).boxed(),
            Ok((link, id, receiver)) => {
                async move { link.reply(id, receiver, deadline).await }.boxed()
            }
        }
    }
}
