//! The tables that a flush writes.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::internal_key::Trailer;
use crate::sstable::{SstableOptions, SstableWriter};
use crate::table::TableMeta;

/// Tables that grow one after the other. Unless they are kept, their files are discarded when it is
/// dropped.
pub(super) struct TableOutput {
    catalog: Arc<Catalog>,
    options: SstableOptions,
    table_bytes: u64,
    open: Option<SstableWriter>,
    finished: Vec<TableMeta>,
    /// Every file that was begun.
    numbers: Vec<FileNumber>,
}

impl TableOutput {
    /// Tables of about `table_bytes`.
    pub(super) fn new(catalog: &Arc<Catalog>, options: SstableOptions, table_bytes: u64) -> Self {
        Self {
            catalog: Arc::clone(catalog),
            options,
            table_bytes,
            open: None,
            finished: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Adds the only version of a key, which comes after the keys before.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        trailer: Trailer,
        value: &[u8],
    ) -> Result<(), StorageError> {
        let mut writer = match self.open.take() {
            Some(writer) => writer,
            None => self.begin()?,
        };
        writer.add(key, trailer, value)?;
        let full = writer.bytes() >= self.table_bytes;
        self.open = Some(writer);
        if full {
            self.finish_table()?;
        }
        Ok(())
    }

    /// Ends the last table and makes all of them and their names durable.
    pub(super) fn finish(&mut self) -> Result<Vec<TableMeta>, StorageError> {
        self.finish_table()?;
        if !self.finished.is_empty() {
            self.catalog.vfs().sync_dir(self.catalog.directory())?;
        }
        Ok(self.finished.clone())
    }

    /// The tables have joined a version.
    pub(super) fn keep(mut self) {
        self.numbers.clear();
    }

    fn begin(&mut self) -> Result<SstableWriter, StorageError> {
        let number = self.catalog.next_number();
        // It counts as begun even when making it fails: who knows what is there.
        self.numbers.push(number);
        let (vfs, directory) = (self.catalog.vfs(), self.catalog.directory());
        let birth = self.catalog.birth(number);
        let writer = SstableWriter::create(&**vfs, directory, birth, self.options)?;
        Ok(writer)
    }

    fn finish_table(&mut self) -> Result<(), StorageError> {
        if let Some(writer) = self.open.take() {
            self.finished.push(TableMeta::new(&writer.finish()?));
        }
        Ok(())
    }
}

impl Drop for TableOutput {
    fn drop(&mut self) {
        self.open = None;
        if !self.numbers.is_empty() {
            self.catalog.discard(&self.numbers);
        }
    }
}
