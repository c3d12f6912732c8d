//! What an open refuses: each error names the file.

use super::super::*;
use super::shelf::*;
use crate::error::OpenError;
use crate::identity::DatabaseId;
use crate::vfs::MemFs;

fn shelf_with_tables() -> (Shelf, String) {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a"], 1);
    let version = flush(&catalog, &["b"], 2);
    let name = version.level(0)[1].meta().number.sstable_name();
    (shelf, name)
}

/// Reads, which must fail and change nothing.
fn refused(shelf: &Shelf) -> OpenError {
    let before = shelf.names();
    let error = shelf.open().map(drop).unwrap_err();
    assert_eq!(shelf.names(), before, "a refused directory is not changed");
    error
}

#[test]
fn a_missing_table_is_an_error_that_names_it() {
    let (shelf, name) = shelf_with_tables();
    shelf.disk.remove(&directory().join(&name)).unwrap();
    let error = refused(&shelf);
    assert!(matches!(error, OpenError::Corruption(_)));
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn a_table_of_another_length_is_an_error_that_names_it() {
    let (shelf, name) = shelf_with_tables();
    let path = directory().join(&name);
    for change in [true, false] {
        shelf
            .disk
            .corrupt(&path, |bytes| {
                if change {
                    bytes.push(0);
                } else {
                    bytes.truncate(bytes.len() - 2);
                }
            })
            .unwrap();
        let error = refused(&shelf);
        assert!(error.to_string().contains(&name), "{error}");
    }
}

#[test]
fn another_table_in_its_place_is_an_error_that_names_it() {
    let (shelf, name) = shelf_with_tables();
    let other = shelf.disk.open(&directory().join("000003.sst")).unwrap();
    let mut bytes = vec![0; usize::try_from(other.len().unwrap()).unwrap()];
    other.read_at(&mut bytes, 0).unwrap();
    shelf
        .disk
        .corrupt(&directory().join(&name), |file| *file = bytes)
        .unwrap();
    let error = refused(&shelf);
    assert!(error.to_string().contains(&name), "{error}");
}

#[test]
fn a_manifest_of_another_database_is_foreign() {
    let (shelf, _) = shelf_with_tables();
    let setup = CatalogSetup {
        database: DatabaseId::from_bytes([8; 16]),
        ..shelf.setup()
    };
    let error = CatalogRecovery::read(setup).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::ForeignFile { .. }), "{error}");
}

#[test]
fn a_lost_current_is_an_error_unless_the_catalog_was_being_made() {
    let (shelf, _) = shelf_with_tables();
    shelf.disk.remove(&directory().join("CURRENT")).unwrap();
    let error = refused(&shelf);
    assert!(error.to_string().contains("CURRENT"), "{error}");

    let shelf = Shelf::new(MemFs::new());
    drop(shelf.open().unwrap());
    shelf.disk.remove(&directory().join("CURRENT")).unwrap();
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a"], 1);
    drop(catalog);
    let catalog = shelf.open().unwrap();
    assert_eq!(value(&state(&catalog), "a").unwrap(), "a@1");
}
