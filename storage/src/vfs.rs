//! The only way to touch a disk.
//!
//! Everything durable goes through [`Vfs`] and [`VfsFile`]: [`RealFs`] is the operating system,
//! [`MemFs`] a disk in memory that can lose what was not synced, [`FaultFs`] a wrapper that fails
//! on demand. The layer knows files and directories, and nothing of what is in them.

mod fault;
mod memory;
mod real;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub use fault::{Fault, FaultFs, FaultOperation, FaultRule};
pub use memory::{MemFs, SyncHook};
pub use real::RealFs;

/// A file system.
///
/// Invariants that users rely on: data is durable after `sync_data` or `sync_all` of its file, a
/// created, renamed or removed name after `sync_dir` of its directory, and nothing before. After a
/// failed sync another sync proves nothing: what was written since the last good one must be written
/// again first, by a later open.
pub trait Vfs: Send + Sync + 'static {
    /// Makes a directory and what is missing above it; an existing one is fine.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes an empty file, open for reading and writing; fails when the name exists.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;

    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>>;

    /// Gives a file another name, atomically replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name; open files stay readable.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Whether a file or directory has this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// The names of the files in a directory, sorted. Names that are not UTF-8 are given with
    /// replacement characters.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the exclusive lock on a file, which is made if it is missing; held until dropped.
    /// Excludes other processes and other holders in this process.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when somebody holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>>;

    /// Bytes that may still be written below a directory.
    fn free_space(&self, path: &Path) -> io::Result<u64>;
}

/// An open file, shared by handle. All positions are explicit; there is no cursor.
pub trait VfsFile: Send + Sync {
    /// Reads at most `out.len()` bytes from `offset`; fewer only at the end of the file.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at `offset`, extending the file. After an error any part of it may
    /// have been written.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Makes content and length durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes content and all metadata durable.
    fn sync_all(&self) -> io::Result<()>;

    /// Cuts or extends (with zeros) to `length` bytes.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Extends with zeros to `length` bytes that are reserved on the disk; never cuts.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A held lock; dropping it releases.
pub trait VfsLock: Send + Sync {}

/// Reads until `out` is full or the file ends; answers the count of bytes.
pub(crate) fn read_full(file: &dyn VfsFile, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        let position = offset.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
        let count = file.read_at(&mut out[filled..], position)?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
