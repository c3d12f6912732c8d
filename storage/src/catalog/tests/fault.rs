//! Failed operations: an edit fails, nothing is published, the next edit works, and whatever a
//! crash leaves in between can be opened.

use kelp_seams::SeededRng;

use super::shelf::*;
use crate::catalog::*;
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn faulty() -> (Shelf, FaultFs) {
    let disk = MemFs::new();
    let faults = FaultFs::over(disk.clone());
    let shelf = Shelf::over(disk, Arc::new(faults.clone()));
    (shelf, faults)
}

fn add(catalog: &Catalog, meta: &TableMeta) -> Result<Committed, StorageError> {
    let change = TableChange {
        added: vec![(0, meta.clone())],
        ..TableChange::default()
    };
    catalog.commit(state(catalog).id(), change, |_| {})
}

/// Rules that fail an append to the manifest in every way.
fn append_faults() -> Vec<FaultRule> {
    let manifest = |operation, fault| FaultRule {
        name: Some("MANIFEST-*".to_owned()),
        ..FaultRule::once(Some(operation), 0, fault)
    };
    let short = |bytes| Fault::ShortWrite {
        bytes,
        errno: ENOSPC,
    };
    let mut rules: Vec<_> = [0, 1, 7, 16, 17, 40, 100, 10_000]
        .into_iter()
        .map(|bytes| manifest(FaultOperation::Write, short(bytes)))
        .collect();
    rules.push(manifest(FaultOperation::Sync, Fault::Errno(EIO)));
    let lost = Fault::LostSync { errno: EIO };
    rules.push(manifest(FaultOperation::Sync, lost));
    rules
}

#[test]
fn after_a_failed_append_the_next_edit_goes_into_a_new_manifest() {
    for rule in append_faults() {
        let (shelf, faults) = faulty();
        let catalog = shelf.open().unwrap();
        let before = shape(&flush(&catalog, &["a"], 1));
        let meta = write(&catalog, &["b"], 2);
        faults.add(rule.clone());
        assert!(add(&catalog, &meta).is_err(), "{rule:?}");
        assert_eq!(shape(&state(&catalog)), before, "nothing was published");
        let manifest = shelf.names().pop().unwrap();
        let path = directory().join(&manifest);
        let length_before = shelf.disk.open(&path).unwrap().len().unwrap();

        // A crash now shows the edit or not, and has its table if so.
        for seed in 0..8 {
            let disk = shelf.disk.crash_clone(&SeededRng::new(seed));
            check_failed(disk, &before, 1);
        }
        check_failed(shelf.disk.kill_clone(), &before, 1);

        catalog.discard(&[meta.number]);
        let kept = shelf.files();
        assert!(
            kept.contains(&meta.number.sstable_name()),
            "a crash may need it"
        );
        let after = shape(&flush(&catalog, &["c"], 3));
        let files = shelf.files();
        assert!(!files.contains(&meta.number.sstable_name()), "{files:?}");
        assert!(!files.contains(&manifest), "{files:?}");
        assert_eq!(length_before, 2048);
        assert_eq!(value(&state(&catalog), "b"), None);
        drop(catalog);
        let catalog = shelf.open().unwrap();
        assert_eq!(shape(&state(&catalog)), after);
        assert_eq!(value(&state(&catalog), "c").unwrap(), "c@3");
    }
}

/// Opens a disk on which an edit failed: it shows the state before or one table more, twice.
fn check_failed(disk: MemFs, before: &Shape, more: usize) {
    let shelf = Shelf::new(disk);
    let catalog = shelf.open().unwrap();
    let shown = shape(&state(&catalog));
    let grown = shown.2.len() == before.2.len() + more;
    assert!(grown || shown == *before, "{shown:?}");
    drop(catalog);
    let cut = shelf.disk.crash_clone(&SeededRng::new(1));
    let catalog = Shelf::new(cut).open().unwrap();
    assert_eq!(shape(&state(&catalog)), shown);
    let version = flush(&catalog, &["more"], 9);
    assert_eq!(version.tables().count(), shown.2.len() + 1);
}

#[test]
fn a_failed_edit_may_be_committed_again() {
    for rule in append_faults() {
        let (shelf, faults) = faulty();
        let catalog = shelf.open().unwrap();
        flush(&catalog, &["a"], 1);
        let meta = write(&catalog, &["b"], 2);
        faults.add(rule);
        assert!(add(&catalog, &meta).is_err());
        let version = published(add(&catalog, &meta).unwrap());
        assert_eq!(value(&version, "b").unwrap(), "b@2");
        assert_eq!(shape(&state(&shelf.open().unwrap())), shape(&version));
    }
}

#[test]
fn every_operation_of_a_roll_may_fail_and_the_next_edit_tries_again() {
    let mut failures = 0;
    for operation in [
        FaultOperation::Create,
        FaultOperation::Open,
        FaultOperation::Write,
        FaultOperation::Sync,
        FaultOperation::Rename,
        FaultOperation::Remove,
        FaultOperation::Resize,
    ] {
        for skip in 0..8 {
            let (shelf, faults) = faulty();
            let catalog = shelf.open().unwrap();
            flush(&catalog, &["a"], 1);
            let metas: Vec<_> = (2..6)
                .map(|sequence| write(&catalog, &["b"], sequence))
                .collect();
            // The first edit fails and makes the second one write a new manifest, in which
            // something fails.
            faults.add(append_faults().pop().unwrap());
            assert!(add(&catalog, &metas[0]).is_err());
            faults.clear();
            faults.add(FaultRule::once(Some(operation), skip, Fault::Errno(EIO)));
            let second = add(&catalog, &metas[1]);
            faults.clear();
            let expected = if second.is_err() { 1 } else { 2 };
            failures += usize::from(second.is_err());
            assert_eq!(state(&catalog).tables().count(), expected);
            let shown = shape(&state(&catalog));
            for seed in 0..4 {
                let disk = shelf.disk.crash_clone(&SeededRng::new(seed));
                check_failed(disk, &shown, 1);
            }
            let version = published(add(&catalog, &metas[2]).unwrap());
            assert_eq!(version.tables().count(), expected + 1);
            assert_eq!(shape(&state(&shelf.open().unwrap())), shape(&version));
        }
    }
    assert!(failures > 10, "only {failures} rolls failed");
}

#[test]
fn a_failed_read_at_open_is_an_error_that_may_be_tried_again() {
    let (shelf, faults) = faulty();
    let expected = shape(&flush(&shelf.open().unwrap(), &["a"], 1));
    for operation in [
        FaultOperation::Open,
        FaultOperation::Read,
        FaultOperation::Write,
        FaultOperation::Sync,
    ] {
        for skip in 0..20 {
            faults.add(FaultRule::once(Some(operation), skip, Fault::Errno(EIO)));
            let opened = shelf.open();
            faults.clear();
            if let Ok(catalog) = opened {
                assert_eq!(shape(&state(&catalog)), expected);
            }
            assert_eq!(shape(&state(&shelf.open().unwrap())), expected);
        }
    }
}

#[test]
fn an_edit_that_finds_no_space_may_be_tried_again() {
    let (shelf, faults) = faulty();
    let catalog = shelf.open().unwrap();
    faults.add(FaultRule {
        count: 3,
        ..FaultRule::once(Some(FaultOperation::Write), 0, Fault::Errno(ENOSPC))
    });
    for _ in 0..3 {
        let refused = catalog.keyspace("state", KeyspaceOptions::default());
        assert!(matches!(refused, Err(StorageError::Io(_))));
    }
    let made = state(&catalog).id();
    assert_eq!(state(&shelf.open().unwrap()).id(), made);
}
