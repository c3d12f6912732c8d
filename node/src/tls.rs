//! TLS for every port of a node: who is let in, and with which certificate the node answers.
//!
//! Two families of configuration come from one bundle. [`PeerTls`] is for the peer port: TLS 1.3,
//! certificates on both sides, and no resumption at all, because a resumed session would skip the
//! certificate check. [`PortTls`] is for the client and HTTP ports, where the first byte decides
//! between TLS and plaintext. The cryptographic provider and the clock are arguments; nothing here
//! installs a process-wide default, so several nodes can live in one process and a simulation can
//! fake the time at which a certificate expires.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kelp_seams::{Clock, WallMillis};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::time_provider::TimeProvider;

use crate::certs::{Bundle, BundleKind, CertificateSummary, CertsError, summarize};

mod own;
mod peer;
mod port;
mod sniff;
#[cfg(test)]
mod tests;

pub use own::OwnTls;
pub use peer::PeerTls;
pub use port::{Accepted, ClientAuth, PortStream, PortTls};
pub use sniff::{FirstByte, Sniffed, sniff};

/// Why a TLS configuration could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The bundle could not be read.
    #[error("cannot read the certificates")]
    Certs(#[from] CertsError),
    /// The bundle was read, and is not usable.
    #[error("certificate bundle is unusable: {0}")]
    Bundle(String),
    /// The certificate belongs to someone else.
    #[error("certificate stands for {found}, expected {expected}")]
    WrongIdentity {
        /// The name that this node needs.
        expected: String,
        /// The names in the certificate.
        found: String,
    },
    /// rustls refused the parts.
    #[error("tls configuration is refused")]
    Rustls(#[from] rustls::Error),
}

/// A parsed bundle together with the provider and clock that its users need.
///
/// Cheap to clone; the key is shared and never printed.
#[derive(Clone)]
pub struct TlsMaterial {
    parts: Arc<Parts>,
    provider: Arc<CryptoProvider>,
    clock: Arc<dyn TimeProvider>,
}

struct Parts {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    summary: CertificateSummary,
}

impl TlsMaterial {
    /// Reads the node bundle in `directory`.
    pub fn load(directory: &Path, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let bundle = Bundle::read(directory, BundleKind::Node)?;
        Self::from_bundle(&bundle, default_provider(), clock)
    }

    /// Parses a bundle that is already in memory.
    pub fn from_bundle(
        bundle: &Bundle,
        provider: Arc<CryptoProvider>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TlsError> {
        let unusable = |error: &dyn fmt::Display| TlsError::Bundle(error.to_string());
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(bundle.authority_pem.as_bytes()) {
            roots.add(authority.map_err(|error| unusable(&error))?)?;
        }
        let chain = CertificateDer::pem_slice_iter(bundle.certificate_pem.as_bytes());
        let chain: Result<Vec<_>, _> = chain.collect();
        let chain = chain.map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(bundle.key_pem.as_bytes());
        let key = key.map_err(|error| unusable(&error))?;
        let summary = summarize(bundle.certificate_pem.as_bytes(), Path::new("certificate"))?;
        let parts = Parts {
            roots: Arc::new(roots),
            chain,
            key,
            summary,
        };
        Ok(Self {
            parts: Arc::new(parts),
            provider,
            clock: Arc::new(SeamTime(clock)),
        })
    }

    /// What the certificate says.
    pub fn summary(&self) -> &CertificateSummary {
        &self.parts.summary
    }

    /// When the certificate expires.
    pub fn not_after(&self) -> WallMillis {
        self.parts.summary.not_after
    }
}

impl fmt::Debug for TlsMaterial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsMaterial")
            .field("certificate", &self.parts.summary.subject)
            .finish_non_exhaustive()
    }
}

/// The provider of production: aws-lc-rs, named here and nowhere else.
pub fn default_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Lets rustls read the time from the [`Clock`] seam.
struct SeamTime(Arc<dyn Clock>);

impl fmt::Debug for SeamTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SeamTime")
    }
}

impl TimeProvider for SeamTime {
    fn current_time(&self) -> Option<UnixTime> {
        let since_epoch = Duration::from_millis(self.0.wall().get());
        Some(UnixTime::since_unix_epoch(since_epoch))
    }
}
