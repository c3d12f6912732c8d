//! Decides what to compact next: a pure function of the table set.
//!
//! Three things are tried in order. A level over its target gives one table, that which meets
//! least below; equal ones take turns. L0 gives a group of tables that share keys, from the
//! oldest on. When all levels are within their targets, a table that is mostly tombstones sinks.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::CompactionOptions;
use super::shape::{BOTTOM, Described, SCORE_DUE, Score, Shape, Targets, bytes, run_count, score};
use crate::table::TableMeta;
use crate::version::LEVELS;

/// The tables of a level that go down in one compaction have at most this many times the size of
/// a table together, if they are more than one. It bounds how long L0 waits for the next turn.
const UPPER_TABLES_MAX: u64 = 25;

/// A table is not moved as it is where it would meet more than this many times the size of a
/// table in the level after: merging it further would take too long.
const MOVE_OVERLAP_TABLES_MAX: u64 = 25;

/// A level with this little to the one below is due as if it had a hundredth of its target.
const SCORE_BELOW_MIN: Score = 10;

/// Which tables to merge, and where the result goes.
///
/// Invariants: every table of the output level that shares keys with the upper inputs is an
/// input; so is every table of L0 that is older than an input of L0 and shares keys with it.
#[derive(Debug)]
pub(crate) struct Compaction<T> {
    /// The level that the data leaves.
    pub(crate) upper_level: usize,
    /// The inputs there: from L0 newest first, else by key. At least one.
    pub(crate) upper: Vec<Arc<T>>,
    /// The level that the data joins.
    pub(crate) output_level: usize,
    /// The inputs there, by key.
    pub(crate) lower: Vec<Arc<T>>,
    /// The tables below the output level that share keys with the inputs, by key.
    pub(crate) grandparents: Vec<Arc<T>>,
    /// The one input only changes its level.
    pub(crate) trivial_move: bool,
}

impl<T: Described> Compaction<T> {
    /// All inputs with their levels.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = (usize, &Arc<T>)> {
        let upper = self.upper.iter().map(|table| (self.upper_level, table));
        upper.chain(self.lower.iter().map(|table| (self.output_level, table)))
    }

    /// The length of the inputs.
    pub(crate) fn input_bytes(&self) -> u64 {
        bytes(&self.upper) + bytes(&self.lower)
    }
}

/// Where each level was compacted last, so that tables that are as good take turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    after: [Option<Bytes>; LEVELS],
}

impl Turns {
    /// Takes note of a compaction that was done.
    pub(crate) fn done<T: Described>(&mut self, compaction: &Compaction<T>) {
        if let Some(last) = compaction.upper.last() {
            self.after[compaction.upper_level] = Some(last.meta().largest.clone());
        }
    }

    fn has_passed(&self, level: usize, table: &TableMeta) -> bool {
        let after = self.after[level].as_ref();
        after.is_some_and(|after| table.smallest <= *after)
    }
}

/// The most urgent compaction and how urgent it is, if there is any.
pub(crate) fn pick<T: Described>(
    levels: &Shape<'_, T>,
    options: &CompactionOptions,
    turns: &Turns,
) -> Option<(Score, Compaction<T>)> {
    let targets = levels.targets(options);
    for (score, level) in due(levels, options, &targets) {
        let upper = if level == 0 {
            group(levels.level(0), options)
        } else {
            cheapest(levels, level, turns, |_| true)
        };
        if !upper.is_empty() {
            let output = if level == 0 { targets.base } else { level + 1 };
            return Some((score, complete(levels, options, level, upper, output)));
        }
    }
    let mostly_tombstones = |table: &TableMeta| table.tombstones.saturating_mul(2) >= table.entries;
    (1..BOTTOM).find_map(|level| {
        let upper = cheapest(levels, level, turns, mostly_tombstones);
        let some = !upper.is_empty();
        some.then(|| (0, complete(levels, options, level, upper, level + 1)))
    })
}

/// The levels that need compaction, the most urgent first. What is over its target weighs less
/// while the level below is over its own: that one has to give first.
fn due<T: Described>(
    levels: &Shape<'_, T>,
    options: &CompactionOptions,
    targets: &Targets,
) -> Vec<(Score, usize)> {
    let of_level = |level| score(levels.bytes(level), targets.bytes(level));
    let weigh = |level, own: Score, below| {
        let below = of_level(below).max(SCORE_BELOW_MIN);
        (own >= SCORE_DUE).then(|| (score(own, below), level))
    };
    let l0 = weigh(0, levels.score_of_l0(options), targets.base);
    let others =
        (targets.base..BOTTOM).filter_map(|level| weigh(level, of_level(level), level + 1));
    let mut due: Vec<_> = l0.into_iter().chain(others).collect();
    due.sort_by_key(|&(score, level)| (Reverse(score), level));
    due
}

