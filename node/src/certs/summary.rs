//! What a certificate says, for `kelp certs show`, for the expiry metric and for the checks at
//! start.

use std::net::IpAddr;
use std::path::Path;

use kelp_seams::WallMillis;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use super::{CertsError, Identity, files, names};

/// The readable parts of one certificate.
#[derive(Clone, Debug)]
pub struct CertificateSummary {
    /// Who it stands for.
    pub identity: Identity,
    /// The subject, as text.
    pub subject: String,
    /// The issuer's subject, as text.
    pub issuer: String,
    /// All DNS names and IP addresses in it.
    pub names: Vec<String>,
    /// The serial number in hexadecimal.
    pub serial: String,
    /// First moment at which it is valid.
    pub not_before: WallMillis,
    /// Last moment at which it is valid.
    pub not_after: WallMillis,
    /// It may prove a server.
    pub server: bool,
    /// It may prove a client.
    pub client: bool,
    pub(super) public_key: Vec<u8>,
}

/// Describes the first certificate in the PEM file `path`.
pub fn describe(path: &Path) -> Result<CertificateSummary, CertsError> {
    let pem = files::read_public(path)?;
    summarize(pem.as_bytes(), path)
}

/// Describes the first certificate in `pem`; `path` names it in errors.
pub(crate) fn summarize(pem: &[u8], path: &Path) -> Result<CertificateSummary, CertsError> {
    let malformed = |reason: String| CertsError::Malformed {
        path: path.to_owned(),
        reason,
    };
    let der = CertificateDer::from_pem_slice(pem).map_err(|error| malformed(error.to_string()))?;
    summarize_der(&der).map_err(malformed)
}

/// Describes a certificate; the error says what is wrong with it.
pub(crate) fn summarize_der(der: &CertificateDer<'_>) -> Result<CertificateSummary, String> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
    let names = alternative_names(&certificate)?;
    let usage = certificate
        .extended_key_usage()
        .map_err(|error| error.to_string())?;
    let has = |flag: fn(&x509_parser::extensions::ExtendedKeyUsage<'_>) -> bool| {
        usage.as_ref().is_some_and(|usage| flag(usage.value))
    };
    let subject = certificate.subject();
    let common_name = subject
        .iter_common_name()
        .next()
        .and_then(|name| name.as_str().ok());
    let identity = if certificate.is_ca() {
        common_name
            .and_then(names::parse_authority_subject)
            .map_or(Identity::Foreign, Identity::Authority)
    } else {
        leaf_identity(&names)
    };
    Ok(CertificateSummary {
        identity,
        subject: subject.to_string(),
        issuer: certificate.issuer().to_string(),
        names,
        serial: certificate.raw_serial_as_string(),
        not_before: wall(certificate.validity().not_before),
        not_after: wall(certificate.validity().not_after),
        server: has(|usage| usage.server_auth),
        client: has(|usage| usage.client_auth),
        public_key: certificate.public_key().subject_public_key.data.to_vec(),
    })
}

/// The one internal name among `names`. Two of them would be two identities, so they count as none.
fn leaf_identity(names: &[String]) -> Identity {
    let mut found = names.iter().filter_map(|name| names::parse_name(name));
    match (found.next(), found.next()) {
        (Some(identity), None) => identity,
        _ => Identity::Foreign,
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Result<Vec<String>, String> {
    let extension = certificate
        .subject_alternative_name()
        .map_err(|error| error.to_string())?;
    let Some(extension) = extension else {
        return Ok(Vec::new());
    };
    let names = extension.value.general_names.iter();
    Ok(names.filter_map(general_name).collect())
}

fn general_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = <[u8; 4]>::try_from(*bytes)
                .map(IpAddr::from)
                .or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

fn wall(time: ASN1Time) -> WallMillis {
    let seconds = u64::try_from(time.timestamp()).unwrap_or(0);
    WallMillis::new(seconds.saturating_mul(1000))
}
