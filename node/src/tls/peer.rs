//! TLS between nodes: both sides prove which node of which cluster they are before any other byte
//! is read.
//!
//! The dialler demands the name of the node that it wants; rustls checks it during the handshake.
//! The acceptor learns from the peer hello who the dialler claims to be and calls
//! [`PeerTls::verify_peer`] with the certificate.

use std::io;
use std::sync::Arc;

use kelp_raft::{ClusterId, NodeId};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::{TlsError, TlsMaterial};
use crate::certs::node_name;
use crate::peer::LinkSecret;

/// ALPN of the peer protocol, so that no other TLS service is mistaken for a peer.
const ALPN_PEER: &[u8] = b"kelp-peer/1";

/// TLS of the peer port of one node.
#[derive(Clone)]
pub struct PeerTls {
    cluster: ClusterId,
    node: NodeId,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl PeerTls {
    /// Prepares both directions for `node` of `cluster`, and checks that the certificate is that
    /// node's own.
    pub fn new(material: &TlsMaterial, cluster: ClusterId, node: NodeId) -> Result<Self, TlsError> {
        check_own_identity(material, cluster, node)?;
        Ok(Self {
            cluster,
            node,
            acceptor: TlsAcceptor::from(Arc::new(server_config(material)?)),
            connector: TlsConnector::from(Arc::new(client_config(material, ALPN_PEER)?)),
        })
    }

    /// The cluster whose nodes are let in.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The node that this side proves to be.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Shakes hands as the side that was dialled. The caller bounds the time.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        Ok(TlsStream::Server(self.acceptor.accept(stream).await?))
    }

    /// Shakes hands as the dialling side and accepts nobody but `peer`. The caller bounds the time.
    pub async fn connect<S>(&self, peer: NodeId, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let name = ServerName::try_from(node_name(self.cluster, peer));
        let name = name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connected = self.connector.connect(name, stream).await?;
        Ok(TlsStream::Client(connected))
    }

    /// The secret that both ends of `stream` have in common, for datagrams of its dialler, given who
    /// the other side is.
    pub(crate) fn secret<S>(
        &self,
        stream: &TlsStream<S>,
        peer: NodeId,
    ) -> Result<LinkSecret, rustls::Error> {
        let (cluster, own) = (self.cluster, self.node);
        match stream {
            TlsStream::Client(stream) => LinkSecret::export(stream.get_ref().1, cluster, own, peer),
            TlsStream::Server(stream) => LinkSecret::export(stream.get_ref().1, cluster, peer, own),
        }
    }

    /// Checks that the certificate of the other side of `stream` is that of node `claimed` of this
    /// cluster.
    ///
    /// The chain was verified by the handshake; this is the check of the name.
    pub fn verify_peer<S>(&self, stream: &TlsStream<S>, claimed: NodeId) -> Result<(), TlsError> {
        let (_, session) = stream.get_ref();
        let certificates = session.peer_certificates().unwrap_or_default();
        let Some(leaf) = certificates.first() else {
            return Err(TlsError::Bundle("peer sent no certificate".to_owned()));
        };
        check_name(leaf, &node_name(self.cluster, claimed))
    }
}

fn check_own_identity(
    material: &TlsMaterial,
    cluster: ClusterId,
    node: NodeId,
) -> Result<(), TlsError> {
    let leaf = material.parts.chain.first();
    let leaf = leaf.ok_or_else(|| TlsError::Bundle("it holds no certificate".to_owned()))?;
    check_name(leaf, &node_name(cluster, node))
}

fn check_name(leaf: &CertificateDer<'_>, expected: &str) -> Result<(), TlsError> {
    let parsed = ParsedCertificate::try_from(leaf)?;
    let name = ServerName::try_from(expected)
        .map_err(|error| TlsError::Bundle(format!("{expected}: {error}")))?;
    rustls::client::verify_server_name(&parsed, &name).map_err(|_| TlsError::WrongIdentity {
        expected: expected.to_owned(),
        found: crate::certs::summarize_der(leaf)
            .map_or_else(|error| error, |summary| summary.names.join(", ")),
    })
}

fn server_config(material: &TlsMaterial) -> Result<ServerConfig, TlsError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(
        Arc::clone(&material.parts.roots),
        Arc::clone(&material.provider),
    )
    .build()
    .map_err(|error| TlsError::Bundle(error.to_string()))?;
    let mut config = ServerConfig::builder_with_details(
        Arc::clone(&material.provider),
        Arc::clone(&material.clock),
    )
    .with_protocol_versions(&[&TLS13])?
    .with_client_cert_verifier(verifier)
    .with_single_cert(material.parts.chain.clone(), material.parts.key.clone_key())?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config.alpn_protocols = vec![ALPN_PEER.to_vec()];
    Ok(config)
}

/// How a node dials: shows its own certificate, trusts the cluster's authority alone.
pub(super) fn client_config(material: &TlsMaterial, alpn: &[u8]) -> Result<ClientConfig, TlsError> {
    let mut config = ClientConfig::builder_with_details(
        Arc::clone(&material.provider),
        Arc::clone(&material.clock),
    )
    .with_protocol_versions(&[&TLS13])?
    .with_root_certificates(Arc::clone(&material.parts.roots))
    .with_client_auth_cert(material.parts.chain.clone(), material.parts.key.clone_key())?;
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(config)
}
