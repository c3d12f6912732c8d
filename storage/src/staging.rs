//! A state that was shipped from another database, on its way into this one.
//!
//! Its files are written under numbers of this database, in any order but each from its beginning,
//! and are hashed as they come. A finished staging is durable and can be read; it belongs to no
//! keyspace until the catalog replaces one by it. Whatever happens before, its files go.

use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::catalog::{Catalog, KeyspaceId};
use crate::codec::long;
use crate::error::{Corruption, StorageError};
use crate::file_number::FileNumber;
use crate::pinned::{DESCRIPTION_BYTES_MAX, Description};
use crate::read_view::ReadView;
use crate::table::TableMeta;
use crate::version::{Levels, Version};
use crate::vfs::VfsFile;

/// Written bytes are synced in steps, so that no sync of a whole table meets one of the log.
const SYNC_BYTES: u64 = 8 << 20;

/// A shipped state whose files are being written. When it is dropped its files are removed; after
/// a crash the next open does that.
pub struct Staging {
    catalog: Arc<Catalog>,
    description: Description,
    /// One per table of the description.
    files: Vec<StagedFile>,
    /// Why nothing more is taken.
    void: Option<StorageError>,
    finished: bool,
}

struct StagedFile {
    number: FileNumber,
    bytes: u64,
    hash: u64,
    state: FileState,
}

enum FileState {
    Waiting,
    Open(Box<OpenFile>),
    /// Whole, of the right hash, and synced.
    Done,
}

struct OpenFile {
    file: Arc<dyn VfsFile>,
    written: u64,
    synced: u64,
    hasher: Xxh3,
}

impl Staging {
    /// Begins to take over what `description` tells of.
    pub(crate) fn new(catalog: &Arc<Catalog>, description: &[u8]) -> Result<Self, StorageError> {
        if description.len() > DESCRIPTION_BYTES_MAX {
            return Err(StorageError::TooLarge {
                what: "description of a shipped state",
                size: description.len(),
                size_max: DESCRIPTION_BYTES_MAX,
            });
        }
        let description = Description::decode(description)
            .map_err(|fault| StorageError::BadDescription { fault })?;
        let file = |(_, table): &(usize, TableMeta)| StagedFile {
            number: catalog.next_number(),
            bytes: table.bytes,
            hash: table.hash,
            state: FileState::Waiting,
        };
        Ok(Self {
            files: description.tables.iter().map(file).collect(),
            catalog: Arc::clone(catalog),
            description,
            void: None,
            finished: false,
        })
    }

    /// The count of files, as in the description.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// The length of file `index`; 0 if there is none.
    pub fn file_bytes(&self, index: usize) -> u64 {
        self.files.get(index).map_or(0, |file| file.bytes)
    }

    /// How many bytes of file `index` have been written.
    pub fn written(&self, index: usize) -> u64 {
        self.files.get(index).map_or(0, StagedFile::written)
    }

