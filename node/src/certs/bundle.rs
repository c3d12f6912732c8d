//! A bundle: all that one node or client needs to prove who it is, as a folder of three files.

use std::fmt;
use std::path::Path;

use super::{CertsError, bundle_paths, files};

/// Whose bundle it is; decides the file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleKind {
    /// `node.crt` and `node.key`.
    Node,
    /// `client.crt` and `client.key`.
    Client,
}

impl BundleKind {
    pub(super) fn file_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("node.crt", "node.key"),
            Self::Client => ("client.crt", "client.key"),
        }
    }
}

/// A certificate, its key, and the authority that vouches for it, in PEM form.
#[derive(Clone)]
pub struct Bundle {
    /// Whose bundle it is.
    pub kind: BundleKind,
    /// The authority's certificate.
    pub authority_pem: String,
    /// The certificate.
    pub certificate_pem: String,
    /// The private key. Never logged: `Debug` leaves it out.
    pub key_pem: String,
}

impl Bundle {
    /// Writes the bundle into `directory`, which is created if absent, for its owner alone; the key
    /// gets mode 0600.
    ///
    /// Existing files are never overwritten: if there is one, nothing is written. The key is
    /// written first, so a certificate that lies there has its key.
    pub fn write(&self, directory: &Path) -> Result<(), CertsError> {
        files::create_directory(directory)?;
        let (authority, certificate, key) = bundle_paths(directory, self.kind);
        files::check_absent(&[&authority, &certificate, &key])?;
        files::write_secret(&key, &self.key_pem)?;
        files::write_public(&certificate, &self.certificate_pem)?;
        files::write_public(&authority, &self.authority_pem)
    }

    /// Writes the bundle in place of the one that may lie in `directory`.
    pub(crate) fn replace(&self, directory: &Path) -> Result<(), CertsError> {
        let (authority, certificate, key) = bundle_paths(directory, self.kind);
        for path in [authority, certificate, key] {
            files::remove(&path)?;
        }
        self.write(directory)
    }

    /// Reads the bundle of `kind` in `directory`.
    pub fn read(directory: &Path, kind: BundleKind) -> Result<Self, CertsError> {
        let (authority, certificate, key) = bundle_paths(directory, kind);
        Ok(Self {
            kind,
            authority_pem: files::read_public(&authority)?,
            certificate_pem: files::read_public(&certificate)?,
            key_pem: files::read_key(&key)?,
        })
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Bundle")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
