//! What can go wrong with an sstable; every error names the file and the place in it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Corruption, OpenError, StorageError};

/// A failed operation on one sstable.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SstableError {
    /// The file is missing, shorter or longer than it was written, or holds wrong bytes.
    #[error(transparent)]
    Corruption(#[from] Corruption),
    /// The file was written by a newer version of the program.
    #[error("{} has format version {found}, at most {supported} is known", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u16,
        /// The newest version that can be read.
        supported: u16,
    },
    /// The operating system failed; reading may be tried again, a table half written is void.
    #[error("cannot {action} {} at byte {offset}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
}

impl SstableError {
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
        offset: u64,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            offset,
            source: Arc::new(source),
        }
    }
}

impl From<SstableError> for StorageError {
    fn from(error: SstableError) -> Self {
        match error {
            SstableError::Corruption(corruption) => Self::Corruption(corruption),
            // The kind is what a caller decides by; the whole error goes along as its source.
            SstableError::Io { ref source, .. } => {
                let kind = source.kind();
                Self::Io(Arc::new(io::Error::new(kind, error)))
            }
            // Tables are opened before they are read, so this is one that changed since.
            SstableError::Newer { ref path, .. } => {
                Self::Corruption(Corruption::new(path, 0, error.to_string()))
            }
        }
    }
}

impl From<SstableError> for OpenError {
    fn from(error: SstableError) -> Self {
        match error {
            SstableError::Corruption(corruption) => Self::Corruption(corruption),
            SstableError::Newer {
                path,
                found,
                supported,
            } => Self::NewerFormat {
                path,
                found,
                supported,
            },
            SstableError::Io {
                action,
                path,
                source,
                ..
            } => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}
