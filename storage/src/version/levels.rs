//! Tables sorted into levels.

use std::sync::Arc;

use super::LEVELS;
use crate::file_number::FileNumber;
use crate::table::{Table, TableMeta};

/// What is wrong with a set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelsFault(pub(crate) &'static str);

/// The tables of a version.
///
/// Invariants:
/// - Level 0 is sorted by epoch, newest first, and no epoch comes twice.
/// - Every other level is sorted by key, and no two of its tables share a key.
#[derive(Clone, Default)]
pub(crate) struct Levels([Vec<Arc<Table>>; LEVELS]);

impl Levels {
    /// Sorts `tables` into their levels.
    pub(crate) fn new(
        tables: impl IntoIterator<Item = (usize, Arc<Table>)>,
    ) -> Result<Self, LevelsFault> {
        let mut levels = Self::default();
        for (level, table) in tables {
            let tables = levels.0.get_mut(level);
            tables
                .ok_or(LevelsFault("a table is on a level that does not exist"))?
                .push(table);
        }
        levels.sort()?;
        Ok(levels)
    }

    /// These tables without `removed` and with `added`; none when one of `removed` is not there.
    pub(crate) fn changed(
        &self,
        removed: &[(usize, FileNumber)],
        added: impl IntoIterator<Item = (usize, Arc<Table>)>,
    ) -> Option<Result<Self, LevelsFault>> {
        let mut kept: Vec<_> = self
            .tables()
            .map(|(level, table)| (level, Arc::clone(table)))
            .collect();
        let before = kept.len();
        kept.retain(|(level, table)| !removed.contains(&(*level, table.meta().number)));
        if before - kept.len() != removed.len() {
            return None;
        }
        Some(Self::new(kept.into_iter().chain(added)))
    }

    /// The tables of a level; none of a level that does not exist.
    pub(crate) fn level(&self, level: usize) -> &[Arc<Table>] {
        self.0.get(level).map_or(&[], Vec::as_slice)
    }

    /// All tables with their levels, in the order in which they are asked for a key.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        let levels = self.0.iter().enumerate();
        levels.flat_map(|(level, tables)| tables.iter().map(move |table| (level, table)))
    }

    /// The tables whose keys span `key`, newest first. Allocates nothing.
    pub(crate) fn candidates(&self, key: &[u8]) -> impl Iterator<Item = &Table> {
        let [newest, deeper @ ..] = &self.0;
        let newest = newest.iter().map(Arc::as_ref);
        let deeper = deeper.iter().filter_map(move |tables| {
            let place = tables.partition_point(|table| *table.meta().largest < *key);
            tables.get(place).map(Arc::as_ref)
        });
        newest
            .chain(deeper)
            .filter(move |table| table.meta().spans(key))
    }

    fn sort(&mut self) -> Result<(), LevelsFault> {
        let [newest, deeper @ ..] = &mut self.0;
        newest.sort_by_key(|table| std::cmp::Reverse(table.meta().epoch));
        if newest
            .windows(2)
            .any(|pair| pair[0].meta().epoch == pair[1].meta().epoch)
        {
            return Err(LevelsFault("two tables of level 0 have the same age"));
        }
        for tables in deeper {
            tables.sort_by(|left, right| left.meta().smallest.cmp(&right.meta().smallest));
            let disjoint = |pair: &[Arc<Table>]| is_before(pair[0].meta(), pair[1].meta());
            if !tables.windows(2).all(disjoint) {
                return Err(LevelsFault("tables of a deeper level overlap"));
            }
        }
        Ok(())
    }
}

fn is_before(left: &TableMeta, right: &TableMeta) -> bool {
    left.largest < right.smallest
}
