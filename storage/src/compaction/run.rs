//! One compaction from its first input byte to tables that are ready to be committed.

use std::sync::Arc;
use std::vec;

use bytes::Bytes;

use super::merge::{Merge, Source};
use super::output::{Cutter, Outputs};
use super::pick::Compaction;
use super::retention::{Fate, OlderTables, OutOfOrder, Retention};
use super::shape::shape;
use crate::catalog::Catalog;
use crate::file_number::FileNumber;
use crate::internal_key::Trailer;
use crate::sstable::{EntryCursor, SstableError, SstableReader, SstableSummary};
use crate::table::Table;
use crate::version::Version;

/// Why a compaction cannot go on.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// An input cannot be read.
    Input(SstableError),
    /// An output cannot be written.
    Output(SstableError),
}

/// How far a compaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to merge.
    More,
    /// All outputs are durable under their names.
    Done,
}

/// A merge under way. It keeps the inputs open, whatever becomes of their version meanwhile.
///
/// Invariants: each version of the inputs was written or dropped, counted once.
pub(super) struct Run {
    merge: Merge<TableRun>,
    retention: Retention<Table>,
    outputs: Outputs,
    entries_expected: u64,
    entries_read: u64,
    entries_dropped: u64,
}

impl Run {
    /// Stands before the first version of the inputs.
    pub(super) fn start(
        catalog: &Arc<Catalog>,
        version: &Version,
        compaction: &Compaction<Table>,
        table_bytes: u64,
    ) -> Result<Self, Failure> {
        let mut sources = Vec::new();
        if compaction.upper_level == 0 {
            for table in &compaction.upper {
                sources.push(TableRun::start(vec![Arc::clone(table)])?);
            }
        } else {
            sources.push(TableRun::start(compaction.upper.clone())?);
        }
        sources.push(TableRun::start(compaction.lower.clone())?);
        let cutter = Cutter::new(table_bytes, &compaction.grandparents);
        let counts = compaction.inputs().map(|(_, table)| table.meta().entries);
        Ok(Self {
            merge: Merge::new(sources),
            retention: Retention::new(OlderTables::new(&shape(version), compaction)),
            outputs: Outputs::new(Arc::clone(catalog), version.options().table(), cutter),
            entries_expected: counts.sum(),
            entries_read: 0,
            entries_dropped: 0,
        })
    }

    /// Merges about `bytes_max` of input.
    pub(super) fn step(&mut self, bytes_max: usize) -> Result<Progress, Failure> {
        let mut bytes = 0_usize;
        while bytes < bytes_max {
            let Some(source) = self.merge.head() else {
                self.finish()?;
                return Ok(Progress::Done);
            };
            let Some(((user_key, trailer), value)) = source.entry().zip(source.value()) else {
                unreachable!("the head of a merge stands at a version");
            };
            bytes += user_key.len() + value.len();
            self.entries_read += 1;
            match self.retention.fate(user_key, trailer) {
                Ok(Fate::Keep(trailer)) => {
                    let added = self.outputs.add(user_key, trailer, &value);
                    added.map_err(Failure::Output)?;
                }
                Ok(Fate::Drop) => self.entries_dropped += 1,
                Err(OutOfOrder) => {
                    return Err(source.corrupt("the versions are not in order".to_owned()));
                }
            }
            self.merge.advance()?;
        }
        Ok(Progress::More)
    }

    /// The tables to commit, once the run is done.
    pub(super) fn tables(&self) -> &[SstableSummary] {
        self.outputs.finished()
    }

    /// The files that were made so far.
    pub(super) fn numbers(&self) -> &[FileNumber] {
        self.outputs.numbers()
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.outputs.finish().map_err(Failure::Output)?;
        let written: u64 = self
            .tables()
            .iter()
            .map(|table| table.properties.entry_count)
            .sum();
        assert_eq!(
            self.entries_read, self.entries_expected,
            "each table was found to give as many versions as it should"
        );
        assert_eq!(
            self.entries_read,
            written + self.entries_dropped,
            "every version is written or dropped"
        );
        Ok(())
    }
}

/// Walks tables that follow one another.
struct TableRun {
    left: vec::IntoIter<Arc<Table>>,
    /// The table in which it stands, and how many versions that has given.
    current: Option<(Arc<SstableReader>, EntryCursor)>,
    entries_expected: u64,
    entries_read: u64,
}

impl TableRun {
    /// Stands at the first version of `tables`, which are in order of their keys.
    fn start(tables: Vec<Arc<Table>>) -> Result<Self, Failure> {
        let mut run = Self {
            left: tables.into_iter(),
            current: None,
            entries_expected: 0,
            entries_read: 0,
        };
        run.enter_next()?;
        Ok(run)
    }

    /// Goes to the first version of the next table, if there is one.
    fn enter_next(&mut self) -> Result<(), Failure> {
        self.current = None;
        let Some(table) = self.left.next() else {
            return Ok(());
        };
        let reader = Arc::clone(table.reader());
        let mut cursor = EntryCursor::once(Arc::clone(&reader));
        cursor.seek_first().map_err(Failure::Input)?;
        let empty = cursor.entry().is_none();
        self.entries_expected = table.meta().entries;
        self.entries_read = 1;
        self.current = Some((reader, cursor));
        if empty {
            return Err(self.corrupt("the table has no versions".to_owned()));
        }
        Ok(())
    }

    /// A fault in the table in which it stands.
    fn corrupt(&self, fault: String) -> Failure {
        let (reader, _) = self.current.as_ref().expect("it stands in a table");
        Failure::Input(reader.corruption(fault))
    }
}

impl Source for TableRun {
    type Error = Failure;

    fn entry(&self) -> Option<(&[u8], Trailer)> {
        self.current.as_ref()?.1.entry()
    }

    fn value(&self) -> Option<Bytes> {
        self.current.as_ref()?.1.value()
    }

    fn advance(&mut self) -> Result<(), Failure> {
        let Some((_, cursor)) = &mut self.current else {
            return Ok(());
        };
        cursor.next().map_err(Failure::Input)?;
        if cursor.entry().is_some() {
            self.entries_read += 1;
            return Ok(());
        }
        if self.entries_read != self.entries_expected {
            let (read, expected) = (self.entries_read, self.entries_expected);
            return Err(self.corrupt(format!("{read} versions were found instead of {expected}")));
        }
        self.enter_next()
    }
}
