//! Writes the tables that a merge gives.
//!
//! A table ends when it is full, or when it would meet too much of the level after: that bounds
//! the compactions that it takes part in later. It never ends within a user key, as the merge
//! leaves one version of each.

use std::sync::Arc;

use bytes::Bytes;

use super::shape::Described;
use crate::catalog::Catalog;
use crate::file_number::FileNumber;
use crate::internal_key::Trailer;
use crate::sstable::{SstableError, SstableOptions, SstableSummary, SstableWriter};

/// A table meets at most this many times the size of a table in the level after, and the one
/// table that takes it over.
const OVERLAP_TABLES_MAX: u64 = 10;

/// The tables of one compaction, as far as they are written.
pub(super) struct Outputs {
    catalog: Arc<Catalog>,
    sstable: SstableOptions,
    cutter: Cutter,
    current: Option<SstableWriter>,
    finished: Vec<SstableSummary>,
    /// All files that were made, also those that are not finished.
    numbers: Vec<FileNumber>,
}

impl Outputs {
    pub(super) fn new(catalog: Arc<Catalog>, sstable: SstableOptions, cutter: Cutter) -> Self {
        Self {
            catalog,
            sstable,
            cutter,
            current: None,
            finished: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Adds a version of a user key that is behind the last one.
    pub(super) fn add(
        &mut self,
        user_key: &[u8],
        trailer: Trailer,
        value: &[u8],
    ) -> Result<(), SstableError> {
        let bytes = self.current.as_ref().map_or(0, SstableWriter::bytes);
        if self.cutter.must_cut(user_key, bytes) {
            self.cut()?;
        }
        let writer = match &mut self.current {
            Some(writer) => writer,
            none => {
                let catalog = &self.catalog;
                let number = catalog.next_number();
                self.numbers.push(number);
                let (vfs, directory) = (&**catalog.vfs(), catalog.directory());
                let birth = catalog.birth(number);
                none.insert(SstableWriter::create(vfs, directory, birth, self.sstable)?)
            }
        };
        writer.add(user_key, trailer, value)
    }

    /// Ends the last table and makes all names durable.
    pub(super) fn finish(&mut self) -> Result<(), SstableError> {
        self.cut()?;
        if !self.finished.is_empty() {
            let directory = self.catalog.directory();
            let synced = self.catalog.vfs().sync_dir(directory);
            synced.map_err(SstableError::io("sync", directory, 0))?;
        }
        Ok(())
    }

    /// The files that were made; void unless a commit names them.
    pub(super) fn numbers(&self) -> &[FileNumber] {
        &self.numbers
    }

    /// The tables that are finished.
    pub(super) fn finished(&self) -> &[SstableSummary] {
        &self.finished
    }

    fn cut(&mut self) -> Result<(), SstableError> {
        if let Some(writer) = self.current.take() {
            self.finished.push(writer.finish()?);
        }
        Ok(())
    }
}

/// Decides where a table ends.
pub(super) struct Cutter {
    table_bytes: u64,
    /// Largest key and length of each table of the level after, by key.
    grandparents: Vec<(Bytes, u64)>,
    /// The first one that does not end before the last key.
    at: usize,
    /// The length of those that the open table has passed.
    passed_bytes: u64,
}

impl Cutter {
    pub(super) fn new<T: Described>(table_bytes: u64, grandparents: &[Arc<T>]) -> Self {
        let grandparents = grandparents.iter().map(|table| {
            let meta = table.meta();
            (meta.largest.clone(), meta.bytes)
        });
        Self {
            table_bytes,
            grandparents: grandparents.collect(),
            at: 0,
            passed_bytes: 0,
        }
    }

    /// Whether the open table, of `bytes`, ends before `next`.
    pub(super) fn must_cut(&mut self, next: &[u8], bytes: u64) -> bool {
        while let Some((largest, length)) = self.grandparents.get(self.at)
            && **largest < *next
        {
            if bytes > 0 {
                self.passed_bytes += length;
            }
            self.at += 1;
        }
        let overlap_max = self.table_bytes.saturating_mul(OVERLAP_TABLES_MAX);
        let cut = bytes > 0 && (bytes >= self.table_bytes || self.passed_bytes > overlap_max);
        if cut {
            self.passed_bytes = 0;
        }
        cut
    }
}
