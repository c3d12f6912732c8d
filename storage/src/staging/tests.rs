//! A state that is shipped from one database to another: whole, or nothing of it.

use bytes::Bytes;

use super::*;
use crate::catalog::tests::shelf::{
    DATABASE, Shelf, directory, flush, merge, published, state, value,
};
use crate::catalog::{CatalogRecovery, CatalogSetup, Committed};
use crate::identity::DatabaseId;
use crate::pinned::PinnedVersion;
use crate::sequence_number::SequenceNumber;
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule, MemFs, Vfs};

const EIO: i32 = 5;
const OTHER: DatabaseId = DatabaseId::from_bytes([8; 16]);

/// Another database, and a state of it with tables on three levels.
fn shipper() -> (Shelf, PinnedVersion) {
    let shelf = Shelf::new(MemFs::new());
    let setup = CatalogSetup {
        database: OTHER,
        ..shelf.setup()
    };
    let recovery = CatalogRecovery::read(setup).unwrap();
    let catalog = recovery.start(&shelf.executor).unwrap();
    merge(&catalog, &["a", "m"], 3, 6);
    flush(&catalog, &["b", "m"], 5);
    let version = flush(&catalog, &["c", "m"], 8);
    (shelf, PinnedVersion::new(version))
}

fn receiver() -> (Shelf, Arc<Catalog>) {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a", "x"], 6);
    (shelf, catalog)
}

/// Ships all files in pieces of `piece` bytes.
fn ship(pinned: &PinnedVersion, staging: &mut Staging, piece: usize) -> Result<(), StorageError> {
    for index in 0..pinned.file_count() {
        assert_eq!(staging.file_bytes(index), pinned.file_bytes(index));
        while staging.written(index) < staging.file_bytes(index) {
            let offset = staging.written(index);
            let bytes = pinned.read(index, offset, piece).unwrap();
            staging.write(index, offset, &bytes)?;
        }
    }
    Ok(())
}

fn shipped(pinned: &PinnedVersion, catalog: &Arc<Catalog>) -> StagedVersion {
    let mut staging = Staging::new(catalog, &pinned.description()).unwrap();
    ship(pinned, &mut staging, 100).unwrap();
    staging.finish().unwrap()
}

fn install(catalog: &Arc<Catalog>, staged: StagedVersion) -> Committed {
    let old = state(catalog).id();
    let sequence_min = SequenceNumber::new(2);
    let committed = catalog.replace(old, staged, sequence_min, |_| {});
    committed.unwrap()
}

#[test]
fn a_shipped_state_replaces_a_keyspace_and_keeps_its_births() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let old = state(&catalog);
    let staged = shipped(&pinned, &catalog);
    let mut seen = None;
    let committed = catalog.replace(old.id(), staged, SequenceNumber::new(2), |version| {
        seen = Some(version.id());
    });
    let version = published(committed.unwrap());
    assert_eq!(seen, Some(version.id()));
    assert_ne!(version.id(), old.id());
    assert_eq!(version.last_sequence(), SequenceNumber::new(8));
    assert_eq!(value(&old, "x").unwrap(), "x@6", "the old state is held");
    drop(old);
    assert_eq!(shelf.files().len(), 3 + 2, "tables, CURRENT, manifest");
    for version in [version, state(&shelf.open().unwrap())] {
        assert_eq!(value(&version, "x"), None);
        assert_eq!(value(&version, "m").unwrap(), "m@8");
        assert_eq!(value(&version, "b").unwrap(), "b@5");
        assert_eq!(value(&version, "a").unwrap(), "a@3");
        let mut births = version.tables().map(|(_, table)| table.meta().birth);
        assert!(births.all(|birth| birth.database == OTHER));
    }
}

#[test]
fn the_new_state_does_not_go_back_in_time() {
    let (_ship, pinned) = shipper();
    let (_shelf, catalog) = receiver();
    let staged = shipped(&pinned, &catalog);
    let old = state(&catalog).id();
    let committed = catalog.replace(old, staged, SequenceNumber::new(99), |_| {});
    let version = published(committed.unwrap());
    assert_eq!(version.last_sequence(), SequenceNumber::new(99));
}

