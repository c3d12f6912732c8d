//! Every small history of flushes and compactions, against the plainest model.
//!
//! All states are walked that some order of at most a few flushes and of any legal compactions
//! leads to, also of such as the picker would not choose. After each step every key must read
//! as the model says; a tombstone that goes too early shows as a value that comes back. When
//! all is compacted to the bottom, only live values are left.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use super::super::merge::{Merge, Source};
use super::super::output::Cutter;
use super::super::pick::{Compaction, complete};
use super::super::retention::{Fate, OlderTables, Retention};
use super::super::shape::{BOTTOM, overlap};
use super::*;
use crate::internal_key::{Kind, Trailer};

/// Levels that data may be in, L0 apart: enough for a table between two others.
const HIGHEST: usize = BOTTOM - 2;

type Entry = (Bytes, Trailer, Bytes);

/// A table with what is in it; a value is the number of the write that made it.
#[derive(Debug)]
struct Held {
    meta: TableMeta,
    entries: Vec<Entry>,
}

impl Described for Held {
    fn meta(&self) -> &TableMeta {
        &self.meta
    }
}

impl Held {
    fn new(number: u64, entries: Vec<Entry>) -> Arc<Self> {
        let mut meta = table(number, "", "", 1);
        meta.smallest = entries.first().unwrap().0.clone();
        meta.largest = entries.last().unwrap().0.clone();
        meta.entries = entries.len() as u64;
        let dead = entries
            .iter()
            .filter(|entry| entry.1.kind() == Kind::Delete);
        meta.tombstones = dead.count() as u64;
        Arc::new(Self { meta, entries })
    }
}

struct Walk {
    table: Vec<Arc<Held>>,
    at: usize,
}

impl Walk {
    fn over(table: Vec<Arc<Held>>) -> Self {
        Self { table, at: 0 }
    }

    fn current(&self) -> Option<&Entry> {
        self.table
            .iter()
            .flat_map(|table| &table.entries)
            .nth(self.at)
    }
}

impl Source for Walk {
    type Error = Infallible;

    fn entry(&self) -> Option<(&[u8], Trailer)> {
        self.current().map(|(key, trailer, _)| (&**key, *trailer))
    }

    fn value(&self) -> Option<Bytes> {
        self.current().map(|entry| entry.2.clone())
    }

    fn advance(&mut self) -> Result<(), Infallible> {
        self.at += 1;
        Ok(())
    }
}

/// The tables, and what each key must read as.
#[derive(Clone, Default)]
struct State {
    levels: [Vec<Arc<Held>>; LEVELS],
    model: BTreeMap<Bytes, Bytes>,
    writes: u64,
    tables: u64,
    flushes: usize,
}

