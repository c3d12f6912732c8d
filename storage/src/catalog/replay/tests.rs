//! Edits that cannot follow the ones before them.

use bytes::Bytes;

use super::*;
use crate::catalog::tests::shelf::DATABASE;
use crate::sstable::Birth;

fn id(number: u32) -> KeyspaceId {
    KeyspaceId::from_encoded(number).unwrap()
}

fn add_keyspace(number: u32, name: &str) -> Record {
    Record::AddKeyspace {
        id: id(number),
        name: name.into(),
        options: KeyspaceOptions::default(),
    }
}

fn add_table(keyspace: u32, number: u64, sequence: u64) -> Record {
    let (number, sequence) = (FileNumber::new(number), SequenceNumber::new(sequence));
    let table = TableMeta {
        number,
        bytes: 1000,
        hash: 0,
        birth: Birth {
            database: DATABASE,
            number,
        },
        smallest: Bytes::from_static(b"a"),
        largest: Bytes::from_static(b"b"),
        sequence_min: sequence,
        sequence_max: sequence,
        entries: 1,
        tombstones: 0,
        epoch: 1,
    };
    Record::AddTable {
        id: id(keyspace),
        level: 2,
        table,
    }
}

fn remove_table(keyspace: u32, level: usize, number: u64) -> Record {
    Record::RemoveTable {
        id: id(keyspace),
        level,
        number: FileNumber::new(number),
    }
}

fn last_sequence(keyspace: u32, sequence: u64) -> Record {
    Record::LastSequence(id(keyspace), SequenceNumber::new(sequence))
}

/// Two keyspaces, the first one with the tables 3 and 4.
fn state() -> State {
    let mut state = State::new();
    for record in [
        Record::NextNumber(FileNumber::new(9)),
        Record::NextKeyspace(id(5)),
        add_keyspace(1, "state"),
        add_keyspace(2, "logs"),
        last_sequence(1, 50),
        add_table(1, 3, 40),
        add_table(1, 4, 50),
    ] {
        state.apply(record).unwrap();
    }
    state
}

#[test]
fn a_record_that_cannot_be_true_is_a_fault() {
    for record in [
        add_keyspace(1, "again"),
        add_keyspace(3, "state"),
        add_keyspace(5, "not given"),
        Record::DropKeyspace(id(3)),
        last_sequence(1, 49),
        last_sequence(3, 60),
        remove_table(1, 3, 3),
        remove_table(2, 2, 3),
        remove_table(1, 2, 5),
        add_table(3, 5, 1),
        add_table(1, 4, 1),
        add_table(1, 9, 1),
        add_table(1, 5, 51),
        add_table(2, 5, 1),
    ] {
        assert!(state().apply(record.clone()).is_err(), "{record:?}");
    }
}

#[test]
fn a_dropped_keyspace_leaves_its_name_and_its_tables_free() {
    let mut state = state();
    state.apply(Record::DropKeyspace(id(1))).unwrap();
    assert!(!state.holds(FileNumber::new(3)));
    state.apply(add_keyspace(3, "state")).unwrap();
    state.apply(last_sequence(3, 50)).unwrap();
    state.apply(add_table(3, 3, 40)).unwrap();
    assert!(state.holds(FileNumber::new(3)));
    state.apply(remove_table(3, 2, 3)).unwrap();
    assert!(!state.holds(FileNumber::new(3)));
}

#[test]
fn counters_never_go_back() {
    let mut state = state();
    state.apply(Record::NextNumber(FileNumber::new(2))).unwrap();
    state.apply(Record::NextKeyspace(id(2))).unwrap();
    assert_eq!(state.next_number, FileNumber::new(9));
    assert_eq!(state.next_keyspace, id(5));
}