#[test]
fn an_edit_of_the_replaced_keyspace_is_declined() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let old = state(&catalog);
    published(install(&catalog, shipped(&pinned, &catalog)));
    let change = crate::catalog::TableChange::default();
    let late = catalog.commit(old.id(), change, |_| panic!("nothing is published"));
    assert!(matches!(late.unwrap(), Committed::Declined));
    let again = catalog.replace(
        old.id(),
        shipped(&pinned, &catalog),
        old.last_sequence(),
        |_| panic!("nothing is published"),
    );
    assert!(matches!(again.unwrap(), Committed::Declined));
    drop(old);
    assert_eq!(shelf.files().len(), 3 + 2, "a declined state goes");
}

#[test]
fn what_was_shipped_can_be_shipped_on() {
    let (_ship, pinned) = shipper();
    let (_second, catalog) = receiver();
    let version = published(install(&catalog, shipped(&pinned, &catalog)));
    let (_third, last) = receiver();
    let version = published(install(&last, shipped(&PinnedVersion::new(version), &last)));
    assert_eq!(value(&version, "m").unwrap(), "m@8");
    let mut births = version.tables().map(|(_, table)| table.meta().birth);
    assert!(births.all(|birth| birth.database == OTHER));
}

#[test]
fn an_empty_state_can_be_shipped() {
    let ship = Shelf::new(MemFs::new());
    let pinned = PinnedVersion::new(state(&ship.open().unwrap()));
    assert_eq!((pinned.file_count(), pinned.bytes()), (0, 0));
    let (shelf, catalog) = receiver();
    let version = published(install(&catalog, shipped(&pinned, &catalog)));
    assert!(version.is_empty());
    drop(version);
    assert!(state(&shelf.open().unwrap()).is_empty());
}

#[test]
fn a_pinned_state_can_be_read_to_its_end_while_it_is_held() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let pinned = PinnedVersion::new(flush(&catalog, &["a"], 1));
    merge(&catalog, &["a"], 2, 1);
    shelf.executor.run_until_idle();
    let bytes = pinned.file_bytes(0);
    assert_eq!(pinned.bytes(), bytes);
    let whole = pinned.read(0, 0, usize::MAX).unwrap();
    assert_eq!(long(whole.len()), bytes);
    assert_eq!(
        pinned.read(0, bytes - 3, 100).unwrap(),
        whole[whole.len() - 3..]
    );
    assert_eq!(pinned.read(0, bytes, 100).unwrap(), Bytes::new());
    assert_eq!(pinned.read(0, u64::MAX, 100).unwrap(), Bytes::new());
    assert_eq!(pinned.read(1, 0, 100).unwrap(), Bytes::new());
}

#[test]
fn pieces_come_in_order_and_within_their_file() {
    let (_ship, pinned) = shipper();
    let (_shelf, catalog) = receiver();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    let whole = pinned.read(1, 0, usize::MAX).unwrap();
    let too_long = [&whole[..], b"x"].concat();
    staging.write(1, 0, &whole[..10]).unwrap();
    for (index, offset, bytes) in [
        (1, 0, &whole[..10]),
        (1, 11, &whole[11..20]),
        (1, 10, &too_long[10..]),
        (99, 0, b"x"),
    ] {
        let refused = staging.write(index, offset, bytes);
        assert!(
            matches!(refused, Err(StorageError::WrongPiece { .. })),
            "{index} {offset}"
        );
    }
    assert_eq!(staging.written(1), 10, "nothing of it was taken");
    ship(&pinned, &mut staging, 77).unwrap();
    assert!(staging.finish().is_ok());
}

#[test]
fn a_state_that_is_not_whole_is_refused_and_goes() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let before = shelf.files();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    let first = pinned.read(0, 0, 10).unwrap();
    staging.write(0, 0, &first).unwrap();
    let refused = staging.finish();
    assert!(matches!(refused, Err(StorageError::WrongPiece { .. })));
    assert_eq!(shelf.files(), before);
}

