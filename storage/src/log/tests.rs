use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::database::{Database, DatabaseOptions, Seams};
use crate::vfs::MemFs;
use kelp_seams::{ManualClock, SeededRng, SteppedExecutor};

fn log() -> (Log, Arc<SteppedExecutor>) {
    let clock = Arc::new(ManualClock::new());
    let executor = Arc::new(SteppedExecutor::new(clock.clone()));
    let seams = Seams {
        vfs: Arc::new(MemFs::new()),
        clock,
        rng: Arc::new(SeededRng::new(1)),
        executor: executor.clone(),
    };
    let options = DatabaseOptions::for_tests();
    let database = Database::open("/data".as_ref(), options, seams).unwrap();
    (database.log(LogNumber::new(0)).unwrap(), executor)
}

fn entry(index: u64, bytes: usize) -> LogEntry {
    let term = EntryTerm {
        term: index / 4,
        leader: 1,
    };
    LogEntry {
        index: LogIndex::new(index),
        term,
        payload: vec![7; bytes].into(),
    }
}

fn filled(count: u64, bytes: usize) -> (Log, Arc<SteppedExecutor>) {
    let (log, executor) = log();
    for index in 0..count {
        log.append(
            vec![entry(index, bytes)],
            Box::new(|result| result.unwrap()),
        )
        .unwrap();
        executor.run_until_idle();
    }
    (log, executor)
}

fn indexes(entries: &[LogEntry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.index.get()).collect()
}

fn range(start: u64, end: u64) -> Range<LogIndex> {
    LogIndex::new(start)..LogIndex::new(end)
}

#[test]
fn entries_are_readable_before_they_are_durable() {
    let (log, _executor) = log();
    log.append(vec![entry(0, 10), entry(1, 10)], Box::new(|_| ()))
        .unwrap();
    assert_eq!(log.last(), Some(entry(1, 10).position()));
    assert_eq!(
        log.read(range(0, 9), 100).unwrap(),
        [entry(0, 10), entry(1, 10)]
    );
    assert_eq!(
        log.read_cached(range(0, 9), 100).unwrap(),
        [entry(0, 10), entry(1, 10)]
    );
}

#[test]
fn old_entries_are_read_from_the_disk() {
    let (log, _executor) = filled(20, 100);
    assert_eq!(
        log.read_cached(range(0, 2), 1_000),
        None,
        "the hot tail is bounded"
    );
    assert_eq!(
        log.read(range(0, 2), 1_000).unwrap(),
        [entry(0, 100), entry(1, 100)]
    );
    assert_eq!(
        indexes(&log.read_cached(range(18, 30), 1_000).unwrap()),
        [18, 19]
    );
}

#[test]
fn unwritten_entries_stay_in_memory_whatever_their_size() {
    let (log, executor) = log();
    for index in 0..20 {
        log.append(vec![entry(index, 100)], Box::new(|_| ()))
            .unwrap();
    }
    assert_eq!(log.read_cached(range(0, 20), usize::MAX).unwrap().len(), 20);
    executor.run_until_idle();
    log.append(vec![entry(20, 100)], Box::new(|_| ())).unwrap();
    assert_eq!(log.read_cached(range(0, 20), usize::MAX), None);
    assert_eq!(log.read(range(0, 30), usize::MAX).unwrap().len(), 21);
}

#[test]
fn reads_are_cut_by_bytes_but_never_empty() {
    let (log, _executor) = filled(10, 100);
    let read = |start, end, bytes_max| indexes(&log.read(range(start, end), bytes_max).unwrap());
    assert_eq!(read(2, 9, 300), [2, 3, 4]);
    assert_eq!(read(2, 9, 299), [2, 3]);
    assert_eq!(read(2, 9, 0), [2]);
    assert_eq!(read(2, 4, 10_000), [2, 3]);
    assert_eq!(read(2, 2, 10_000), [0; 0]);
    assert_eq!(read(10, 20, 10_000), [0; 0]);
    log.discard_prefix(entry(4, 0).position()).unwrap();
    assert_eq!(read(4, 9, 10_000), [0; 0]);
    assert_eq!(read(5, 7, 10_000), [5, 6]);
}