impl State {
    fn shape(&self) -> Shape<'_, Held> {
        Shape::new(self.levels.each_ref().map(Vec::as_slice))
    }

    /// Flushes a memtable that did `kinds` to the keys a, b, c.
    fn flush(&mut self, kinds: &[Option<Kind>]) {
        let mut entries = Vec::new();
        for (number, kind) in (b'a'..).zip(kinds) {
            let Some(kind) = kind else { continue };
            self.writes += 1;
            let key = Bytes::copy_from_slice(&[number]);
            let value = Bytes::from(self.writes.to_string());
            match kind {
                Kind::Put => self.model.insert(key.clone(), value.clone()),
                Kind::Delete => self.model.remove(&key),
            };
            let trailer = Trailer::new(SequenceNumber::new(self.writes), *kind);
            entries.push((key, trailer, value));
        }
        self.tables += 1;
        self.flushes += 1;
        self.levels[0].insert(0, Held::new(self.tables, entries));
    }

    /// Every compaction that the rules allow.
    fn compactions(&self) -> Vec<Compaction<Held>> {
        let shape = self.shape();
        let mut found = Vec::new();
        let highest = (1..BOTTOM).find(|&level| !self.levels[level].is_empty());
        for chosen in 1..1_usize << self.levels[0].len() {
            let is_chosen = |index: usize| chosen >> index & 1 == 1;
            let tables = || self.levels[0].iter().enumerate();
            let legal = tables()
                .filter(|(index, _)| is_chosen(*index))
                .all(|(index, newer)| {
                    let mut older = tables().skip(index + 1);
                    older.all(|(index, older)| {
                        is_chosen(index) || !overlap(&newer.meta, &older.meta)
                    })
                });
            if legal {
                for output in HIGHEST..=highest.unwrap_or(BOTTOM) {
                    let upper = tables().filter(|(index, _)| is_chosen(*index));
                    let upper = upper.map(|(_, table)| Arc::clone(table)).collect();
                    found.push(complete(&shape, &options(), 0, upper, output));
                }
            }
        }
        for level in HIGHEST..BOTTOM {
            for table in &self.levels[level] {
                let upper = vec![Arc::clone(table)];
                found.push(complete(&shape, &options(), level, upper, level + 1));
            }
        }
        found
    }

    fn compact(&mut self, compaction: &Compaction<Held>, table_bytes: u64) {
        let outputs = if compaction.trivial_move {
            compaction.upper.clone()
        } else {
            self.merge(compaction, table_bytes)
        };
        let inputs: BTreeSet<_> = compaction
            .inputs()
            .map(|(_, table)| table.meta.number)
            .collect();
        for tables in &mut self.levels {
            tables.retain(|table| !inputs.contains(&table.meta.number));
        }
        let level = &mut self.levels[compaction.output_level];
        level.extend(outputs);
        level.sort_by_key(|table| table.meta.smallest.clone());
    }

    fn merge(&mut self, compaction: &Compaction<Held>, table_bytes: u64) -> Vec<Arc<Held>> {
        let mut sources: Vec<_> = match compaction.upper_level {
            0 => compaction
                .upper
                .iter()
                .map(|table| Walk::over(vec![Arc::clone(table)]))
                .collect(),
            _ => vec![Walk::over(compaction.upper.clone())],
        };
        sources.push(Walk::over(compaction.lower.clone()));
        let mut merge = Merge::new(sources);
        let mut retention = Retention::new(OlderTables::new(&self.shape(), compaction));
        let mut cutter = Cutter::new(table_bytes, &compaction.grandparents);
        let mut outputs = vec![Vec::new()];
        while let Some(source) = merge.head() {
            let (key, trailer) = source.entry().unwrap();
            if let Fate::Keep(trailer) = retention.fate(key, trailer).unwrap() {
                let open = outputs.last().unwrap().len() as u64;
                if cutter.must_cut(key, open) {
                    outputs.push(Vec::new());
                }
                let entry = (
                    Bytes::copy_from_slice(key),
                    trailer,
                    source.value().unwrap(),
                );
                outputs.last_mut().unwrap().push(entry);
            }
            merge.advance().unwrap();
        }
        outputs.retain(|entries| !entries.is_empty());
        let make = |entries| {
            self.tables += 1;
            Held::new(self.tables, entries)
        };
        outputs.into_iter().map(make).collect()
    }

    /// Reads as a version does, where the first table that knows a key decides, and as a scan of
    /// everything by sequence number would: both must give the model.
    fn check(&self) {
        let _ = self.shape();
        let entries = || {
            let tables = self.levels.iter().flatten();
            tables.flat_map(|table| &table.entries)
        };
        for key in ["a", "b", "c"] {
            let expected = self.model.get(key.as_bytes());
            let mut versions = entries().filter(|entry| entry.0 == key);
            let first = versions.clone().next();
            let value = |entry: Option<&Entry>| {
                let put = entry.filter(|entry| entry.1.kind() == Kind::Put);
                put.map(|entry| entry.2.clone())
            };
            assert_eq!(
                value(first).as_ref(),
                expected,
                "{key} in {:?}",
                self.levels
            );
            let newest = versions.clone().max_by_key(|entry| entry.1);
            assert_eq!(first, newest, "{key} in {:?}", self.levels);
            let mut trailers = BTreeSet::new();
            assert!(
                versions.all(|entry| trailers.insert(entry.1)),
                "{key} twice"
            );
        }
    }

    /// Compacted as far as it goes, only what is live remains, without its numbers.
    fn check_bottom(mut self) {
        while !self.levels[..BOTTOM].iter().all(Vec::is_empty) {
            let whole = self.levels[0].len();
            let mut all = self.compactions().into_iter();
            let next = all
                .find(|one| one.upper_level > 0 || one.upper.len() == whole)
                .unwrap();
            self.compact(&next, 100);
            self.check();
        }
        let entries: Vec<_> = self.levels[BOTTOM]
            .iter()
            .flat_map(|table| &table.entries)
            .collect();
        assert_eq!(entries.len(), self.model.len(), "{entries:?}");
        assert!(entries.iter().all(|entry| entry.1.kind() == Kind::Put));
    }

    /// What decides how it goes on: kinds, order of sequence numbers, levels. Two states that only
    /// differ in the numbers of their tables and writes are one.
    fn signature(&self) -> String {
        let tables = || self.levels.iter().flatten();
        let trailers: BTreeSet<_> = tables()
            .flat_map(|table| &table.entries)
            .map(|entry| entry.1)
            .collect();
        let mut text = self.flushes.to_string();
        for tables in &self.levels {
            text.push('/');
            for table in tables {
                text.push('|');
                for (key, trailer, _) in &table.entries {
                    let rank = trailers.range(..trailer).count();
                    let zero = trailer.sequence() == SequenceNumber::ZERO;
                    text.push(char::from(key[0]));
                    text.push(if zero { '0' } else { '.' });
                    text.push_str(&rank.to_string());
                    text.push(if trailer.kind() == Kind::Put {
                        '+'
                    } else {
                        '-'
                    });
                }
            }
        }
        text
    }
}

/// Walks all states; answers how many there are.
fn explore(key_count: u32, flushes_max: usize) -> usize {
    let kinds = [None, Some(Kind::Put), Some(Kind::Delete)];
    let memtables: Vec<Vec<_>> = (1..3_usize.pow(key_count))
        .map(|number| {
            (0..key_count)
                .map(|key| kinds[number / 3_usize.pow(key) % 3])
                .collect()
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut open = vec![State::default()];
    while let Some(state) = open.pop() {
        let mut next = Vec::new();
        if state.flushes < flushes_max {
            for memtable in &memtables {
                let mut flushed = state.clone();
                flushed.flush(memtable);
                next.push(flushed);
            }
        }
        for compaction in state.compactions() {
            // Tables of one key each, or of all.
            for table_bytes in [1, 100] {
                let mut compacted = state.clone();
                compacted.compact(&compaction, table_bytes);
                next.push(compacted);
            }
        }
        for state in next {
            if seen.insert(state.signature()) {
                state.check();
                state.clone().check_bottom();
                open.push(state);
            }
        }
    }
    seen.len()
}

#[test]
fn one_key_reads_the_same_through_any_compactions() {
    assert!(explore(1, 5) > 500);
}

#[test]
fn two_keys_read_the_same_through_any_compactions() {
    assert!(explore(2, 3) > 1_000);
}

#[test]
fn three_keys_read_the_same_through_any_compactions() {
    assert!(explore(3, 2) > 4_000);
}
