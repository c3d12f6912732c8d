//! Readers beside writers. Threads end by what they see, never by time.

#![expect(
    clippy::disallowed_methods,
    reason = "threads that really race are what these tests are about"
)]

use std::sync::Barrier;
use std::thread;

use super::*;

const KEYS: u64 = 20;
const BATCHES: u64 = 400;

/// Every key gets the same value; the last operation on each key wins over a delete before it.
fn batch_of(value: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for key in (0..KEYS).rev() {
        batch.delete(key.to_be_bytes().to_vec());
        batch.put(key.to_be_bytes().to_vec(), value.to_be_bytes().to_vec());
    }
    batch
}

/// The one value that all keys have in a state between two batches.
fn uniform_value(view: &ReadView, direction: Direction) -> Bytes {
    let entries = scan(view, direction);
    assert_eq!(entries.len(), 20, "at {}", view.sequence());
    let value = entries[0].1.clone();
    for (key, other) in &entries {
        assert_eq!(other, &value, "at {}", view.sequence());
        assert_eq!(
            view.get(key).unwrap().as_ref(),
            Some(&value),
            "at {}",
            view.sequence()
        );
    }
    value
}

#[test]
fn readers_never_see_part_of_a_batch() {
    let keyspace = Fixture::new();
    keyspace.write(batch_of(0)).unwrap();
    let last = Bytes::copy_from_slice(&BATCHES.to_be_bytes());
    thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..=BATCHES {
                keyspace.write(batch_of(value)).unwrap();
                if value % 50 == 0 {
                    keyspace.freeze_active();
                }
                if value % 120 == 0 {
                    keyspace.flush();
                }
            }
        });
        for direction in [Direction::Forward, Direction::Reverse] {
            let (keyspace, last) = (&keyspace, &last);
            scope.spawn(move || {
                let mut newest = SequenceNumber::ZERO;
                loop {
                    let view = keyspace.view();
                    assert!(view.sequence() >= newest, "a later view is never older");
                    assert_eq!(view.sequence().get() % (2 * KEYS), 0);
                    newest = view.sequence();
                    if uniform_value(&view, direction) == last {
                        break;
                    }
                }
            });
        }
    });
}

#[test]
fn a_view_and_its_iterators_stay_as_they_are_while_writers_go_on() {
    let keyspace = Fixture::new();
    for key in 0..1_000_u64 {
        put(&keyspace, key.to_be_bytes().to_vec(), "old");
    }
    let view = keyspace.view();
    let expected = scan(&view, Direction::Forward);
    thread::scope(|scope| {
        scope.spawn(|| {
            for key in (0..1_000_u64).rev() {
                let mut batch = WriteBatch::new();
                batch.put(key.to_be_bytes().to_vec(), "new");
                batch.put([&key.to_be_bytes()[..], b"between"].concat(), "new");
                batch.delete((999 - key).to_be_bytes().to_vec());
                keyspace.write(batch).unwrap();
            }
        });
        for direction in [Direction::Forward, Direction::Reverse] {
            let (view, expected) = (&view, &expected);
            scope.spawn(move || {
                for _ in 0..10 {
                    let mut entries = scan(view, direction);
                    if direction == Direction::Reverse {
                        entries.reverse();
                    }
                    assert!(&entries == expected, "the view changed");
                }
            });
        }
    });
}

#[test]
fn writers_take_turns() {
    const WRITES: u16 = 3_000;
    let keyspace = Fixture::new();
    let start = Barrier::new(2);
    let write_all = |writer: u8| {
        let (keyspace, start) = (&keyspace, &start);
        move || {
            start.wait();
            let write = |number: u16| {
                let mut batch = WriteBatch::new();
                batch.put("last writer", vec![writer]);
                batch.put([&[writer], &number.to_be_bytes()[..]].concat(), "value");
                keyspace.write(batch).unwrap()
            };
            (0..WRITES).map(write).collect::<Vec<_>>()
        }
    };
    let mut written = thread::scope(|scope| {
        let first = scope.spawn(write_all(1));
        let second = scope.spawn(write_all(2));
        [first.join().unwrap(), second.join().unwrap()].concat()
    });
    written.sort_by_key(|written| written.first);
    let mut next = 1;
    for batch in written {
        assert_eq!((batch.first.get(), batch.last.get()), (next, next + 1));
        next += 2;
    }
    let keys = scan(&keyspace.view(), Direction::Forward).len();
    assert_eq!(keys, 1 + 2 * usize::from(WRITES));
}
