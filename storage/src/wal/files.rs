//! The files of the write-ahead log: open ones by place, the next one ahead of time, dead ones.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kelp_seams::{Job, Next, Step};

use super::format::{self, RECORD_HEADER_BYTES};
use super::queue::{Lsn, Place};
use super::record::Record;
use crate::codec::index;
use crate::error::{Corruption, StorageError};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::log::{LogNumber, LogPosition};
use crate::salt::Salt;
use crate::vfs::{Vfs, VfsFile, read_full};

/// An open file of the log.
#[derive(Clone)]
pub(crate) struct WalFile {
    pub(crate) number: FileNumber,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) salt: Salt,
    /// The place of its first byte.
    pub(crate) start: Lsn,
}

/// A record of the log that can be read without any lock.
pub(crate) struct Located {
    file: WalFile,
    place: Place,
}

/// Why a file could not be made.
pub(crate) struct CreateError {
    pub(crate) error: io::Error,
    /// Whether it may be tried again; never after a failed sync.
    pub(crate) retryable: bool,
}

/// What there is of the file that the flusher needs.
pub(crate) enum Prepared {
    Ready(Arc<dyn VfsFile>),
    /// The keeper is making it and will notify the flusher.
    Busy,
    Missing,
    Failed(io::Error),
}

pub(crate) struct WalFiles {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    database: DatabaseId,
    file_bytes: u64,
    open: Mutex<BTreeMap<Lsn, WalFile>>,
    next: Mutex<NextFile>,
    dead: Mutex<Vec<PathBuf>>,
    /// Everything before this place has been written, though perhaps not synced.
    written: AtomicU64,
}

#[derive(Default)]
struct NextFile {
    wanted: Option<FileNumber>,
    busy: Option<FileNumber>,
    ready: Option<(FileNumber, Arc<dyn VfsFile>)>,
    failed: Option<io::Error>,
}

impl WalFiles {
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        database: DatabaseId,
        file_bytes: u64,
        recovered: Vec<WalFile>,
        written: Lsn,
    ) -> Self {
        let open = recovered
            .into_iter()
            .map(|file| (file.start, file))
            .collect();
        Self {
            vfs,
            directory,
            database,
            file_bytes,
            open: Mutex::new(open),
            next: Mutex::default(),
            dead: Mutex::default(),
            written: AtomicU64::new(written.0),
        }
    }

    /// Everything before this place can be read from the files.
    pub(crate) fn written(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn set_written(&self, end: Lsn) {
        self.written.store(end.0, Ordering::Release);
    }

    /// Finds the file of a record that has been written.
    pub(crate) fn locate(&self, place: Place) -> Located {
        let open = lock(&self.open);
        let (_, file) = open
            .range(..=place.lsn)
            .next_back()
            .expect("live entries keep their file");
        Located {
            file: file.clone(),
            place,
        }
    }

    /// Takes note of a file that is about to be written.
    pub(crate) fn add(&self, number: FileNumber, start: Lsn, file: Arc<dyn VfsFile>) {
        let path = self.path(number);
        let salt = Salt::new(self.database, number);
        lock(&self.open).insert(
            start,
            WalFile {
                number,
                path,
                file,
                salt,
                start,
            },
        );
    }

    /// Forgets the files that end before `live_from`; the keeper will remove them. Answers whether
    /// there were any.
    pub(crate) fn retire(&self, live_from: Lsn) -> bool {
        let mut open = lock(&self.open);
        let starts: Vec<Lsn> = open.keys().copied().collect();
        // A file ends where the next one starts; the newest one always stays.
        let retired: Vec<Lsn> = starts
            .windows(2)
            .filter(|pair| pair[1] <= live_from)
            .map(|pair| pair[0])
            .collect();
        let mut dead = lock(&self.dead);
        for start in &retired {
            dead.extend(open.remove(start).map(|file| file.path));
        }
        !retired.is_empty()
    }

    /// The count of files that are needed.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// Asks the keeper for a file; false when it was asked before.
    pub(crate) fn want(&self, number: FileNumber) -> bool {
        let mut next = lock(&self.next);
        let asked = next.wanted == Some(number)
            || next.busy == Some(number)
            || matches!(&next.ready, Some((had, _)) if *had == number);
        if !asked {
            next.wanted = Some(number);
        }
        !asked
    }

    /// What the keeper made of the file `number`.
    pub(crate) fn take_prepared(&self, number: FileNumber) -> Prepared {
        let mut next = lock(&self.next);
        if next.busy == Some(number) {
            return Prepared::Busy;
        }
        if let Some(error) = next.failed.take() {
            return Prepared::Failed(error);
        }
        match next.ready.take() {
            Some((had, file)) if had == number => Prepared::Ready(file),
            _ => {
                next.wanted = None;
                Prepared::Missing
            }
        }
    }

    /// Makes an empty file with room reserved, durable under its name.
    pub(crate) fn create(&self, number: FileNumber) -> Result<Arc<dyn VfsFile>, CreateError> {
        let path = self.path(number);
        let file = match self.vfs.create(&path) {
            // A failed attempt of this process left it behind.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self
                .vfs
                .open(&path)
                .and_then(|file| file.set_len(0).map(|()| file)),
            other => other,
        };
        let file = file.map_err(|error| CreateError {
            error,
            retryable: true,
        })?;
        // Room ahead of time is a gift: without it, each write asks for its own.
        if let Err(error) = file.allocate(self.file_bytes) {
            tracing::warn!(%error, "cannot reserve room for a log file");
        }
        let synced = file
            .sync_all()
            .and_then(|()| self.vfs.sync_dir(&self.directory));
        synced.map_err(|error| CreateError {
            error,
            retryable: false,
        })?;
        Ok(file)
    }

    fn path(&self, number: FileNumber) -> PathBuf {
        self.directory.join(number.wal_name())
    }

    /// Makes the wanted file. Answers whether the flusher may be waiting for it.
    fn prepare(&self) -> bool {
        let Some(number) = lock(&self.next).start() else {
            return false;
        };
        let made = self.create(number);
        let mut next = lock(&self.next);
        next.busy = None;
        match made {
            Ok(file) => next.ready = Some((number, file)),
            // The flusher tries again itself when it needs the file.
            Err(failed) if failed.retryable => {}
            Err(failed) => next.failed = Some(failed.error),
        }
        true
    }

    /// Removes one dead file. Answers whether there may be more.
    fn remove_dead(&self) -> bool {
        let Some(path) = lock(&self.dead).pop() else {
            return false;
        };
        // A file that stays is harmless: the next open finds it unneeded and tries again.
        if let Err(error) = self.vfs.remove(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove a log file");
        }
        true
    }
}

