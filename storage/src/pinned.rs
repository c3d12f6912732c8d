//! A flushed state of a keyspace, kept readable while somebody holds it: what a snapshot ships.

mod description;

use std::sync::Arc;

use bytes::Bytes;

use crate::error::StorageError;
use crate::read_view::ReadView;
use crate::table::Table;
use crate::version::Version;

pub(crate) use description::{DESCRIPTION_BYTES_MAX, Description};

/// What the tables of a keyspace held at one moment. Holding it keeps its files on the disk.
/// Clones share it.
#[derive(Clone, Debug)]
pub struct PinnedVersion {
    version: Arc<Version>,
    files: Arc<[Arc<Table>]>,
}

impl PinnedVersion {
    /// Holds `version`.
    pub(crate) fn new(version: Arc<Version>) -> Self {
        let files = version.tables().map(|(_, table)| Arc::clone(table));
        Self {
            files: files.collect(),
            version,
        }
    }

    /// What another database needs to know to take this state over; opaque to who ships it.
    pub fn description(&self) -> Bytes {
        Description::of(&self.version).encode().into()
    }

    /// The count of files. They are numbered from 0, in the order of the description.
    pub fn file_count(&self) -> usize {
        self.files.len()
    }

    /// The length of file `index`; 0 if there is none.
    pub fn file_bytes(&self, index: usize) -> u64 {
        let file = self.files.get(index);
        file.map_or(0, |table| table.meta().bytes)
    }

    /// The length of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|table| table.meta().bytes).sum()
    }

    /// At most `bytes_max` bytes of file `index` from `offset` on; fewer only at its end, nothing
    /// behind it. Reads the disk.
    ///
    /// # Errors
    /// [`StorageError::Io`]: reading may be tried again.
    pub fn read(&self, index: usize, offset: u64, bytes_max: usize) -> Result<Bytes, StorageError> {
        let Some(table) = self.files.get(index) else {
            return Ok(Bytes::new());
        };
        Ok(table.reader().read_file(offset, bytes_max)?)
    }

    /// The state as a view.
    pub fn view(&self) -> ReadView {
        ReadView::of_version(Arc::clone(&self.version))
    }
}
