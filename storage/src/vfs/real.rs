//! The operating system's files.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Vfs, VfsFile, VfsLock};

/// Paths locked by this process: the system's locks do not exclude their own process on every
/// file system.
static LOCKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What others may do with a new directory: nothing, since every value in it is a user's.
const DIRECTORY_MODE: u32 = 0o700;
/// What others may do with a new file: nothing.
const FILE_MODE: u32 = 0o600;

/// The operating system's file system. What it makes is for its own user alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealFs;

#[expect(clippy::disallowed_methods, reason = "this is the file seam")]
impl Vfs for RealFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        Ok(Arc::new(RealFile(
            OpenOptions::new().read(true).write(true).open(path)?,
        )))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path)?;
        let canonical = fs::canonicalize(path)?;
        if !locked().insert(canonical.clone()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let registered = Registered(canonical);
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock {
                _file: file,
                _registered: registered,
            })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

struct RealFile(File);

impl VfsFile for RealFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.0.read_at(out, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(
            &self.0,
            rustix::fs::FallocateFlags::empty(),
            0,
            length,
        )?)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// The file is closed, and so unlocked, before the path is free again in this process.
struct RealLock {
    _file: File,
    _registered: Registered,
}

impl VfsLock for RealLock {}

struct Registered(PathBuf);

impl Drop for Registered {
    fn drop(&mut self) {
        locked().remove(&self.0);
    }
}

fn locked() -> std::sync::MutexGuard<'static, BTreeSet<PathBuf>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}
