//! What can go wrong in the engine, one variant per reaction.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::log::LogIndex;

/// Bytes on the disk that cannot be what was written: never repaired by guessing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is corrupt at byte {offset}: {fault}", path.display())]
pub struct Corruption {
    /// The file.
    pub path: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// What is wrong there.
    pub fault: String,
}

impl Corruption {
    pub(crate) fn new(path: impl Into<PathBuf>, offset: u64, fault: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            offset,
            fault: fault.into(),
        }
    }
}

/// A failed operation of the engine.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A key is longer than the engine takes; nothing was written.
    #[error("key of {bytes} bytes, at most {bytes_max} are allowed")]
    KeyTooLong {
        /// The length of the key.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A batch is larger than the engine takes; nothing was written.
    #[error("batch of {bytes} bytes, at most {bytes_max} are allowed")]
    BatchTooLarge {
        /// Keys and values of the batch together.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A log entry, vote, owner record or count of logs is over its limit; nothing was written.
    #[error("{what} of {size}, at most {size_max} are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        size_max: usize,
    },
    /// Entries that do not continue the log; nothing was written.
    #[error("entry {got} does not continue the log, {expected} would")]
    NotContiguous {
        /// The index that would continue the log.
        expected: LogIndex,
        /// The index that was given.
        got: LogIndex,
    },
    /// The operating system failed an operation that changes nothing; it may be tried again.
    #[error("cannot access the disk")]
    Io(#[source] Arc<io::Error>),
    /// The database stopped writing after a failed write or sync, for good: what the disk holds is
    /// unknown until the next open. The process must end.
    #[error("writing stopped after a failed write or sync")]
    Poisoned(#[source] Arc<io::Error>),
    /// The database was closed.
    #[error("the database is closed")]
    Closed,
    /// The disk holds wrong bytes; the replica must not go on.
    #[error(transparent)]
    Corruption(#[from] Corruption),
    /// A description of a shipped state cannot be what a database said; nothing was changed.
    #[error("the description of a shipped state is wrong: {fault}")]
    BadDescription {
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A piece of a shipped state that is not the next one of its file; nothing was taken.
    #[error("a piece at byte {got} of file {index}, which goes on at byte {next}")]
    WrongPiece {
        /// The file.
        index: usize,
        /// Where it goes on.
        next: u64,
        /// Where the piece was to go; the file's length when the file is not whole yet.
        got: u64,
    },
    /// The directory is bound to another owner.
    #[error("the directory belongs to another owner")]
    OwnedByAnother {
        /// The owner record that it holds.
        found: bytes::Bytes,
    },
}

impl From<io::Error> for StorageError {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

/// Why a directory was not opened. Nothing was changed except as the variant says.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another database, in this process or another one, has the directory open.
    #[error("{} is open already", directory.display())]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory holds files but no identity: it is not a database, or lost its identity.
    #[error("{} is no database: it holds {file} but no IDENTITY", directory.display())]
    NotADatabase {
        /// The directory.
        directory: PathBuf,
        /// One of the files in it.
        file: String,
    },
    /// A file belongs to another database.
    #[error("{} belongs to another database", path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// A file was written by a newer version of the program.
    #[error("{} has format version {found}, at most {supported} is known", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u16,
        /// The newest version that can be read.
        supported: u16,
    },
    /// The disk holds wrong bytes, or lost bytes that were promised. The replica must be replaced
    /// or repaired from others; opening again does not help.
    #[error(transparent)]
    Corruption(#[from] Corruption),
    /// The operating system failed; opening may be tried again.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
}

impl OpenError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io {
            action,
            path,
            source: Arc::new(error),
        }
    }
}
