//! A disk in memory that can lose what was not synced.
//!
//! Each file keeps its content as programs see it, its content as the disk has it, and the writes
//! between the two; each directory the same for its names. [`MemFs::crash_clone`] is the disk
//! after a power cut: every sector written but not synced may be there or not, in any combination,
//! also the file's length and each created, renamed or removed name. [`MemFs::kill_clone`] is the
//! machine after only the process died: all that was written is visible, and as little durable as
//! before.

mod file;
mod names;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelp_seams::Rng;

use self::file::{Content, MemFile};
use self::names::Names;
use super::{Vfs, VfsFile, VfsLock};

/// Called with the ordinal of each sync, before the sync takes effect.
pub type SyncHook = Arc<dyn Fn(u64, &MemFs) + Send + Sync>;

/// A file system in memory. Clones share one disk.
#[derive(Clone, Default)]
pub struct MemFs {
    disk: Arc<Disk>,
}

#[derive(Default)]
struct Disk {
    names: Mutex<Names>,
    syncs: Mutex<Syncs>,
    locked: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Default)]
struct Syncs {
    count: u64,
    hook: Option<SyncHook>,
}

impl MemFs {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// The count of syncs of files and directories so far.
    pub fn sync_count(&self) -> u64 {
        lock(&self.disk.syncs).count
    }

    /// Calls `hook` before each sync takes effect, so that it can take an image of a crash there.
    pub fn on_sync(&self, hook: SyncHook) {
        lock(&self.disk.syncs).hook = Some(hook);
    }

    /// The disk as a power cut might leave it: another disk, on which all is durable.
    ///
    /// One of four kinds of crash is drawn: all un-synced changes are lost, all survive, or each
    /// survives with probability one half or nine tenths.
    #[must_use]
    pub fn crash_clone(&self, rng: &dyn Rng) -> Self {
        let odds = match rng.next_u64() % 4 {
            0 => 0,
            1 => 256,
            2 => 128,
            _ => 230,
        };
        let survives = || rng.next_u64() % 256 < odds;
        let names = lock(&self.disk.names).after_crash(survives);
        let disk = Disk {
            names: Mutex::new(names),
            ..Disk::default()
        };
        Self {
            disk: Arc::new(disk),
        }
    }

    /// The machine as a killed process leaves it: another disk, on which the same is visible and the
    /// same durable, and nothing is locked.
    #[must_use]
    pub fn kill_clone(&self) -> Self {
        let disk = Disk {
            names: Mutex::new(lock(&self.disk.names).copy()),
            ..Disk::default()
        };
        Self {
            disk: Arc::new(disk),
        }
    }

    /// Does to a file what a failed sync does on most systems: what was written since the last good
    /// one stays visible, counts as clean, and no later sync brings it to the disk. Only writing it
    /// again does.
    ///
    /// # Errors
    /// There is no such file.
    pub fn lose_dirty(&self, path: &Path) -> io::Result<()> {
        let content = lock(&self.disk.names).find(path)?;
        lock(&content).lose_dirty();
        Ok(())
    }

    /// Changes a file's bytes behind everybody's back, also on the disk: a fault to be found.
    ///
    /// # Errors
    /// There is no such file.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let content = lock(&self.disk.names).find(path)?;
        lock(&content).rewrite(change);
        Ok(())
    }

    fn before_sync(&self) {
        let mut syncs = lock(&self.disk.syncs);
        let ordinal = syncs.count;
        syncs.count += 1;
        let hook = syncs.hook.clone();
        drop(syncs);
        if let Some(hook) = hook {
            hook(ordinal, self);
        }
    }

    fn file(&self, content: Arc<Mutex<Content>>) -> Arc<dyn VfsFile> {
        Arc::new(MemFile {
            disk: self.clone(),
            content,
        })
    }
}

impl Vfs for MemFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        lock(&self.disk.names).add_directory(path);
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let content = lock(&self.disk.names).create(path)?;
        Ok(self.file(content))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        let content = lock(&self.disk.names).find(path)?;
        Ok(self.file(content))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        lock(&self.disk.names).rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        lock(&self.disk.names).remove(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(lock(&self.disk.names).exists(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        lock(&self.disk.names).list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.before_sync();
        lock(&self.disk.names).sync(path);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        lock(&self.disk.names).find_or_create(path)?;
        if !lock(&self.disk.locked).insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemLock {
            disk: Arc::clone(&self.disk),
            path: path.to_owned(),
        }))
    }

    fn free_space(&self, _path: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl fmt::Debug for MemFs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("MemFs")
            .field("sync_count", &self.sync_count())
            .finish()
    }
}

struct MemLock {
    disk: Arc<Disk>,
    path: PathBuf,
}

impl VfsLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        lock(&self.disk.locked).remove(&self.path);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
