//! A file system that fails on demand.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{MemFs, Vfs, VfsFile, VfsLock};

/// The kinds of operations that a rule can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultOperation {
    /// Making a file or directory.
    Create,
    /// Opening a file, or looking for names.
    Open,
    /// Renaming.
    Rename,
    /// Removing.
    Remove,
    /// Reading a file.
    Read,
    /// Writing a file.
    Write,
    /// Syncing a file or a directory.
    Sync,
    /// Cutting, extending or allocating.
    Resize,
}

/// What happens to a chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done and this error number of the system is returned.
    Errno(i32),
    /// A write puts down its first bytes and then fails with the error number. Other operations
    /// just fail.
    ShortWrite {
        /// The count of bytes that are written.
        bytes: usize,
        /// The error number.
        errno: i32,
    },
    /// A sync of a file fails and takes what it should have synced with it, see
    /// [`MemFs::lose_dirty`]. Needs [`FaultFs::over`]. Other operations just fail.
    LostSync {
        /// The error number.
        errno: i32,
    },
}

impl Fault {
    const fn errno(self) -> i32 {
        match self {
            Self::Errno(errno) | Self::ShortWrite { errno, .. } | Self::LostSync { errno } => errno,
        }
    }
}

/// Chooses operations and says how they fail.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// The kind of operation; none = every kind.
    pub operation: Option<FaultOperation>,
    /// A file name, in which one `*` stands for any text; none = every file.
    pub name: Option<String>,
    /// How many matching operations pass before the first that fails.
    pub skip: u64,
    /// How many then fail; the rule is used up after them.
    pub count: u64,
    /// How they fail.
    pub fault: Fault,
}

impl FaultRule {
    /// A rule for the one operation of a kind after `skip` others.
    pub fn once(operation: Option<FaultOperation>, skip: u64, fault: Fault) -> Self {
        Self {
            operation,
            name: None,
            skip,
            count: 1,
            fault,
        }
    }

    fn matches(&self, operation: FaultOperation, path: &Path) -> bool {
        if self.operation.is_some_and(|wanted| wanted != operation) {
            return false;
        }
        let Some(pattern) = &self.name else {
            return true;
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match pattern.split_once('*') {
            None => name == *pattern,
            Some((start, end)) => {
                name.len() >= start.len() + end.len()
                    && name.starts_with(start)
                    && name.ends_with(end)
            }
        }
    }
}

/// Wraps a file system and makes the operations chosen by rules fail. Clones share the rules.
#[derive(Clone)]
pub struct FaultFs {
    inner: Arc<dyn Vfs>,
    /// The same as `inner`, when it is a disk in memory.
    disk: Option<MemFs>,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Default)]
struct Faults {
    rules: Vec<FaultRule>,
    operation_count: u64,
}

impl FaultFs {
    /// Passes everything to `inner` until rules are added.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self {
            inner,
            disk: None,
            faults: Arc::default(),
        }
    }

    /// Passes everything to `disk`, on which syncs can also fail as [`Fault::LostSync`].
    pub fn over(disk: MemFs) -> Self {
        Self {
            disk: Some(disk.clone()),
            ..Self::new(Arc::new(disk))
        }
    }

    /// Adds a rule. The first rule that matches and has no operations left to skip decides.
    pub fn add(&self, rule: FaultRule) {
        self.lock().rules.push(rule);
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.lock().rules.clear();
    }

    /// The count of operations so far, failed ones included.
    pub fn operation_count(&self) -> u64 {
        self.lock().operation_count
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self, operation: FaultOperation, path: &Path) -> Option<Fault> {
        let mut faults = self.lock();
        faults.operation_count += 1;
        for rule in faults
            .rules
            .iter_mut()
            .filter(|rule| rule.matches(operation, path))
        {
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.count > 0 {
                rule.count -= 1;
                return Some(rule.fault);
            }
        }
        None
    }

    fn check(&self, operation: FaultOperation, path: &Path) -> io::Result<()> {
        match self.fault(operation, path) {
            None => Ok(()),
            Some(fault) => Err(io::Error::from_raw_os_error(fault.errno())),
        }
    }

    fn check_sync(&self, path: &Path) -> io::Result<()> {
        let Some(fault) = self.fault(FaultOperation::Sync, path) else {
            return Ok(());
        };
        if let (Fault::LostSync { .. }, Some(disk)) = (fault, &self.disk) {
            disk.lose_dirty(path)?;
        }
        Err(io::Error::from_raw_os_error(fault.errno()))
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn VfsFile>) -> Arc<dyn VfsFile> {
        Arc::new(FaultFile {
            inner,
            path: path.to_owned(),
            faults: self.clone(),
        })
    }
}

impl Vfs for FaultFs {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.check(FaultOperation::Create, path)?;
        self.inner.create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.check(FaultOperation::Create, path)?;
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn VfsFile>> {
        self.check(FaultOperation::Open, path)?;
        Ok(self.wrap(path, self.inner.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(FaultOperation::Rename, to)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(FaultOperation::Remove, path)?;
        self.inner.remove(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check(FaultOperation::Open, path)?;
        self.inner.exists(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.check(FaultOperation::Open, path)?;
        self.inner.list(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.check(FaultOperation::Sync, path)?;
        self.inner.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn VfsLock>> {
        self.check(FaultOperation::Create, path)?;
        self.inner.lock(path)
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.check(FaultOperation::Open, path)?;
        self.inner.free_space(path)
    }
}

impl fmt::Debug for FaultFs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FaultFs")
            .field("rules", &self.lock().rules)
            .finish()
    }
}

struct FaultFile {
    inner: Arc<dyn VfsFile>,
    path: PathBuf,
    faults: FaultFs,
}

impl VfsFile for FaultFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.faults.check(FaultOperation::Read, &self.path)?;
        self.inner.read_at(out, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match self.faults.fault(FaultOperation::Write, &self.path) {
            None => self.inner.write_at(data, offset),
            Some(fault) => {
                if let Fault::ShortWrite { bytes, .. } = fault {
                    let written = &data[..bytes.min(data.len())];
                    self.inner.write_at(written, offset)?;
                }
                Err(io::Error::from_raw_os_error(fault.errno()))
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.check_sync(&self.path)?;
        self.inner.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.faults.check_sync(&self.path)?;
        self.inner.sync_all()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.faults.check(FaultOperation::Resize, &self.path)?;
        self.inner.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.faults.check(FaultOperation::Resize, &self.path)?;
        self.inner.allocate(length)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
}