    /// Writes the next bytes of file `index`, of which [`Staging::written`] are there; blocks for
    /// as long as the disk takes. With the last bytes of a file its content is checked and synced.
    ///
    /// # Errors
    /// [`StorageError::WrongPiece`]: these are not the next bytes of a file; nothing was taken.
    /// [`StorageError::Io`]: nothing was taken, and it may be tried again unless a sync failed.
    /// [`StorageError::Corruption`]: the file is not the one that was described. After this and
    /// after a failed sync the staging is void, and each call gives the same error.
    /// [`StorageError::Closed`].
    pub fn write(&mut self, index: usize, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        if let Some(error) = &self.void {
            return Err(error.clone());
        }
        if self.catalog.is_closed() {
            return Err(StorageError::Closed);
        }
        let wrong = |next| StorageError::WrongPiece {
            index,
            next,
            got: offset,
        };
        let file = self.files.get_mut(index).ok_or(wrong(0))?;
        let written = file.written();
        if written != offset || long(bytes.len()) > file.bytes - written {
            return Err(wrong(written));
        }
        match file.write(&self.catalog, bytes) {
            Ok(()) => Ok(()),
            Err(WriteError::Write(error)) => Err(error),
            Err(WriteError::Void(error)) => {
                self.void = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Checks that all files are whole and makes them durable; opens them.
    ///
    /// # Errors
    /// As for [`Staging::write`]; the files are removed.
    pub fn finish(mut self) -> Result<StagedVersion, StorageError> {
        if let Some(error) = &self.void {
            return Err(error.clone());
        }
        for (index, file) in self.files.iter().enumerate() {
            if !matches!(file.state, FileState::Done) {
                return Err(StorageError::WrongPiece {
                    index,
                    next: file.written(),
                    got: file.bytes,
                });
            }
        }
        let catalog = &self.catalog;
        catalog.vfs().sync_dir(catalog.directory())?;
        let mut tables = Vec::with_capacity(self.files.len());
        for ((level, described), file) in self.description.tables.iter().zip(&self.files) {
            let meta = TableMeta {
                number: file.number,
                ..described.clone()
            };
            tables.push((*level, Arc::new(catalog.open_table(meta)?)));
        }
        let levels =
            Levels::new(tables).map_err(|fault| StorageError::BadDescription { fault: fault.0 })?;
        self.finished = true;
        Ok(StagedVersion {
            version: Arc::new(Version::new(
                KeyspaceId::NONE,
                self.description.options,
                self.description.last_sequence,
                levels,
            )),
            joined: false,
        })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let made = self
            .files
            .iter()
            .filter(|file| !matches!(file.state, FileState::Waiting));
        let made: Vec<_> = made.map(|file| file.number).collect();
        self.catalog.discard(&made);
    }
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Staging")
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

enum WriteError {
    /// The same bytes may be written again.
    Write(StorageError),
    Void(StorageError),
}

impl StagedFile {
    fn written(&self) -> u64 {
        match &self.state {
            FileState::Waiting => 0,
            FileState::Open(open) => open.written,
            FileState::Done => self.bytes,
        }
    }

    /// Appends bytes for which there is room.
    fn write(&mut self, catalog: &Catalog, bytes: &[u8]) -> Result<(), WriteError> {
        let path = catalog.directory().join(self.number.sstable_name());
        let open = self
            .open(catalog, &path)
            .map_err(|error| WriteError::Write(error.into()))?;
        let Some(open) = open else {
            return Ok(());
        };
        open.file
            .write_at(bytes, open.written)
            .map_err(|error| WriteError::Write(error.into()))?;
        open.hasher.update(bytes);
        open.written += long(bytes.len());
        let (written, hash) = (open.written, open.hasher.digest());
        let whole = written == self.bytes;
        if whole && hash != self.hash {
            let fault = "the file is not the one that was described";
            return Err(WriteError::Void(Corruption::new(path, 0, fault).into()));
        }
        let FileState::Open(open) = &mut self.state else {
            return Ok(());
        };
        if whole || open.written - open.synced >= SYNC_BYTES {
            let synced = open.file.sync_data();
            synced.map_err(|error| WriteError::Void(error.into()))?;
            open.synced = open.written;
        }
        if whole {
            self.state = FileState::Done;
        }
        Ok(())
    }

    /// The open file; none when it is whole.
    fn open(&mut self, catalog: &Catalog, path: &Path) -> std::io::Result<Option<&mut OpenFile>> {
        if matches!(self.state, FileState::Waiting) {
            self.state = FileState::Open(Box::new(OpenFile {
                file: catalog.vfs().create(path)?,
                written: 0,
                synced: 0,
                hasher: Xxh3::new(),
            }));
        }
        match &mut self.state {
            FileState::Open(open) => Ok(Some(open)),
            FileState::Waiting | FileState::Done => Ok(None),
        }
    }
}

/// A whole shipped state, durable but in no keyspace yet. When it is dropped its files are removed,
/// once no view reads them.
#[derive(Debug)]
pub struct StagedVersion {
    version: Arc<Version>,
    joined: bool,
}

impl StagedVersion {
    /// The state as a view.
    pub fn view(&self) -> ReadView {
        ReadView::of_version(Arc::clone(&self.version))
    }

    /// What is staged.
    pub(crate) fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// The files belong to a keyspace from now on.
    pub(crate) fn joined(mut self) {
        self.joined = true;
    }
}

impl Drop for StagedVersion {
    fn drop(&mut self) {
        if self.joined {
            return;
        }
        for (_, table) in self.version.tables() {
            table.mark_dead();
        }
    }
}

#[cfg(test)]
mod tests;
