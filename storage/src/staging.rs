//! A state that was shipped from another database, on its way into this one.

use std::sync::Arc;

use crate::error::StorageError;
use crate::read_view::ReadView;
use crate::version::Version;

/// A shipped state whose files are being written. When it is dropped its files are removed; after
/// a crash the next open does that.
#[derive(Debug)]
pub struct Staging {}

impl Staging {
    /// The count of files, as in the description.
    pub fn file_count(&self) -> usize {
        unimplemented!()
    }

    /// The length of file `index`; 0 if there is none.
    pub fn file_bytes(&self, index: usize) -> u64 {
        unimplemented!("{index}")
    }

    /// How many bytes of file `index` have been written.
    pub fn written(&self, index: usize) -> u64 {
        unimplemented!("{index}")
    }

    /// Writes the next bytes of file `index`; `offset` is what [`Staging::written`] says.
    ///
    /// # Errors
    /// [`StorageError::Corruption`]: the bytes are not those of the description; the staging is
    /// void. [`StorageError::Io`]: nothing was taken.
    pub fn write(&mut self, index: usize, offset: u64, bytes: &[u8]) -> Result<(), StorageError> {
        unimplemented!("{index} {offset} {bytes:?}")
    }

    /// Checks that all files are whole and makes them durable.
    pub fn finish(self) -> Result<StagedVersion, StorageError> {
        unimplemented!()
    }
}

/// A whole shipped state, durable but in no keyspace yet. When it is dropped its files are removed.
#[derive(Debug)]
pub struct StagedVersion {
    version: Arc<Version>,
    joined: bool,
}

impl StagedVersion {
    /// The state as a view.
    pub fn view(&self) -> ReadView {
        unimplemented!()
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
