//! Merges tables, so that reads look at few of them and what was overwritten gives its space back.
//!
//! A flush adds a table to L0. When L0 or a deeper level is over its target, some of its tables
//! are merged with those that share their keys in a level below, down to the bottom, which holds
//! nearly all data. The parts are pure but for the last two: [`shape`] knows targets and scores,
//! [`pick`] chooses the tables, [`merge`] walks them in order, [`retention`] says what stays;
//! [`output`] and [`run`] read and write. The job does one compaction at a time in small
//! steps, and waits for nobody; nobody waits for it but a writer without room.
//!
//! ```text
//! pick --> one table, nothing below --> commit: it changes its level
//!   ^ \--> merge ... merge --> sync, look at the outputs again --> commit
//!   |        |  no space, failed write: remove outputs, later     |  declined: remove outputs
//!   '--------+----------------------------------------------------+
//! ```

mod counters;
mod job;
mod merge;
mod output;
mod pick;
mod retention;
mod run;
mod shape;

#[cfg(test)]
mod tests;

use crate::database::DatabaseOptions;

pub(crate) use counters::CompactionCounters;
pub(crate) use job::{Compactor, Subject};

/// How many times larger a level may be than the one above it. More makes fewer levels, and every
/// byte meets more on its way down.
const FANOUT: u64 = 10;

/// When and how compaction works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactionOptions {
    /// The length at which a table is full.
    pub(crate) table_bytes: u64,
    /// The most that the level may hold which takes what leaves L0.
    pub(crate) level_base_bytes: u64,
    /// How many tables of L0 a read may have to look at before L0 is compacted.
    pub(crate) l0_trigger: usize,
    /// How many tables of L0 make the writer wait.
    pub(crate) l0_stop: usize,
}

impl CompactionOptions {
    /// How many tables of L0 are too many, though they share no keys: fewer than what makes the
    /// writer wait, as nobody else would end that.
    fn l0_tables_due(&self) -> usize {
        let half = (self.l0_stop / 2).max(self.l0_trigger);
        half.min(self.l0_stop).max(1)
    }
}

impl From<&DatabaseOptions> for CompactionOptions {
    fn from(options: &DatabaseOptions) -> Self {
        Self {
            table_bytes: options.table_bytes,
            level_base_bytes: options.level_base_bytes,
            l0_trigger: options.level_0_compaction_tables,
            l0_stop: options.level_0_stop_tables,
        }
    }
}
