use std::borrow::Borrow;
use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::cursor::MemtableCursor;
use super::key::{MemKey, Probe, VersionedKey};
use super::{ENTRY_OVERHEAD_BYTES, Memtable};
use crate::batch::{Change, WriteBatch};
use crate::internal_key::{Kind, Trailer};
use crate::read_view::Direction;
use crate::sequence_number::SequenceNumber;

/// Keys that often share eight bytes, or are each other's prefix.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![Just(0), Just(0xFF), Just(b'a')];
    let around_inline_max =
        (vec(byte(), 4), 33..36_usize).prop_map(|(end, length)| [vec![0xFF; length], end].concat());
    prop_oneof![3 => vec(byte(), 0..11), 1 => around_inline_max]
}

fn memtable(start: u64) -> Memtable {
    Memtable::new(SequenceNumber::new(start), Arc::default())
}

fn write(memtable: &Memtable, batch: WriteBatch) {
    let published = memtable.published();
    let count = u64::try_from(batch.len()).unwrap();
    memtable.insert(published.advanced_by(1), batch.into_operations());
    memtable.publish(published.advanced_by(count));
}

fn stops(memtable: &Arc<Memtable>, sequence: u64, direction: Direction) -> Vec<(Bytes, Change)> {
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    let sequence = SequenceNumber::new(sequence);
    let mut cursor = MemtableCursor::new(Arc::clone(memtable), sequence, bounds, direction);
    let stops = std::iter::from_fn(|| cursor.next());
    stops.map(|stop| (stop.key, stop.change)).collect()
}

proptest! {
    #[test]
    fn keys_order_by_user_key_and_then_newest_first(
        left in (key(), 0..4_u64),
        right in (key(), 0..4_u64),
    ) {
        let mem_key = |(key, sequence): &(Vec<u8>, u64)| {
            let trailer = Trailer::new(SequenceNumber::new(*sequence), Kind::Put);
            MemKey::new(Bytes::from(key.clone()), trailer)
        };
        let expected = (&left.0, Reverse(left.1)).cmp(&(&right.0, Reverse(right.1)));
        let (left_key, right_key) = (mem_key(&left), mem_key(&right));
        prop_assert_eq!(left_key.cmp(&right_key), expected);

        let probe = Probe::new(&left.0, left_key.trailer());
        let borrowed: &dyn VersionedKey = right_key.borrow();
        prop_assert_eq!(probe.as_dyn().cmp(borrowed), expected);
    }
}

#[test]
fn a_cursor_stops_at_tombstones() {
    let memtable = Arc::new(memtable(0));
    let mut batch = WriteBatch::new();
    batch.put("a", "1");
    batch.delete("a");
    batch.put("b", "2");
    write(&memtable, batch);
    let expected = vec![
        (Bytes::from("a"), Change::Delete),
        (Bytes::from("b"), Change::Put(Bytes::from("2"))),
    ];
    assert_eq!(stops(&memtable, 3, Direction::Forward), expected);
    assert_eq!(
        stops(&memtable, 3, Direction::Reverse),
        expected.into_iter().rev().collect::<Vec<_>>()
    );
}

#[test]
fn a_cursor_leaps_over_any_number_of_versions() {
    let memtable = Arc::new(memtable(0));
    for version in 1..=1_000_u64 {
        let mut batch = WriteBatch::new();
        batch.put("hot", version.to_be_bytes().to_vec());
        write(&memtable, batch);
    }
    let mut batch = WriteBatch::new();
    batch.put("a", "first");
    batch.put("z", "last");
    write(&memtable, batch);
    for sequence in [1, 2, 8, 9, 500, 991, 992, 1_000] {
        let hot = (
            Bytes::from("hot"),
            Change::Put(Bytes::copy_from_slice(&u64::to_be_bytes(sequence))),
        );
        for direction in [Direction::Forward, Direction::Reverse] {
            assert_eq!(
                stops(&memtable, sequence, direction),
                std::slice::from_ref(&hot),
                "{sequence}"
            );
        }
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        assert_eq!(stops(&memtable, 0, direction), []);
        assert_eq!(stops(&memtable, 1_002, direction).len(), 3);
    }
}

#[test]
fn usage_counts_every_version() {
    let memtable = memtable(0);
    let mut batch = WriteBatch::new();
    batch.put("key", "value");
    batch.put("key", "value");
    batch.delete("key");
    write(&memtable, batch);
    assert_eq!(memtable.entries(), 3);
    assert_eq!(memtable.bytes(), 19 + 3 * ENTRY_OVERHEAD_BYTES);
}

#[test]
#[should_panic(expected = "published went back")]
fn publishing_never_goes_back() {
    let memtable = memtable(7);
    memtable.publish(SequenceNumber::new(6));
}
