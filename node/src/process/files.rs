//! The files of the command line: configuration, certificates handed in by path, `cluster.json`,
//! imports, exports and the logs of child processes.
//!
//! This is the door between the `kelp` program and the file system of the person who runs it. The
//! data of a node never passes here: it goes through `kelp_storage::Vfs`.
#![expect(
    clippy::disallowed_methods,
    reason = "the command line's door to local files; node data goes through kelp_storage::Vfs"
)]

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Data, logs and keys are nobody else's to read.
const MODE_PRIVATE: u32 = 0o700;

/// Reads a whole file of at most `bytes_max` bytes.
pub(crate) fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > bytes_max) {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {bytes_max} bytes"),
        ));
    }
    Ok(bytes)
}

/// Reads the last `bytes_max` bytes of a file.
pub(crate) fn read_tail(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file for streaming reads.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates an empty file, or empties the one that is there.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Opens a file for appending, creating it if absent.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Replaces `path` with `contents` so that a reader sees the old file or the new one, whole, also
/// after a power cut.
pub(crate) fn write_atomically(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let staged = PathBuf::from(name);
    let mut file = File::create(&staged)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&staged, path)?;
    sync_directory_of(path)
}

/// Makes the name of `path` as durable as its contents.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Creates a directory and those above it, for this user alone.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(MODE_PRIVATE)
        .create(path)
}

/// Creates a directory that was not there before, for this user alone; fails with `AlreadyExists`
/// otherwise.
pub(crate) fn create_new_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(MODE_PRIVATE).create(path)
}

/// Removes a directory with all that is in it.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

/// Removes a file; a file that is not there is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Renames a file within one file system.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Whether something lies at `path`.
pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}

/// The length of the file at `path`.
pub(crate) fn length(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.len())
}

/// Shortens a file to `length` bytes.
pub(crate) fn cut(path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

/// The names in a directory, sorted.
pub(crate) fn list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The path from the root, with links resolved.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Takes the lock file at `path` for as long as the returned file lives; `None` when another
/// process holds it.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests;