impl NextFile {
    fn start(&mut self) -> Option<FileNumber> {
        self.busy = self.wanted.take();
        self.busy
    }
}

impl Located {
    /// The path and the offset, for reports.
    fn corruption(&self, fault: &str) -> StorageError {
        let offset = self.place.lsn.0 - self.file.start.0;
        Corruption::new(&self.file.path, offset, fault).into()
    }

    /// Reads an entry's payload and checks that it is that entry.
    pub(crate) fn read_entry(
        &self,
        log: LogNumber,
        position: LogPosition,
    ) -> Result<bytes::Bytes, StorageError> {
        let offset = self.place.lsn.0 - self.file.start.0;
        let mut bytes = vec![0; RECORD_HEADER_BYTES + index(u64::from(self.place.bytes))];
        let count = read_full(&*self.file.file, &mut bytes, offset)?;
        if count < bytes.len() {
            return Err(self.corruption("the file ends inside an entry"));
        }
        let record = format::record_at(&bytes, 0, self.file.salt, offset)
            .ok_or_else(|| self.corruption("the checksum of an entry does not hold"))?;
        let length = match Record::decode(record.payload) {
            Some((
                found,
                Record::Append {
                    position: at,
                    payload,
                },
            )) if found == log && at == position => payload.len(),
            _ => return Err(self.corruption("another record stands where an entry was")),
        };
        let start = bytes.len() - length;
        Ok(bytes::Bytes::from(bytes).slice(start..))
    }
}

/// Makes files ahead of need and removes dead ones, apart from the flusher, so that no commit
/// waits for either.
pub(crate) struct Keeper {
    pub(crate) files: Arc<WalFiles>,
    /// Tells the flusher that a file it may wait for is ready.
    pub(crate) notify_flusher: Box<dyn Fn() + Send>,
}

impl Job for Keeper {
    fn step(&mut self) -> Step {
        if self.files.prepare() {
            (self.notify_flusher)();
            return Step::then(Next::Again);
        }
        Step::then(if self.files.remove_dead() {
            Next::Again
        } else {
            Next::Idle
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