#[test]
fn only_entries_that_continue_the_log_are_taken() {
    let (log, _executor) = filled(3, 10);
    let refused = |entries| {
        let called = Arc::new(Mutex::new(0));
        let inside = Arc::clone(&called);
        let result = log.append(
            entries,
            Box::new(move |result| {
                assert!(result.is_err());
                *inside.lock().unwrap() += 1;
            }),
        );
        assert_eq!(
            *called.lock().unwrap(),
            1,
            "the callback of a refused call runs"
        );
        result.unwrap_err()
    };
    for entries in [
        vec![entry(2, 1)],
        vec![entry(4, 1)],
        vec![entry(3, 1), entry(5, 1)],
    ] {
        assert!(matches!(
            refused(entries),
            StorageError::NotContiguous { .. }
        ));
    }
    let error = refused(vec![entry(3, ENTRY_BYTES_MAX + 1)]);
    assert!(matches!(
        error,
        StorageError::TooLarge {
            size_max: ENTRY_BYTES_MAX,
            ..
        }
    ));
    assert_eq!(log.last(), Some(entry(2, 10).position()));
}

#[test]
fn an_empty_log_continues_after_what_was_purged() {
    let (log, executor) = filled(3, 10);
    log.discard_prefix(entry(9, 0).position()).unwrap();
    assert_eq!((log.first(), log.last()), (None, None));
    assert_eq!(log.purged(), Some(entry(9, 0).position()));
    assert!(log.append(vec![entry(3, 1)], Box::new(|_| ())).is_err());
    log.append(vec![entry(10, 1)], Box::new(|result| result.unwrap()))
        .unwrap();
    executor.run_until_idle();
    log.discard_prefix(entry(4, 0).position()).unwrap();
    assert_eq!(
        log.first(),
        Some(entry(10, 1).position()),
        "an older purge changes nothing"
    );
}

#[test]
fn truncated_entries_are_gone_at_once() {
    let (log, executor) = filled(6, 10);
    log.truncate_suffix(LogIndex::new(9)).unwrap();
    assert_eq!(log.last(), Some(entry(5, 10).position()));
    log.truncate_suffix(LogIndex::new(3)).unwrap();
    assert_eq!(log.last(), Some(entry(2, 10).position()));
    assert_eq!(log.position(LogIndex::new(3)), None);
    log.append(vec![entry(3, 77)], Box::new(|result| result.unwrap()))
        .unwrap();
    executor.run_until_idle();
    assert_eq!(log.read(range(3, 9), 1_000).unwrap(), [entry(3, 77)]);
    log.truncate_suffix(LogIndex::new(0)).unwrap();
    assert_eq!((log.first(), log.last()), (None, None));
}

#[test]
fn an_empty_append_waits_for_what_was_before() {
    let (log, executor) = log();
    let order = Arc::new(Mutex::new(Vec::new()));
    let callback = |name: &'static str| -> Durable {
        let order = Arc::clone(&order);
        Box::new(move |result| order.lock().unwrap().push((name, result.is_ok())))
    };
    log.append(Vec::new(), callback("first")).unwrap();
    log.append(vec![entry(0, 5)], callback("second")).unwrap();
    log.append(Vec::new(), callback("third")).unwrap();
    executor.run_until_idle();
    log.append(Vec::new(), callback("fourth")).unwrap();
    executor.run_until_idle();
    let expected = ["first", "second", "third", "fourth"].map(|name| (name, true));
    assert_eq!(*order.lock().unwrap(), expected);
}