#[test]
fn wrong_bytes_are_found_before_they_count_and_void_the_staging() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let before = shelf.files();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    let mut bytes = pinned.read(0, 0, usize::MAX).unwrap().to_vec();
    bytes[7] ^= 1;
    let refused = staging.write(0, 0, &bytes);
    assert!(matches!(refused, Err(StorageError::Corruption(_))));
    assert!(ship(&pinned, &mut staging, 100).is_err());
    assert!(staging.finish().is_err());
    assert_eq!(shelf.files(), before);
}

#[test]
fn a_staging_that_is_dropped_leaves_no_files() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let before = shelf.files();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    ship(&pinned, &mut staging, 100).unwrap();
    drop(staging);
    assert_eq!(shelf.files(), before);
    drop(shipped(&pinned, &catalog));
    assert_eq!(shelf.files(), before);
}

#[test]
fn a_staging_that_a_crash_interrupts_leaves_no_files_after_the_next_open() {
    let (_ship, pinned) = shipper();
    let (shelf, catalog) = receiver();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    let piece = pinned.read(1, 0, 10).unwrap();
    staging.write(1, 0, &piece).unwrap();
    let whole = shipped(&pinned, &catalog);
    for disk in [shelf.disk.kill_clone(), shelf.disk.kill_clone()] {
        let after = Shelf::new(disk);
        let catalog = after.open().unwrap();
        assert_eq!(after.files().len(), 1 + 2, "one table, CURRENT, manifest");
        assert_eq!(value(&state(&catalog), "x").unwrap(), "x@6");
    }
    drop((staging, whole));
}

#[test]
fn a_failed_write_may_be_tried_again_and_a_failed_sync_may_not() {
    let (_ship, pinned) = shipper();
    let disk = MemFs::new();
    let faults = FaultFs::over(disk.clone());
    let shelf = Shelf::over(disk, Arc::new(faults.clone()) as Arc<dyn Vfs>);
    let catalog = shelf.open().unwrap();
    let mut staging = Staging::new(&catalog, &pinned.description()).unwrap();
    let piece = pinned.read(0, 0, 10).unwrap();
    let short = Fault::ShortWrite {
        bytes: 3,
        errno: EIO,
    };
    for (operation, fault) in [
        (FaultOperation::Create, Fault::Errno(EIO)),
        (FaultOperation::Write, short),
    ] {
        faults.add(FaultRule::once(Some(operation), 0, fault));
        let failed = staging.write(0, 0, &piece);
        assert!(matches!(failed, Err(StorageError::Io(_))));
        assert_eq!(staging.written(0), 0);
    }
    staging.write(0, 0, &piece).unwrap();
    let lost = Fault::LostSync { errno: EIO };
    faults.add(FaultRule::once(Some(FaultOperation::Sync), 0, lost));
    assert!(ship(&pinned, &mut staging, 100).is_err());
    assert!(ship(&pinned, &mut staging, 100).is_err(), "it is void");
    assert!(staging.finish().is_err());
    let staged = shipped(&pinned, &catalog);
    published(install(&catalog, staged));
}

#[test]
fn a_staged_state_can_be_read_before_it_is_installed() {
    let (_ship, pinned) = shipper();
    let (_shelf, catalog) = receiver();
    let staged = shipped(&pinned, &catalog);
    for view in [staged.view(), pinned.view()] {
        assert_eq!(view.get(b"m").unwrap().unwrap(), "m@8");
        assert_eq!(view.sequence(), SequenceNumber::new(8));
    }
}

#[test]
fn a_description_that_is_too_long_is_refused_unread() {
    let (_shelf, catalog) = receiver();
    let refused = Staging::new(&catalog, &vec![0; (16 << 20) + 1]);
    assert!(matches!(refused, Err(StorageError::TooLarge { .. })));
    let refused = Staging::new(&catalog, b"nothing");
    assert!(matches!(refused, Err(StorageError::BadDescription { .. })));
    assert_ne!(DATABASE, OTHER);
    assert!(catalog.directory() == directory());
}