/// The tables of L0 to compact, newest first: of those that are linked by shared keys, the deepest
/// pile, and of it as many as are not too much, from the oldest on. What stays is newer or shares
/// no key, so nothing sinks below older data.
fn group<T: Described>(newest_first: &[Arc<T>], options: &CompactionOptions) -> Vec<Arc<T>> {
    let mut by_key: Vec<usize> = (0..newest_first.len()).collect();
    by_key.sort_by(|&left, &right| {
        let key = |index: usize| &newest_first[index].meta().smallest;
        key(left).cmp(key(right))
    });
    let mut piles: Vec<Vec<usize>> = Vec::new();
    let mut end: Option<&Bytes> = None;
    for index in by_key {
        let meta = newest_first[index].meta();
        match piles.last_mut() {
            Some(pile) if end.is_some_and(|end| meta.smallest <= *end) => pile.push(index),
            _ => piles.push(vec![index]),
        }
        end = end.max(Some(&meta.largest));
    }
    let piles = piles.into_iter().map(|mut pile| {
        pile.sort_unstable();
        let tables = pile.iter().map(|&index| Arc::clone(&newest_first[index]));
        tables.collect::<Vec<_>>()
    });
    let oldest = |pile: &Vec<Arc<T>>| Reverse(pile.last().map(|table| table.meta().epoch));
    let deepest = piles.max_by_key(|pile| (run_count(pile), oldest(pile)));
    let mut pile = deepest.unwrap_or_default();
    let bytes_max = options.table_bytes.saturating_mul(UPPER_TABLES_MAX);
    let mut taken = 0_u64;
    let fits = |table: &&Arc<T>| {
        let first = taken == 0;
        taken = taken.saturating_add(table.meta().bytes);
        first || taken <= bytes_max
    };
    let count = pile.iter().rev().take_while(fits).count();
    pile.split_off(pile.len() - count)
}

/// Of the tables of `level` that are `wanted`, the one that meets least below for its size; the
/// next in turn among equals. Empty when there is none.
fn cheapest<T: Described>(
    levels: &Shape<'_, T>,
    level: usize,
    turns: &Turns,
    wanted: impl Fn(&TableMeta) -> bool,
) -> Vec<Arc<T>> {
    let tables = levels.level(level).iter();
    let best = tables
        .filter(|table| wanted(table.meta()))
        .min_by_key(|table| {
            let meta = table.meta();
            let met = levels.overlapping(level + 1, &meta.smallest, &meta.largest);
            (score(bytes(met), meta.bytes), turns.has_passed(level, meta))
        });
    best.cloned().into_iter().collect()
}

/// Adds what the merge needs to the upper inputs.
pub(super) fn complete<T: Described>(
    levels: &Shape<'_, T>,
    options: &CompactionOptions,
    upper_level: usize,
    upper: Vec<Arc<T>>,
    output_level: usize,
) -> Compaction<T> {
    let metas = || upper.iter().map(|table| table.meta());
    let (smallest, largest) = hull(&upper);
    let lower = with_small_neighbours(levels, options, output_level, &upper);
    let (mut first, mut last) = (smallest, largest);
    for table in lower {
        first = first.min(&table.meta().smallest);
        last = last.max(&table.meta().largest);
    }
    let deeper = |level| levels.overlapping(level, first, last);
    let grandparents = if output_level < BOTTOM {
        deeper(output_level + 1)
    } else {
        &[]
    };
    let bottommost = (output_level + 1..LEVELS).all(|level| deeper(level).is_empty());
    let tombstones = metas().any(|meta| meta.tombstones > 0);
    let move_max = options.table_bytes.saturating_mul(MOVE_OVERLAP_TABLES_MAX);
    let trivial_move = upper.len() == 1
        && lower.is_empty()
        && bytes(grandparents) <= move_max
        // A rewrite drops tombstones that hide nothing any more; a move would keep them for good.
        && !(bottommost && tombstones);
    Compaction {
        upper_level,
        output_level,
        lower: lower.to_vec(),
        grandparents: grandparents.to_vec(),
        trivial_move,
        upper,
    }
}

/// The tables of the output level that share keys with `upper`, and those beside them that are no
/// larger than all before, as long as one table takes them all: so a stream of small tables that
/// share nothing gives few large ones, and each byte is rewritten a few times.
fn with_small_neighbours<'a, T: Described>(
    levels: &Shape<'a, T>,
    options: &CompactionOptions,
    output_level: usize,
    upper: &[Arc<T>],
) -> &'a [Arc<T>] {
    let (smallest, largest) = hull(upper);
    let tables = levels.level(output_level);
    let Range { mut start, mut end } = levels.places(output_level, smallest, largest);
    let mut taken = bytes(upper).saturating_add(bytes(&tables[start..end]));
    loop {
        let fits = |table: &&Arc<T>| {
            let bytes = table.meta().bytes;
            bytes <= taken && taken.saturating_add(bytes) <= options.table_bytes
        };
        let before = start.checked_sub(1).map(|place| &tables[place]);
        if let Some(table) = before.filter(fits) {
            start -= 1;
            taken += table.meta().bytes;
        } else if let Some(table) = tables.get(end).filter(fits) {
            end += 1;
            taken += table.meta().bytes;
        } else {
            return &tables[start..end];
        }
    }
}

/// The first and the last key of tables, of which there is one at least.
fn hull<T: Described>(tables: &[Arc<T>]) -> (&Bytes, &Bytes) {
    let metas = || tables.iter().map(|table| table.meta());
    let smallest = metas().map(|meta| &meta.smallest).min();
    let largest = metas().map(|meta| &meta.largest).max();
    smallest
        .zip(largest)
        .expect("a compaction has an upper input")
}
