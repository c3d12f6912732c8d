//! What must survive even the loss of the write-ahead log: the file HARDSTATE.
//!
//! Two slots of 4 KiB, written in turn, hold the boot counter, every log's vote and how far the
//! write-ahead log was durable when the slot was written. A vote or a length that is newer than
//! what the write-ahead log holds proves that bytes of it were lost. Format page:
//! `docs/formats/hard_state.md`.

mod slot;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::slot::{SLOT_BYTES, Slot, SlotFault};
use crate::codec::{index, long};
use crate::error::{Corruption, OpenError, StorageError};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::log::LogNumber;
use crate::vfs::{Vfs, VfsFile, read_full};
use crate::wal::record::StoredVote;

pub(crate) use slot::VOTES_MAX;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "HARDSTATE";

/// How often a directory was started; 0 before the first time. Counted by
/// [`Database::raise_boot`](crate::Database::raise_boot).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot(u64);

impl Boot {
    /// The boot number `boot`.
    pub const fn new(boot: u64) -> Self {
        Self(boot)
    }

    /// The bare number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The open file and its newest content.
///
/// Invariants: the newest durable slot is never the one that is being written, but with the very
/// bytes that it holds.
pub(crate) struct HardState {
    file: Arc<dyn VfsFile>,
    state: Mutex<State>,
}

struct State {
    content: Slot,
    /// Why nothing is written any more: a file whose sync failed must not be synced again.
    failed: Option<Arc<io::Error>>,
}

impl HardState {
    /// Writes a first HARDSTATE for `database`, over whatever an interrupted attempt left.
    pub(crate) fn create(vfs: &dyn Vfs, directory: &Path, database: DatabaseId) -> io::Result<()> {
        let path = directory.join(FILE_NAME);
        let file = if vfs.exists(&path)? {
            vfs.open(&path)?
        } else {
            vfs.create(&path)?
        };
        file.allocate(2 * long(SLOT_BYTES))?;
        for sequence in [1, 2] {
            let slot = Slot {
                sequence,
                ..Slot::empty(database)
            };
            file.write_at(&slot.encode(), slot.offset())?;
        }
        file.sync_all()?;
        vfs.sync_dir(directory)
    }

    /// Reads the newest intact slot.
    pub(crate) fn load(
        vfs: &dyn Vfs,
        directory: &Path,
        database: DatabaseId,
    ) -> Result<Self, OpenError> {
        let path = directory.join(FILE_NAME);
        let file = match vfs.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Corruption::new(path, 0, "the file is missing").into());
            }
            other => other.map_err(OpenError::io("open", &path))?,
        };
        let mut bytes = vec![0; 2 * SLOT_BYTES];
        let count = read_full(&*file, &mut bytes, 0).map_err(OpenError::io("read", &path))?;
        bytes.truncate(count);
        let content = newest(&bytes, &path)?;
        if content.database != database {
            return Err(OpenError::ForeignFile { path });
        }
        Ok(Self {
            file,
            state: Mutex::new(State {
                content,
                failed: None,
            }),
        })
    }

    /// Writes the newest slot in its place again and syncs it. To be called once after
    /// [`load`](Self::load), before anything of it is believed durable: what was read may come from
    /// a killed process or a failed sync and never have reached the disk, and the next change
    /// overwrites the other slot.
    pub(crate) fn make_durable(&self, directory: &Path) -> Result<(), OpenError> {
        let state = self.lock();
        let content = &state.content;
        self.file
            .write_at(&content.encode(), content.offset())
            .and_then(|()| self.file.sync_all())
            .map_err(OpenError::io("sync", &directory.join(FILE_NAME)))
    }

    pub(crate) fn boot(&self) -> Boot {
        Boot(self.lock().content.boot)
    }

    /// Counts one start. Both slots hold the new count when this returns, so that the loss of one
    /// slot never brings an old count back.
    pub(crate) fn raise_boot(&self) -> Result<Boot, StorageError> {
        let mut state = self.lock();
        let mut content = state.content.clone();
        content.boot += 1;
        let boot = Boot(content.boot);
        for _ in 0..2 {
            let stored = self.store(&mut state, content.clone());
            stored.map_err(|error| StorageError::Poisoned(Arc::new(error)))?;
        }
        Ok(boot)
    }

    /// Stores all votes, which the write-ahead log holds durably up to `synced` of `file`.
    pub(crate) fn put_votes(
        &self,
        votes: &[(LogNumber, StoredVote)],
        wal_file: FileNumber,
        wal_synced: u64,
    ) -> io::Result<()> {
        let mut state = self.lock();
        let content = Slot {
            votes: votes.to_vec(),
            wal_file,
            wal_synced,
            ..state.content.clone()
        };
        self.store(&mut state, content)
    }

    /// Stores how far the write-ahead log is durable.
    pub(crate) fn put_durable(&self, wal_file: FileNumber, wal_synced: u64) -> io::Result<()> {
        let mut state = self.lock();
        let content = Slot {
            wal_file,
            wal_synced,
            ..state.content.clone()
        };
        self.store(&mut state, content)
    }

    /// Takes note of how far the write-ahead log is durable; stored with the next change.
    pub(crate) fn note_durable(&self, wal_file: FileNumber, wal_synced: u64) {
        let mut state = self.lock();
        state.content.wal_file = wal_file;
        state.content.wal_synced = wal_synced;
    }

    /// The votes of the newest slot.
    pub(crate) fn votes(&self) -> Vec<(LogNumber, StoredVote)> {
        self.lock().content.votes.clone()
    }

    /// How far the write-ahead log was durable: a file and a length; none before the first vote.
    pub(crate) fn wal_mark(&self) -> Option<(FileNumber, u64)> {
        let state = self.lock();
        let file = state.content.wal_file;
        (file.get() != 0).then_some((file, state.content.wal_synced))
    }

    fn store(&self, state: &mut State, mut content: Slot) -> io::Result<()> {
        if let Some(failed) = &state.failed {
            return Err(io::Error::new(failed.kind(), Arc::clone(failed)));
        }
        content.sequence = state.content.sequence + 1;
        let written = self
            .file
            .write_at(&content.encode(), content.offset())
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                state.content = content;
                Ok(())
            }
            Err(error) => {
                let error = Arc::new(error);
                state.failed = Some(Arc::clone(&error));
                Err(io::Error::new(error.kind(), error))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot with the higher sequence; one damaged slot is what a crash while writing it leaves.
fn newest(bytes: &[u8], path: &Path) -> Result<Slot, OpenError> {
    let mut best: Option<Slot> = None;
    for number in 0..2_u64 {
        let start = index(number) * SLOT_BYTES;
        let found = bytes
            .get(start..start + SLOT_BYTES)
            .ok_or(SlotFault::Damaged);
        match found.and_then(Slot::decode) {
            Ok(slot) if slot.offset() == long(start) => {
                if best
                    .as_ref()
                    .is_none_or(|best| best.sequence < slot.sequence)
                {
                    best = Some(slot);
                }
            }
            Err(SlotFault::Newer(found)) => {
                let path = path.to_owned();
                return Err(OpenError::NewerFormat {
                    path,
                    found,
                    supported: slot::VERSION,
                });
            }
            Ok(_) | Err(SlotFault::Damaged) => {}
        }
    }
    best.ok_or_else(|| Corruption::new(path, 0, "neither slot is intact").into())
}

#[cfg(test)]
mod tests;
