//! The ports that clients are let in through, of either protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use kelp_client::Listener;
use kelp_storage::Database;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::GROUP;
use super::vital::Vitals;
use crate::client_port::{self, PortContext};
use crate::observe::RespMetrics;
use crate::peer::PeerLinks;
use crate::redis_port::{self, Cursors, RedisContext, RedisPeers};
use crate::tls::PortTls;

/// What both ports are made of.
pub(super) struct ClientPorts {
    pub(super) client: (Box<dyn Listener>, PortTls),
    /// The Redis port with the address that it really listens at, if there is one.
    pub(super) resp: Option<(Box<dyn Listener>, PortTls, SocketAddr)>,
    pub(super) context: Arc<PortContext>,
    pub(super) database: Database,
    pub(super) links: PeerLinks,
    pub(super) cursors: Arc<Cursors>,
    pub(super) resp_metrics: Arc<RespMetrics>,
}

impl ClientPorts {
    /// Lets clients in until `stop` says so.
    pub(super) fn open(self, vitals: &Vitals, stop: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let mut ports = Vec::new();
        if let Some((listener, tls, address)) = self.resp {
            let peers = RedisPeers {
                links: self.links,
                group: GROUP,
                cursors: self.cursors,
            };
            let context = Arc::clone(&self.context);
            let metrics = self.resp_metrics;
            let context = RedisContext::new(context, self.database, peers, metrics, address);
            let port = redis_port::run(listener, tls, Arc::new(context), stop.clone());
            ports.push(vitals.spawn("redis port", port));
        }
        let (listener, tls) = self.client;
        let port = client_port::run(listener, tls, self.context, stop.clone());
        ports.push(vitals.spawn("client port", port));
        ports
    }
}
