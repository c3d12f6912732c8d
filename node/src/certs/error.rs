//! Why a certificate could not be made or read.

use std::io;
use std::path::PathBuf;

/// What went wrong with certificate files or requests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertsError {
    /// The file exists; certificates and keys are never overwritten.
    #[error("{path} exists already and is not overwritten")]
    Exists {
        /// The file that is in the way.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot use {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not what its name says.
    #[error("{path} is malformed: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// Others than the owner and its group can use the private key.
    #[error("private key {path} has mode {mode:03o}; others must have no access (chmod 600)")]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key is not the one that the certificate was made for.
    #[error("private key {path} does not belong to the certificate beside it")]
    KeyMismatch {
        /// The key file.
        path: PathBuf,
    },
    /// The certificate is not a Kelp authority.
    #[error("{path} is not the certificate of a Kelp authority")]
    NotAuthority {
        /// The certificate file.
        path: PathBuf,
    },
    /// A client or host name that no certificate may carry.
    #[error("name {name:?} is refused: {reason}")]
    BadName {
        /// The name as given.
        name: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The cryptographic library failed.
    #[error("cannot make the certificate")]
    Generate(#[from] rcgen::Error),
}
