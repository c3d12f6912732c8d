//! Edits: what they publish, and when they are declined.

use super::super::*;
use super::shelf::*;
use crate::vfs::MemFs;

#[test]
fn a_keyspace_is_made_once_and_keeps_its_options() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let options = KeyspaceOptions {
        block_bytes: 16_384,
        ..KeyspaceOptions::default()
    };
    let made = catalog.keyspace("logs", options).unwrap();
    let other = catalog
        .keyspace("state", KeyspaceOptions::default())
        .unwrap();
    assert_ne!(made.id(), other.id());
    drop(catalog);
    let catalog = shelf.open().unwrap();
    let found = catalog
        .keyspace("logs", KeyspaceOptions::default())
        .unwrap();
    assert_eq!((found.id(), found.options()), (made.id(), options));
    let name = "x".repeat(1025);
    let refused = catalog.keyspace(&name, options);
    assert!(matches!(refused, Err(StorageError::TooLarge { .. })));
}

#[test]
fn a_commit_is_published_and_is_there_after_a_reopen() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let id = state(&catalog).id();
    let meta = write(&catalog, &["a", "b"], 7);
    let change = TableChange {
        added: vec![(0, meta)],
        removed: Vec::new(),
        last_sequence: Some(SequenceNumber::new(9)),
    };
    let mut seen = None;
    let committed = catalog.commit(id, change, |version| seen = Some(shape(version)));
    let version = published(committed.unwrap());
    assert_eq!(seen, Some(shape(&version)));
    assert_eq!(version.last_sequence(), SequenceNumber::new(9));
    assert_eq!(value(&version, "b").unwrap(), "b@7");
    let expected = shape(&version);
    drop((catalog, version));
    let catalog = shelf.open().unwrap();
    assert_eq!(shape(&state(&catalog)), expected);
    assert_eq!(value(&state(&catalog), "a").unwrap(), "a@7");
}

#[test]
fn later_flushes_hide_earlier_ones_and_level_0_hides_the_deeper_levels() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a", "m"], 1);
    merge(&catalog, &["a", "m", "z"], 2, 6);
    flush(&catalog, &["m"], 3);
    let version = flush(&catalog, &["m", "n"], 4);
    for reopened in [version, state(&shelf.open().unwrap())] {
        assert_eq!(value(&reopened, "a").unwrap(), "a@2");
        assert_eq!(value(&reopened, "m").unwrap(), "m@4");
        assert_eq!(value(&reopened, "b"), None);
        assert_eq!(reopened.level(0).len(), 2);
        assert_eq!(reopened.level(6).len(), 1);
    }
}

#[test]
fn an_edit_whose_input_or_keyspace_is_gone_is_declined_and_changes_nothing() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let version = flush(&catalog, &["a"], 1);
    let inputs = all_of(&version);
    merge(&catalog, &["a"], 2, 1);
    let before = shape(&state(&catalog));
    for (id, removed) in [
        (version.id(), inputs),
        (version.id(), vec![(2, FileNumber::new(99))]),
        (KeyspaceId::from_encoded(77).unwrap(), Vec::new()),
    ] {
        let change = TableChange {
            added: vec![(1, write(&catalog, &["b"], 3))],
            removed,
            last_sequence: None,
        };
        let committed = catalog.commit(id, change, |_| panic!("nothing is published"));
        assert!(matches!(committed.unwrap(), Committed::Declined));
    }
    assert_eq!(shape(&state(&catalog)), before);
    assert_eq!(shape(&state(&shelf.open().unwrap())), before);
}

#[test]
fn tables_that_overlap_on_a_deeper_level_are_refused() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    merge(&catalog, &["c", "f"], 1, 3);
    let before = shape(&state(&catalog));
    for keys in [["a", "c"], ["f", "g"], ["d", "e"], ["a", "z"]] {
        let change = TableChange {
            added: vec![(3, write(&catalog, &keys, 2))],
            ..TableChange::default()
        };
        let refused = catalog.commit(state(&catalog).id(), change, |_| {});
        assert!(matches!(refused, Err(StorageError::Corruption(_))));
    }
    assert_eq!(shape(&state(&catalog)), before);
    assert_eq!(shape(&state(&shelf.open().unwrap())), before);
}

#[test]
fn a_table_that_is_there_already_is_refused() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let version = flush(&catalog, &["a"], 1);
    let (_, table) = version.tables().next().unwrap();
    let again = TableMeta {
        epoch: 0,
        ..table.meta().clone()
    };
    let change = TableChange {
        added: vec![(0, again)],
        ..TableChange::default()
    };
    let refused = catalog.commit(version.id(), change, |_| {});
    assert!(matches!(refused, Err(StorageError::Corruption(_))));
    assert_eq!(shape(&state(&shelf.open().unwrap())), shape(&version));
}

#[test]
fn numbers_are_never_given_twice() {
    let shelf = Shelf::new(MemFs::new());
    let mut before = FileNumber::new(0);
    for _ in 0..5 {
        let catalog = shelf.open().unwrap();
        for round in 0..10 {
            flush(&catalog, &["a"], round);
            let number = catalog.next_number();
            assert!(number > before);
            before = number;
        }
    }
}

#[test]
fn a_manifest_that_is_full_is_written_anew_and_the_old_one_goes() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    for round in 0..50 {
        merge(&catalog, &["a", "b"], round, 6);
    }
    let metrics = catalog.metrics();
    assert!(metrics.manifest_rolls > 3, "{metrics:?}");
    assert!(metrics.manifest_bytes <= 2048);
    let files = shelf.files();
    let manifests = files.iter().filter(|name| name.starts_with("MANIFEST"));
    assert_eq!(manifests.count(), 1, "{files:?}");
    let expected = shape(&state(&catalog));
    drop(catalog);
    assert_eq!(shape(&state(&shelf.open().unwrap())), expected);
}
