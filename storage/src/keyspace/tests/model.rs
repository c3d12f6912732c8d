//! Random histories against a list of all operations that is folded anew for each question.

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::read_view::RangeIterator;

type Bounds = (Bound<Bytes>, Bound<Bytes>);

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<(Bytes, Option<u8>)>),
    /// Puts one key of each first byte, so that scans take more than one run.
    Fill(u8),
    Freeze,
    /// Asks for a flush.
    Flush,
    /// Lets the jobs do some steps.
    Work(usize),
    /// Closes and opens the database: what was not flushed is lost.
    Reopen,
    Get {
        at: Index,
        key: Bytes,
    },
    Scan {
        at: Index,
        bounds: Bounds,
        direction: Direction,
    },
    OpenIterator {
        at: Index,
        bounds: Bounds,
        direction: Direction,
    },
    AdvanceIterators(usize),
}

/// All operations in order: the state at sequence number `n` is the effect of the first `n`.
#[derive(Default)]
struct Model {
    operations: Vec<(Bytes, Option<Bytes>)>,
}

impl Model {
    fn state_at(&self, sequence: usize) -> BTreeMap<Bytes, Bytes> {
        let mut state = BTreeMap::new();
        for (key, value) in &self.operations[..sequence] {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        state
    }

    fn scan(
        &self,
        sequence: usize,
        bounds: &Bounds,
        direction: Direction,
    ) -> VecDeque<(Bytes, Bytes)> {
        let inside = |key: &Bytes| {
            let after_start = match &bounds.0 {
                Bound::Included(start) => key >= start,
                Bound::Excluded(start) => key > start,
                Bound::Unbounded => true,
            };
            let before_end = match &bounds.1 {
                Bound::Included(end) => key <= end,
                Bound::Excluded(end) => key < end,
                Bound::Unbounded => true,
            };
            after_start && before_end
        };
        let entries = self
            .state_at(sequence)
            .into_iter()
            .filter(|(key, _)| inside(key));
        match direction {
            Direction::Forward => entries.collect(),
            Direction::Reverse => entries.rev().collect(),
        }
    }
}

/// The keyspace, its model, and the iterators that are open with what they have still to give.
struct Comparison {
    disk: MemFs,
    options: DatabaseOptions,
    keyspace: Fixture,
    model: Model,
    /// The state before the first write, or after the last open.
    first: ReadView,
    /// Every batch since that was not empty, in order.
    written: Vec<Written>,
    iterators: Vec<(RangeIterator, VecDeque<(Bytes, Bytes)>)>,
}

impl Comparison {
    fn new(options: DatabaseOptions) -> Self {
        let disk = MemFs::new();
        let keyspace = Fixture::on(disk.clone(), options.clone());
        Self {
            disk,
            options,
            first: keyspace.view(),
            keyspace,
            model: Model::default(),
            written: Vec::new(),
            iterators: Vec::new(),
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Write(operations) => self.write(operations),
            Step::Fill(value) => {
                self.write(
                    (0..=255)
                        .map(|byte| (Bytes::from(vec![byte]), Some(value)))
                        .collect(),
                );
            }
            Step::Freeze => self.keyspace.freeze_active(),
            Step::Flush => self.keyspace.flush(),
            Step::Work(steps) => {
                for _ in 0..steps {
                    self.keyspace.stage.executor.step_one();
                }
            }
            Step::Reopen => self.reopen(),
            Step::Get { at, key } => {
                let (sequence, view) = self.view(at);
                let expected = self.model.state_at(sequence).remove(&key);
                assert_eq!(view.get(&key).unwrap(), expected);
            }
            Step::Scan {
                at,
                bounds,
                direction,
            } => {
                let (sequence, view) = self.view(at);
                let expected = self.model.scan(sequence, &bounds, direction);
                let entries: VecDeque<_> =
                    view.range(bounds, direction).map(Result::unwrap).collect();
                assert_eq!(entries, expected);
            }
            Step::OpenIterator {
                at,
                bounds,
                direction,
            } => {
                let (sequence, view) = self.view(at);
                let expected = self.model.scan(sequence, &bounds, direction);
                self.iterators
                    .push((view.range(bounds, direction), expected));
            }
            Step::AdvanceIterators(count) => {
                for (iterator, expected) in &mut self.iterators {
                    for _ in 0..count {
                        assert_eq!(iterator.next().map(Result::unwrap), expected.pop_front());
                    }
                }
            }
        }
    }

