//! A flushed state of a keyspace, kept readable while somebody holds it: what a snapshot ships.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::StorageError;
use crate::read_view::ReadView;
use crate::version::Version;

/// What the tables of a keyspace held at one moment. Holding it keeps its files on the disk.
#[derive(Clone, Debug)]
pub struct PinnedVersion {
    version: Arc<Version>,
}

impl PinnedVersion {
    pub(crate) fn new(version: Arc<Version>) -> Self {
        Self { version }
    }

    /// What another database needs to know to take this state over; opaque to who ships it.
    pub fn description(&self) -> Bytes {
        unimplemented!()
    }

    /// The count of files. They are numbered from 0, in the order of the description.
    pub fn file_count(&self) -> usize {
        self.version.tables().count()
    }

    /// The length of file `index`; 0 if there is none.
    pub fn file_bytes(&self, index: usize) -> u64 {
        unimplemented!("{index}")
    }

    /// The length of all files.
    pub fn bytes(&self) -> u64 {
        let tables = self.version.tables();
        tables.map(|(_, table)| table.meta().bytes).sum()
    }

    /// At most `bytes_max` bytes of file `index` from `offset` on; fewer only at its end.
    ///
    /// # Errors
    /// [`StorageError::Io`]: reading may be tried again.
    pub fn read(&self, index: usize, offset: u64, bytes_max: usize) -> Result<Bytes, StorageError> {
        unimplemented!("{index} {offset} {bytes_max}")
    }

    /// The state as a view.
    pub fn view(&self) -> ReadView {
        unimplemented!()
    }
}
