//! Files live as long as somebody may need them, and no longer.

use super::super::*;
use super::shelf::*;
use crate::vfs::MemFs;

fn tables(shelf: &Shelf) -> Vec<String> {
    let files = shelf.files().into_iter();
    files
        .filter(|name| FileNumber::from_sstable_name(name).is_some())
        .collect()
}

#[test]
fn a_dead_table_goes_with_its_last_holder() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let held = flush(&catalog, &["a"], 1);
    let bytes = held.level(0)[0].meta().bytes;
    let name = held.level(0)[0].meta().number.sstable_name();
    let merged = merge(&catalog, &["a"], 2, 1);
    assert_eq!(tables(&shelf).len(), 2, "a reader holds the old table");
    let metrics = catalog.metrics();
    assert_eq!((metrics.zombie_tables, metrics.zombie_bytes), (1, bytes));
    assert_eq!(value(&held, "a").unwrap(), "a@1");
    drop(held);
    let left = tables(&shelf);
    assert_eq!(left.len(), 1);
    assert!(!left.contains(&name));
    assert_eq!(catalog.metrics().zombie_tables, 0);
    drop(merged);
    assert_eq!(tables(&shelf).len(), 1, "a live table stays");
}

#[test]
fn a_discarded_table_goes_at_once() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    let meta = write(&catalog, &["a"], 1);
    assert_eq!(tables(&shelf).len(), 1);
    catalog.discard(&[meta.number]);
    assert_eq!(tables(&shelf).len(), 0);
}

#[test]
fn an_open_removes_what_no_version_needs() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a"], 1);
    write(&catalog, &["b"], 2);
    shelf
        .disk
        .create(&directory().join("MANIFEST-000099"))
        .unwrap();
    shelf.disk.create(&directory().join("CURRENT.new")).unwrap();
    shelf.disk.create(&directory().join("000007.wal")).unwrap();
    drop(catalog);
    let catalog = shelf.open().unwrap();
    assert_eq!(
        shelf.names(),
        ["000002.sst", "000007.wal", "CURRENT", "MANIFEST-000001"]
    );
    assert!(catalog.next_number() > FileNumber::new(99));
}

#[test]
fn a_stopped_catalog_removes_nothing() {
    let shelf = Shelf::new(MemFs::new());
    let catalog = shelf.open().unwrap();
    flush(&catalog, &["a"], 1);
    merge(&catalog, &["a"], 2, 1);
    catalog.stop();
    assert_eq!(tables(&shelf).len(), 2);
}