#[test]
fn entries_of_the_largest_size_are_taken() {
    let (log, executor) = log();
    for (index, bytes) in [ENTRY_BYTES_MAX, 1 << 20, (1 << 20) - 40, 0]
        .into_iter()
        .enumerate()
    {
        let index = u64::try_from(index).unwrap();
        log.append(
            vec![entry(index, bytes)],
            Box::new(|result| result.unwrap()),
        )
        .unwrap();
    }
    executor.run_until_idle();
    log.append(vec![entry(4, 1)], Box::new(|result| result.unwrap()))
        .unwrap();
    let read = log.read(range(0, 9), usize::MAX).unwrap();
    let expected = [ENTRY_BYTES_MAX, 1 << 20, (1 << 20) - 40, 0, 1];
    assert_eq!(
        read.iter()
            .map(|entry| entry.payload.len())
            .collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_vote_too_long_is_refused() {
    let (log, _executor) = log();
    let refused = log.put_vote(&[0; 65], Box::new(|result| assert!(result.is_err())));
    assert!(matches!(
        refused,
        Err(StorageError::TooLarge { what: "vote", .. })
    ));
    assert_eq!(log.vote(), None);
}

#[test]
fn files_without_live_entries_are_removed() {
    let (log, executor) = filled(200, 100);
    let count = |log: &Log| log.shared.wal.files.count();
    assert!(count(&log) > 10);
    log.discard_prefix(entry(195, 0).position()).unwrap();
    log.append(vec![entry(200, 1)], Box::new(|result| result.unwrap()))
        .unwrap();
    executor.run_until_idle();
    assert!(count(&log) <= 2, "{} files are left", count(&log));
    assert_eq!(
        indexes(&log.read(range(196, 999), 10_000).unwrap()),
        [196, 197, 198, 199, 200]
    );
}

/// What a test does to a log.
#[derive(Clone, Debug)]
enum Change {
    Append(u32),
    Truncate(u64),
    Discard(u64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..1_000_u32).prop_map(Change::Append),
        1 => (0..60_u64).prop_map(Change::Truncate),
        1 => (0..60_u64).prop_map(Change::Discard),
    ]
}

proptest! {
    #[test]
    fn bytes_are_those_of_the_entries_present(
        changes in proptest::collection::vec(change(), 0..60),
        start in 0..70_u64,
        length in 0..70_u64,
        newest in 0..20_000_u64,
    ) {
        let mut state = LogState::default();
        let mut model = std::collections::BTreeMap::new();
        let mut next = 0;
        for change in changes {
            match change {
                Change::Append(bytes) => {
                    let lsn = crate::wal::queue::Lsn(0);
                    let place = crate::wal::queue::Place { lsn, bytes };
                    state.append(entry(next, 0).position(), place);
                    let bytes = usize::try_from(bytes).unwrap();
                    let padded = crate::wal::format::padded(bytes);
                    let header = crate::wal::format::RECORD_HEADER_BYTES;
                    model.insert(next, u64::try_from(header + padded).unwrap());
                    next += 1;
                }
                Change::Truncate(from) => {
                    state.truncate_suffix(LogIndex::new(from));
                    let purged = state.purged.map_or(0, |purged| purged.index.get() + 1);
                    model.split_off(&from);
                    next = next.min(from.max(purged));
                }
                Change::Discard(through) => {
                    if state.purged.is_some_and(|purged| purged.index.get() >= through) {
                        continue;
                    }
                    state.discard_prefix(entry(through, 0).position());
                    model = model.split_off(&(through + 1));
                    next = next.max(through + 1);
                }
            }
        }
        prop_assert_eq!(state.bytes(), model.values().sum::<u64>());
        let end = start + length;
        let inside: u64 = model.range(start..end).map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(state.bytes_in(range(start, end)), inside);
        let mut rest = newest;
        let enough = model.iter().rev().find(|(_, bytes)| {
            rest = rest.saturating_sub(**bytes);
            rest == 0
        });
        let expected = enough.or(model.first_key_value()).map(|(index, _)| LogIndex::new(*index));
        if newest > 0 {
            prop_assert_eq!(state.newest_from(newest), expected);
        }
    }

    #[test]
    fn what_is_selected_is_present_and_contiguous(
        first in 0..50_u64,
        count in 0..40_u64,
        start in 0..100_u64,
        length in 0..100_u64,
        bytes_max in 0..5_000_usize,
    ) {
        let mut state = LogState::default();
        for index in first..first + count {
            let place = crate::wal::queue::Place {
                lsn: crate::wal::queue::Lsn(index),
                bytes: 32 + 100,
            };
            state.append(entry(index, 0).position(), place);
        }
        let selected: Vec<u64> =
            state.select(range(start, start + length), bytes_max).map(LogIndex::get).collect();
        let present = start >= first && start < first + count && length > 0;
        let room = u64::try_from(bytes_max / 100).unwrap().max(1);
        let expected = if present { room.min(length).min(first + count - start) } else { 0 };
        prop_assert_eq!(selected, (start..start + expected).collect::<Vec<_>>());
    }
}
