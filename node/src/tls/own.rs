//! TLS from a node's host to the node's own ports, for `kelp health`: whoever may read the node's
//! bundle may ask how it is.

use std::io;
use std::sync::Arc;

use kelp_raft::{ClusterId, NodeId};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::peer::client_config;
use super::{TlsError, TlsMaterial};
use crate::certs::node_name;

/// Dials the ports of the node that a bundle stands for.
pub struct OwnTls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl OwnTls {
    /// Prepares for the ports of `node` of `cluster`, whose bundle `material` is.
    pub fn new(
        material: &TlsMaterial,
        cluster: ClusterId,
        node: NodeId,
        alpn: &[u8],
    ) -> Result<Self, TlsError> {
        let name = ServerName::try_from(node_name(cluster, node));
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client_config(material, alpn)?)),
            name: name.map_err(|error| TlsError::Bundle(error.to_string()))?,
        })
    }

    /// Shakes hands; shows the node's own certificate. The caller bounds the time.
    pub async fn connect<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.connector.connect(self.name.clone(), stream).await
    }
}
