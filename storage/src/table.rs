//! A table that is in use: what the manifest knows of a file, and the file opened.
//!
//! A table is shared by all versions that hold it and by whoever reads it. It is marked dead when
//! no later version will hold it; the last holder that lets go of a dead table gives its file to
//! the remover.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::catalog::DeadFiles;
use crate::error::Corruption;
use crate::file_number::FileNumber;
use crate::sequence_number::SequenceNumber;
use crate::sstable::{Birth, BlockCache, SstableError, SstableFile, SstableReader, SstableSummary};
use crate::vfs::Vfs;

/// What a version knows of a table without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableMeta {
    /// The number in the file's name.
    pub(crate) number: FileNumber,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// XXH3-64 of the whole file.
    pub(crate) hash: u64,
    /// Which table it is, in every database.
    pub(crate) birth: Birth,
    /// The first user key.
    pub(crate) smallest: Bytes,
    /// The last user key.
    pub(crate) largest: Bytes,
    pub(crate) sequence_min: SequenceNumber,
    pub(crate) sequence_max: SequenceNumber,
    /// Versions, tombstones included.
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    /// Orders the tables of level 0, newest highest. 0 asks the catalog for the next one.
    pub(crate) epoch: u64,
}

impl TableMeta {
    /// A table that was just written. A merge of tables of level 0 that stays there sets the
    /// highest epoch of its inputs.
    pub(crate) fn new(summary: &SstableSummary) -> Self {
        let properties = &summary.properties;
        Self {
            number: summary.number,
            bytes: summary.bytes,
            hash: summary.hash,
            birth: properties.birth,
            smallest: properties.smallest.clone(),
            largest: properties.largest.clone(),
            sequence_min: properties.sequence_min,
            sequence_max: properties.sequence_max,
            entries: properties.entry_count,
            tombstones: properties.tombstone_count,
            epoch: 0,
        }
    }

    /// What a reader must find.
    pub(crate) fn file(&self) -> SstableFile {
        SstableFile {
            number: self.number,
            bytes: self.bytes,
            birth: self.birth,
        }
    }

    /// Whether `key` lies between the first and the last key.
    #[inline]
    pub(crate) fn spans(&self, key: &[u8]) -> bool {
        *self.smallest <= *key && *key <= *self.largest
    }
}

/// An open table of a version.
pub(crate) struct Table {
    meta: TableMeta,
    reader: Arc<SstableReader>,
    dead_files: Arc<DeadFiles>,
    dead: AtomicBool,
}

impl Table {
    /// Opens the file and checks that it is the table that `meta` tells of.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        directory: &Path,
        meta: TableMeta,
        cache: &Arc<BlockCache>,
        dead_files: &Arc<DeadFiles>,
    ) -> Result<Self, SstableError> {
        let reader = SstableReader::open(vfs, directory, meta.file(), Arc::clone(cache))?;
        let found = reader.properties();
        let same = found.smallest == meta.smallest
            && found.largest == meta.largest
            && found.sequence_min == meta.sequence_min
            && found.sequence_max == meta.sequence_max
            && found.entry_count == meta.entries
            && found.tombstone_count == meta.tombstones;
        if !same {
            let path = directory.join(meta.number.sstable_name());
            let fault = "the table holds something else than the manifest says";
            return Err(Corruption::new(path, 0, fault).into());
        }
        Ok(Self {
            meta,
            reader: Arc::new(reader),
            dead_files: Arc::clone(dead_files),
            dead: AtomicBool::new(false),
        })
    }

    /// Gives it its place among the tables of level 0.
    pub(crate) fn set_epoch(&mut self, epoch: u64) {
        self.meta.epoch = epoch;
    }

    /// What the manifest knows of it.
    pub(crate) fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// The open file.
    pub(crate) fn reader(&self) -> &Arc<SstableReader> {
        &self.reader
    }

    /// Says that no later version will hold it: its file goes with the last holder.
    pub(crate) fn mark_dead(&self) {
        if !self.dead.swap(true, Ordering::AcqRel) {
            self.dead_files.note_dead(self.meta.bytes);
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Table")
            .field(&self.meta.number)
            .finish()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if *self.dead.get_mut() {
            self.dead_files.bury(self.meta.number, self.meta.bytes);
        }
    }
}