    fn write(&mut self, operations: Vec<(Bytes, Option<u8>)>) {
        let mut batch = WriteBatch::new();
        for (key, value) in operations {
            let value = value.map(|value| Bytes::from(vec![value]));
            match value.clone() {
                Some(value) => batch.put(key.clone(), value),
                None => batch.delete(key.clone()),
            }
            self.model.operations.push((key, value));
        }
        let written = self.keyspace.write(batch).unwrap();
        assert_eq!(
            written.last.get(),
            u64::try_from(self.model.operations.len()).unwrap()
        );
        assert_eq!(self.keyspace.view().sequence(), written.last);
        self.written.push(written);
    }

    fn reopen(&mut self) {
        self.keyspace.database.close();
        self.keyspace = Fixture::on(self.disk.clone(), self.options.clone());
        let before = std::mem::replace(&mut self.first, self.keyspace.view());
        let last = self.first.sequence();
        let mut batches = self.written.iter();
        let whole = last == before.sequence() || batches.any(|written| written.last == last);
        assert!(whole, "part of a batch was flushed");
        let flushed = usize::try_from(last.get()).unwrap();
        self.model.operations.truncate(flushed);
        self.written.clear();
    }

    /// The state after one of the operations since the last open, or before all of them.
    fn view(&self, at: Index) -> (usize, ReadView) {
        let first = usize::try_from(self.first.sequence().get()).unwrap();
        let sequence = first + at.index(self.model.operations.len() + 1 - first);
        let number = SequenceNumber::new(u64::try_from(sequence).unwrap());
        let batch = self
            .written
            .partition_point(|written| written.last < number);
        let view = match self.written.get(batch) {
            Some(written) if sequence > first => written.view_at(number),
            _ => self.first.clone(),
        };
        assert_eq!(view.sequence(), number);
        (sequence, view)
    }
}

/// Few keys, so that they are met again; with the extremes, ties in the first eight bytes,
/// prefixes of each other, and keys too long for a list node.
fn key() -> impl Strategy<Value = Bytes> {
    let ties = vec(prop_oneof![Just(0_u8), Just(0xFF), Just(b'a')], 6..10);
    let short = vec(prop_oneof![Just(0_u8), Just(0xFF), Just(b'a')], 0..3);
    let long =
        vec(prop_oneof![Just(0_u8), Just(0xFF)], 2).prop_map(|end| [vec![b'a'; 40], end].concat());
    prop_oneof![4 => short, 1 => ties, 1 => long].prop_map(Bytes::from)
}

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    prop_oneof![
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Reverse)]
}

fn step() -> impl Strategy<Value = Step> {
    let question = || (any::<Index>(), (bound(), bound()), direction());
    prop_oneof![
        8 => vec((key(), any::<Option<u8>>()), 0..30).prop_map(Step::Write),
        1 => any::<u8>().prop_map(Step::Fill),
        1 => Just(Step::Freeze),
        4 => (any::<Index>(), key()).prop_map(|(at, key)| Step::Get { at, key }),
        4 => question()
            .prop_map(|(at, bounds, direction)| Step::Scan { at, bounds, direction }),
        2 => question()
            .prop_map(|(at, bounds, direction)| Step::OpenIterator { at, bounds, direction }),
        4 => (0..40_usize).prop_map(Step::AdvanceIterators),
    ]
}

/// What also happens when there are tables.
fn step_with_tables() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => step(),
        1 => Just(Step::Flush),
        4 => (1..12_usize).prop_map(Step::Work),
        1 => Just(Step::Reopen),
    ]
}

fn compare(options: DatabaseOptions, steps: Vec<Step>) {
    let mut comparison = Comparison::new(options);
    for step in steps {
        comparison.run(step);
    }
    comparison.run(Step::AdvanceIterators(300));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_view_reads_like_a_list_of_operations(steps in vec(step(), 1..60)) {
        compare(DatabaseOptions::default(), steps);
    }

    #[test]
    fn every_view_reads_the_same_while_tables_are_made_and_merged(
        steps in vec(step_with_tables(), 1..80),
    ) {
        compare(DatabaseOptions::for_tests(), steps);
    }
}
