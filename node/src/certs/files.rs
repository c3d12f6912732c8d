//! Certificate files on disk: created once, private keys for their owner only.
//!
//! These are an operator's files, not the database's: they need permission bits, which the storage
//! `Vfs` has not, and no simulation crashes in the middle of them. So this is the one place outside
//! `storage` that names `std::fs`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::CertsError;

/// A PEM file here is a few kilobytes; a larger one is a mistake and is not read into memory.
const FILE_BYTES_MAX: u64 = 256 * 1024;

const MODE_PUBLIC: u32 = 0o644;
/// Whoever serves as this node or issues for this cluster, nobody else.
const MODE_DIRECTORY: u32 = 0o700;
const MODE_SECRET: u32 = 0o600;

/// What nobody but the owner may do with a key, save that the group may read it (secret mounts of
/// containers).
const MODE_FORBIDDEN: u32 = 0o037;

#[expect(
    clippy::disallowed_methods,
    reason = "an operator's files, see the module"
)]
pub(super) fn create_directory(path: &Path) -> Result<(), CertsError> {
    DirBuilder::new()
        .recursive(true)
        .mode(MODE_DIRECTORY)
        .create(path)
        .map_err(|source| io_error(path, source))
}

/// Refuses if any of the files is there.
#[expect(
    clippy::disallowed_methods,
    reason = "an operator's files, see the module"
)]
pub(super) fn check_absent(paths: &[&Path]) -> Result<(), CertsError> {
    match paths.iter().find(|path| path.exists()) {
        Some(path) => Err(CertsError::Exists {
            path: (*path).to_owned(),
        }),
        None => Ok(()),
    }
}

/// Removes a file; one that is not there is no error.
#[expect(
    clippy::disallowed_methods,
    reason = "an operator's files, see the module"
)]
pub(super) fn remove(path: &Path) -> Result<(), CertsError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|source| io_error(path, source)),
    }
}

pub(super) fn write_public(path: &Path, text: &str) -> Result<(), CertsError> {
    create(path, text, MODE_PUBLIC)
}

pub(super) fn write_secret(path: &Path, text: &str) -> Result<(), CertsError> {
    create(path, text, MODE_SECRET)
}

pub(super) fn read_public(path: &Path) -> Result<String, CertsError> {
    let file = open(path)?;
    read(path, file)
}

pub(super) fn read_key(path: &Path) -> Result<String, CertsError> {
    let file = open(path)?;
    let metadata = file.metadata().map_err(|source| io_error(path, source))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & MODE_FORBIDDEN != 0 {
        return Err(CertsError::KeyExposed {
            path: path.to_owned(),
            mode,
        });
    }
    read(path, file)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an operator's files, see the module"
)]
fn create(path: &Path, text: &str, mode: u32) -> Result<(), CertsError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(CertsError::Exists {
                path: path.to_owned(),
            });
        }
        opened => opened.map_err(|source| io_error(path, source))?,
    };
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|source| io_error(path, source))
}

#[expect(
    clippy::disallowed_methods,
    reason = "an operator's files, see the module"
)]
fn open(path: &Path) -> Result<File, CertsError> {
    File::open(path).map_err(|source| io_error(path, source))
}

fn read(path: &Path, file: File) -> Result<String, CertsError> {
    let mut text = String::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|source| io_error(path, source))?;
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes <= FILE_BYTES_MAX) {
        return Ok(text);
    }
    Err(CertsError::Malformed {
        path: path.to_owned(),
        reason: format!("it has more than {FILE_BYTES_MAX} bytes"),
    })
}

fn io_error(path: &Path, source: io::Error) -> CertsError {
    CertsError::Io {
        path: path.to_owned(),
        source,
    }
}
