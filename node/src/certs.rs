//! The cluster's own certificate authority: who may call itself a node or a client of this cluster.
//!
//! One authority per cluster. Its certificate carries the cluster id in the subject (`CN=kelp
//! <hex>`), and every leaf carries it again in its name: `n<id>.<hex>.kelp.internal` for a node,
//! `u.<name>.<hex>.kelp.internal` for a client. So a certificate of another cluster is refused
//! twice, by signature and by name. The `kelp certs` commands and `kelp dev` call this module; a
//! running node only reads the bundle it was given, and never sees the authority's key.
//!
//! Secret keys come from the cryptographic library's own generator; the cluster id and serial
//! numbers come from the [`Rng`] seam. Files are described in `docs/operations/certificates.md`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kelp_raft::{ClusterId, NodeId};
use kelp_seams::{Clock, Rng, WallMillis};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};

mod bundle;
mod error;
mod files;
mod names;
mod summary;
#[cfg(test)]
mod tests;

pub use bundle::{Bundle, BundleKind};
pub use error::CertsError;
pub use names::{Identity, client_name, node_name};
pub use summary::{CertificateSummary, describe};
pub(crate) use summary::{summarize, summarize_der};

/// How long an authority is valid. Replacing it means touching every host, so it outlives the
/// hardware.
pub const AUTHORITY_LIFETIME: Duration = Duration::from_hours(24 * 365 * 20);

/// How long a leaf is valid unless the operator says otherwise: long enough that a yearly rotation
/// has slack.
pub const LEAF_LIFETIME: Duration = Duration::from_hours(24 * 365 * 2);

/// Certificates start this long before they are made, because the clocks of the hosts that check
/// them differ.
const BACKDATING: Duration = Duration::from_hours(1);

/// Bytes of a serial number. RFC 5280 allows 20; 16 random bytes never collide in practice.
const SERIAL_BYTES: usize = 16;

/// File name of the authority's certificate, both beside its key and in every bundle.
pub const AUTHORITY_CERTIFICATE_FILE: &str = "ca.crt";

/// File name of the authority's key. It exists only in the authority's own folder.
pub const AUTHORITY_KEY_FILE: &str = "ca.key";

