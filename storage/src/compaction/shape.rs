//! How full the levels are, and how full they should be.
//!
//! Targets follow the data instead of the number of a level: the bottom may be as large as it is,
//! each level above it a tenth of the one below, up to the first target that the base size
//! covers. That level is the base, which takes what leaves L0; the levels between are empty. So
//! at most about a ninth of the data lies above the bottom, whatever its size.

use std::ops::Range;
use std::sync::Arc;

use super::{CompactionOptions, FANOUT};
use crate::codec::long;
use crate::table::{Table, TableMeta};
use crate::version::{LEVELS, Version};

/// The deepest level.
pub(super) const BOTTOM: usize = LEVELS - 1;

/// What the table set looks like to whoever plans a compaction.
pub(crate) trait Described {
    /// What is known of the table.
    fn meta(&self) -> &TableMeta;
}

impl Described for Table {
    fn meta(&self) -> &TableMeta {
        Self::meta(self)
    }
}

/// The tables of one version: L0 newest first, deeper levels by key.
///
/// Invariants: from L1 on, no two tables of a level share a user key.
pub(crate) struct Shape<'a, T>([&'a [Arc<T>]; LEVELS]);

/// A measure of how much a level needs compaction: 1,000 is where it begins.
pub(super) type Score = u64;

/// The score from which on a level is compacted.
pub(super) const SCORE_DUE: Score = 1_000;

/// Which level takes what leaves L0, and how large each level may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Targets {
    pub(super) base: usize,
    /// From the base on.
    bytes: [u64; LEVELS],
}

/// That of a version.
pub(crate) fn shape(version: &Version) -> Shape<'_, Table> {
    Shape::new(std::array::from_fn(|level| version.level(level)))
}

impl<'a, T: Described> Shape<'a, T> {
    /// # Panics
    /// When two tables of a level from L1 on share a user key.
    pub(crate) fn new(levels: [&'a [Arc<T>]; LEVELS]) -> Self {
        for (level, tables) in levels.iter().enumerate().skip(1) {
            for pair in tables.windows(2) {
                let (left, right) = (pair[0].meta(), pair[1].meta());
                assert!(
                    left.largest < right.smallest,
                    "tables {} and {} of level {level} share keys",
                    left.number,
                    right.number
                );
            }
        }
        Self(levels)
    }

    pub(super) fn level(&self, level: usize) -> &'a [Arc<T>] {
        self.0[level]
    }

    pub(super) fn bytes(&self, level: usize) -> u64 {
        bytes(self.0[level])
    }

    pub(super) fn targets(&self, options: &CompactionOptions) -> Targets {
        let sizes = std::array::from_fn(|level| self.bytes(level));
        Targets::new(sizes, options.level_base_bytes)
    }

    /// The tables of `level` that hold a key from `smallest` to `largest`; from L1 on only.
    pub(super) fn overlapping(
        &self,
        level: usize,
        smallest: &[u8],
        largest: &[u8],
    ) -> &'a [Arc<T>] {
        &self.0[level][self.places(level, smallest, largest)]
    }

    /// Where in `level` they are.
    pub(super) fn places(&self, level: usize, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        let tables = self.0[level];
        let start = tables.partition_point(|table| &*table.meta().largest < smallest);
        let count = tables[start..].partition_point(|table| &*table.meta().smallest <= largest);
        start..start + count
    }

    /// The score of L0: a read looks at each of its runs, the base must take its bytes, and a
    /// writer waits when there are too many tables, whatever is in them.
    pub(super) fn score_of_l0(&self, options: &CompactionOptions) -> Score {
        let tables = self.0[0];
        let runs = score(long(run_count(tables)), long(options.l0_trigger));
        let count = score(long(tables.len()), long(options.l0_tables_due()));
        runs.max(count)
            .max(score(self.bytes(0), options.level_base_bytes))
    }

    /// The bytes that must be read and written until every level is within its target: L0 and
    /// what is over each target, and what each of them meets in the level below.
    pub(super) fn debt(&self, options: &CompactionOptions) -> u64 {
        let targets = self.targets(options);
        let (mut debt, mut incoming) = (0_u64, 0);
        if self.score_of_l0(options) >= SCORE_DUE {
            incoming = self.bytes(0);
            debt = incoming.saturating_add(self.bytes(targets.base));
        }
        for level in targets.base..BOTTOM {
            let bytes = self.bytes(level).saturating_add(incoming);
            incoming = bytes.saturating_sub(targets.bytes(level));
            // What moves down meets its share of the level below.
            let both = u128::from(bytes) + u128::from(self.bytes(level + 1));
            let moved = u128::from(incoming) * both / u128::from(bytes.max(1));
            debt = debt.saturating_add(u64::try_from(moved).unwrap_or(u64::MAX));
        }
        debt
    }
}

impl Targets {
    /// Targets for levels of these sizes; that of L0 does not count.
    pub(super) fn new(sizes: [u64; LEVELS], base_bytes: u64) -> Self {
        let largest = sizes[1..].iter().copied().max().unwrap_or(0);
        // Data above the base would be passed by what leaves L0, so the base is not below it.
        let highest = (1..BOTTOM).find(|&level| sizes[level] > 0);
        let highest = highest.unwrap_or(BOTTOM);
        let mut targets = Self {
            base: BOTTOM,
            bytes: [largest.max(1); LEVELS],
        };
        while targets.base > 1
            && (targets.bytes(targets.base) > base_bytes || targets.base > highest)
        {
            let below = targets.bytes(targets.base);
            targets.base -= 1;
            targets.bytes[targets.base] = (below / FANOUT).max(base_bytes / FANOUT).max(1);
        }
        targets
    }

    /// How large `level`, at or below the base, may be.
    pub(super) fn bytes(&self, level: usize) -> u64 {
        self.bytes[level]
    }
}

/// `part` in thousandths of `whole`.
pub(super) fn score(part: u64, whole: u64) -> Score {
    let score = u128::from(part) * u128::from(SCORE_DUE) / u128::from(whole.max(1));
    Score::try_from(score).unwrap_or(Score::MAX)
}

/// The length of `tables` together.
pub(super) fn bytes<T: Described>(tables: &[Arc<T>]) -> u64 {
    tables.iter().map(|table| table.meta().bytes).sum()
}

/// How many tables of L0 hold the key that most of them hold, counted as a reader meets them: a
/// table lies above every older one whose range it shares.
pub(super) fn run_count<T: Described>(newest_first: &[Arc<T>]) -> usize {
    let mut heights: Vec<(&TableMeta, usize)> = Vec::with_capacity(newest_first.len());
    for table in newest_first.iter().rev() {
        let meta = table.meta();
        let below = heights.iter().filter(|(older, _)| overlap(older, meta));
        let height = below.map(|(_, height)| *height).max().unwrap_or(0) + 1;
        heights.push((meta, height));
    }
    heights.iter().map(|(_, height)| *height).max().unwrap_or(0)
}

/// Whether a key may be in both tables.
pub(super) fn overlap(left: &TableMeta, right: &TableMeta) -> bool {
    left.smallest <= right.largest && right.smallest <= left.largest
}
