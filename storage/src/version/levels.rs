//! Tables sorted into levels.

use std::cmp::Reverse;
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
        sort(tables, |table| table.meta()).map(Self)
    }

    /// These tables without `removed` and with `added`; none when one of `removed` is not there.
    pub(crate) fn changed(
        &self,
        removed: &[(usize, FileNumber)],
        added: impl IntoIterator<Item = (usize, Arc<Table>)>,
    ) -> Option<Result<Self, LevelsFault>> {
        let all = self.tables();
        let mut kept: Vec<_> = all
            .map(|(level, table)| (level, Arc::clone(table)))
            .collect();
        let before = kept.len();
        kept.retain(|(level, table)| !removed.contains(&(*level, table.meta().number)));
        if before - kept.len() != removed.len() {
            return None;
        }
        for (level, table) in added {
            let number = table.meta().number;
            if kept.iter().any(|(_, other)| other.meta().number == number) {
                return Some(Err(LevelsFault("a table is added twice")));
            }
            kept.push((level, table));
        }
        Some(Self::new(kept))
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
}

/// Whether `tables` could be the levels of a version.
pub(crate) fn check_levels<'a>(
    tables: impl IntoIterator<Item = (usize, &'a TableMeta)>,
) -> Result<(), LevelsFault> {
    sort(tables, |table| table).map(|_| ())
}

fn sort<T>(
    tables: impl IntoIterator<Item = (usize, T)>,
    meta: impl Fn(&T) -> &TableMeta,
) -> Result<[Vec<T>; LEVELS], LevelsFault> {
    let mut levels: [Vec<T>; LEVELS] = std::array::from_fn(|_| Vec::new());
    for (level, table) in tables {
        let tables = levels.get_mut(level);
        tables
            .ok_or(LevelsFault("a table is on a level that does not exist"))?
            .push(table);
    }
    let [newest, deeper @ ..] = &mut levels;
    newest.sort_by_key(|table| Reverse(meta(table).epoch));
    let same_age = |pair: &[T]| meta(&pair[0]).epoch == meta(&pair[1]).epoch;
    if newest.windows(2).any(same_age) {
        return Err(LevelsFault("two tables of level 0 have the same age"));
    }
    for tables in deeper {
        tables.sort_by(|left, right| meta(left).smallest.cmp(&meta(right).smallest));
        let overlap = |pair: &[T]| meta(&pair[0]).largest >= meta(&pair[1]).smallest;
        if tables.windows(2).any(overlap) {
            return Err(LevelsFault("tables of a deeper level overlap"));
        }
    }
    Ok(levels)
}