/// The authority of one cluster, able to issue certificates.
///
/// Invariants: the key belongs to the certificate, and `cluster` is the id written in it.
pub struct Authority {
    cluster: ClusterId,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What to put into a node's certificate.
#[derive(Clone, Debug)]
pub struct NodeRequest {
    /// The id that the certificate grants.
    pub node: NodeId,
    /// More names of the host for clients that verify them: DNS names or IP addresses.
    pub hosts: Vec<String>,
    /// How long the certificate is valid.
    pub lifetime: Duration,
}

impl NodeRequest {
    /// A request for `node` that also answers to the names of this machine, for clients on the same
    /// host.
    pub fn local(node: NodeId) -> Self {
        let hosts = ["localhost", "127.0.0.1", "::1"];
        Self {
            node,
            hosts: hosts.map(str::to_owned).to_vec(),
            lifetime: LEAF_LIFETIME,
        }
    }
}

/// Creates a new authority with a new cluster id in `directory`, which is created if absent.
///
/// Refuses to overwrite an existing authority: that would orphan every certificate it issued.
pub fn init_authority(
    directory: &Path,
    clock: &dyn Clock,
    rng: &dyn Rng,
) -> Result<Authority, CertsError> {
    let mut cluster = [0; 16];
    rng.fill(&mut cluster);
    let authority = Authority::generate(ClusterId::new(cluster), clock, rng)?;
    files::create_directory(directory)?;
    let key_path = directory.join(AUTHORITY_KEY_FILE);
    let certificate_path = directory.join(AUTHORITY_CERTIFICATE_FILE);
    files::check_absent(&[&key_path, &certificate_path])?;
    files::write_secret(&key_path, &authority.issuer.key().serialize_pem())?;
    files::write_public(&certificate_path, &authority.certificate_pem)?;
    Ok(authority)
}

impl Authority {
    /// Makes an authority for `cluster` in memory, without touching any file.
    pub fn generate(
        cluster: ClusterId,
        clock: &dyn Clock,
        rng: &dyn Rng,
    ) -> Result<Self, CertsError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = authority_params(cluster);
        set_validity(&mut params, clock.wall(), AUTHORITY_LIFETIME);
        params.serial_number = Some(random_serial(rng));
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Self {
            cluster,
            certificate_pem,
            issuer: Issuer::new(params, key),
        })
    }

    /// Opens the authority in `directory` and checks that its key and certificate belong together.
    pub fn open(directory: &Path) -> Result<Self, CertsError> {
        let certificate_path = directory.join(AUTHORITY_CERTIFICATE_FILE);
        let key_path = directory.join(AUTHORITY_KEY_FILE);
        let certificate_pem = files::read_public(&certificate_path)?;
        let key_pem = files::read_key(&key_path)?;
        let key = KeyPair::from_pem(&key_pem).map_err(|source| CertsError::Malformed {
            path: key_path.clone(),
            reason: source.to_string(),
        })?;
        let summary = summarize(certificate_pem.as_bytes(), &certificate_path)?;
        let Identity::Authority(cluster) = summary.identity else {
            return Err(CertsError::NotAuthority {
                path: certificate_path,
            });
        };
        if summary.public_key != key.der_bytes() {
            return Err(CertsError::KeyMismatch { path: key_path });
        }
        Ok(Self {
            cluster,
            certificate_pem,
            issuer: Issuer::new(authority_params(cluster), key),
        })
    }

    /// The cluster that this authority vouches for.
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The authority's certificate in PEM form.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Issues the certificate that lets a host be `request.node`.
    pub fn issue_node(
        &self,
        request: &NodeRequest,
        clock: &dyn Clock,
        rng: &dyn Rng,
    ) -> Result<Bundle, CertsError> {
        let name = node_name(self.cluster, request.node);
        let mut sans = vec![names::dns_san(&name)?];
        for host in &request.hosts {
            sans.push(names::host_san(host)?);
        }
        let usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let leaf = Leaf { name, sans, usages };
        self.issue(BundleKind::Node, leaf, request.lifetime, clock, rng)
    }

    /// Issues a client certificate for `name`, a single DNS label: `[a-z0-9-]`, at most 63
    /// characters.
    pub fn issue_client(
        &self,
        name: &str,
        lifetime: Duration,
        clock: &dyn Clock,
        rng: &dyn Rng,
    ) -> Result<Bundle, CertsError> {
        let name = client_name(self.cluster, name)?;
        let sans = vec![names::dns_san(&name)?];
        let usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = Leaf { name, sans, usages };
        self.issue(BundleKind::Client, leaf, lifetime, clock, rng)
    }

    fn issue(
        &self,
        kind: BundleKind,
        leaf: Leaf,
        lifetime: Duration,
        clock: &dyn Clock,
        rng: &dyn Rng,
    ) -> Result<Bundle, CertsError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(leaf.name);
        params.subject_alt_names = leaf.sans;
        params.extended_key_usages = leaf.usages;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(random_serial(rng));
        set_validity(&mut params, clock.wall(), lifetime);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Bundle {
            kind,
            authority_pem: self.certificate_pem.clone(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }
}

/// The parts of a leaf that differ between nodes and clients.
struct Leaf {
    name: String,
    sans: Vec<SanType>,
    usages: Vec<ExtendedKeyUsagePurpose>,
}

/// The authority's parameters follow from the cluster id alone, so an opened authority signs as the
/// new one did.
fn authority_params(cluster: ClusterId) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(names::authority_subject(cluster));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A subject of nothing but a common name. X.520 caps it at 64 characters, and no reader decides by
/// it, so a longer one is cut; the name that counts is the subject alternative name.
fn common_name(mut name: String) -> DistinguishedName {
    name.truncate(64);
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

fn set_validity(params: &mut CertificateParams, now: WallMillis, lifetime: Duration) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = Duration::from_secs(now.get() / 1000);
    params.not_before = epoch + now.saturating_sub(BACKDATING);
    params.not_after = epoch + now.saturating_add(lifetime);
}

fn random_serial(rng: &dyn Rng) -> SerialNumber {
    let mut serial = [0; SERIAL_BYTES];
    rng.fill(&mut serial);
    // A serial number is a positive integer: the sign bit stays clear, and the first byte is never
    // zero.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    SerialNumber::from_slice(&serial)
}

/// Where a bundle's parts lie in `directory`: authority certificate, certificate, key.
pub(crate) fn bundle_paths(directory: &Path, kind: BundleKind) -> (PathBuf, PathBuf, PathBuf) {
    let (certificate, key) = kind.file_names();
    (
        directory.join(AUTHORITY_CERTIFICATE_FILE),
        directory.join(certificate),
        directory.join(key),
    )
}
