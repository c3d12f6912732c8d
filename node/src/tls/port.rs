//! TLS of the ports that clients and operators use: optional where the node allows plaintext, by
//! the first byte.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kelp_client::BoxStream;
use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{FirstByte, Sniffed, TlsError, TlsMaterial, sniff};
use crate::certs::{Identity, summarize_der};

/// Whether clients must show a certificate of the cluster's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// A certificate is checked when it is shown; a client without one is let in and must log in
    /// otherwise.
    Optional,
    /// No certificate, no connection.
    Required,
}

/// How one listening port answers new connections. Cheap to clone.
#[derive(Clone)]
pub struct PortTls {
    acceptor: Option<TlsAcceptor>,
    plaintext: bool,
}

impl PortTls {
    /// A port that speaks plaintext only.
    pub fn plaintext() -> Self {
        Self {
            acceptor: None,
            plaintext: true,
        }
    }

    /// A port that speaks TLS 1.3, and also plaintext if `plaintext` says so.
    ///
    /// `alpn` is offered to clients that ask for it; clients that send no ALPN are let in.
    pub fn new(
        material: &TlsMaterial,
        auth: ClientAuth,
        alpn: &[&[u8]],
        plaintext: bool,
    ) -> Result<Self, TlsError> {
        let config = server_config(material, auth, alpn)?;
        Ok(Self {
            acceptor: Some(TlsAcceptor::from(Arc::new(config))),
            plaintext,
        })
    }

    /// Whether a connection without TLS is let in.
    pub fn allows_plaintext(&self) -> bool {
        self.plaintext
    }

    /// Looks at the first byte, shakes hands if it announces TLS, and refuses what the port does
    /// not speak.
    ///
    /// Cancel safe in the sense that dropping it closes the connection. The caller bounds the time.
    pub async fn accept(&self, stream: BoxStream) -> io::Result<PortStream> {
        match self.meet(stream).await? {
            Accepted::Ready(stream) => Ok(stream),
            Accepted::NotTls(_) => Err(refused("this port speaks tls only")),
        }
    }

    /// Like [`PortTls::accept`], but a connection in plaintext that the port does not serve comes
    /// back, so that it can be told so.
    pub async fn meet(&self, stream: BoxStream) -> io::Result<Accepted> {
        let (first, stream) = sniff(stream).await?;
        match (first, &self.acceptor) {
            (FirstByte::Tls, Some(acceptor)) => {
                let stream = acceptor.accept(stream).await?;
                Ok(Accepted::Ready(PortStream::Tls(Box::new(stream))))
            }
            (FirstByte::Plaintext, _) if self.plaintext => {
                Ok(Accepted::Ready(PortStream::Plain(stream)))
            }
            (FirstByte::Tls, None) => Err(refused("tls is not configured on this port")),
            (FirstByte::Plaintext, _) => Ok(Accepted::NotTls(stream)),
        }
    }
}

/// What became of a new connection.
pub enum Accepted {
    /// It can be served.
    Ready(PortStream),
    /// It is in plaintext, and the port speaks TLS only. Nothing of it was read yet.
    NotTls(Sniffed<BoxStream>),
}

/// An accepted connection of a client or HTTP port.
pub enum PortStream {
    /// Without TLS.
    Plain(Sniffed<BoxStream>),
    /// With TLS.
    Tls(Box<TlsStream<Sniffed<BoxStream>>>),
}

impl PortStream {
    /// Who the other side proved to be; `None` without TLS, without a certificate, or with a
    /// foreign one.
    pub fn identity(&self) -> Option<Identity> {
        let Self::Tls(stream) = self else {
            return None;
        };
        let (_, session) = stream.get_ref();
        let leaf = session.peer_certificates()?.first()?;
        let summary = summarize_der(leaf).ok()?;
        (summary.identity != Identity::Foreign).then_some(summary.identity)
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

fn refused(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn server_config(
    material: &TlsMaterial,
    auth: ClientAuth,
    alpn: &[&[u8]],
) -> Result<ServerConfig, TlsError> {
    let mut verifier = WebPkiClientVerifier::builder_with_provider(
        Arc::clone(&material.parts.roots),
        Arc::clone(&material.provider),
    );
    if auth == ClientAuth::Optional {
        verifier = verifier.allow_unauthenticated();
    }
    let verifier = verifier
        .build()
        .map_err(|error| TlsError::Bundle(error.to_string()))?;
    let mut config = ServerConfig::builder_with_details(
        Arc::clone(&material.provider),
        Arc::clone(&material.clock),
    )
    .with_protocol_versions(&[&TLS13])?
    .with_client_cert_verifier(verifier)
    .with_single_cert(material.parts.chain.clone(), material.parts.key.clone_key())?;
    // A resumed session would keep a login that a rotated authority no longer grants, and
    // connections are long-lived.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

impl AsyncRead for PortStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
