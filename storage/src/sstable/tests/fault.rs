//! Every operation of the file system fails in turn.

use std::io;
use std::ops::Bound;

use super::*;
use crate::error::StorageError;
use crate::read_view::Direction;
use crate::vfs::{Fault, FaultFs, FaultOperation, FaultRule};

const EIO: i32 = 5;

fn failing(operation: FaultOperation, skip: u64) -> FaultRule {
    FaultRule::once(Some(operation), skip, Fault::Errno(EIO))
}

#[track_caller]
fn check_is_eio(error: &SstableError) {
    let SstableError::Io {
        path: named,
        source,
        ..
    } = error
    else {
        panic!("{error} is not what the system said");
    };
    assert_eq!(*named, path(3));
    assert_eq!(source.raw_os_error(), Some(EIO));
}

#[test]
fn a_failed_write_or_sync_is_an_error() {
    // One value is synced before the end, and each is written on its own.
    let large: Vec<Version> = [9 << 20, 300_000, 300_000]
        .into_iter()
        .zip(0..)
        .map(|(bytes, number)| (vec![number], 1, Some(vec![number; bytes])))
        .collect();
    let options = SstableOptions {
        compression: Compression::None,
        ..SstableOptions::default()
    };
    let operations = [
        (FaultOperation::Create, 1),
        (FaultOperation::Write, 4),
        (FaultOperation::Sync, 2),
    ];
    for (operation, count) in operations {
        for skip in 0..=count {
            let faults = FaultFs::new(Arc::new(disk()));
            faults.add(failing(operation, skip));
            match write(&faults, 3, options, &large) {
                Err(error) => check_is_eio(&error),
                Ok(_) => assert_eq!(skip, count, "{operation:?} {skip} did not matter"),
            }
        }
    }
}

#[test]
fn a_failed_read_is_an_error_and_may_be_tried_again() {
    let faults = FaultFs::new(Arc::new(disk()));
    let summary = write(&faults, 3, small_options(), &small()).unwrap();
    for operation in [FaultOperation::Open, FaultOperation::Read] {
        let mut skip = 0;
        loop {
            faults.clear();
            faults.add(failing(operation, skip));
            let read = open(&faults, &summary).and_then(|reader| all(&reader, 100));
            match read {
                Ok(read) => {
                    assert_eq!(read, small());
                    break;
                }
                Err(error) => check_is_eio(&error),
            }
            skip += 1;
        }
        assert!(skip > 0);
    }
}

#[test]
fn a_failed_lookup_hides_no_key() {
    let faults = FaultFs::new(Arc::new(disk()));
    let summary = write(&faults, 3, small_options(), &small()).unwrap();
    let reader = open(&faults, &summary).unwrap();
    faults.add(failing(FaultOperation::Read, 0));
    let error = reader.get(b"key \x01", SequenceNumber::MAX).err().unwrap();
    check_is_eio(&error);
    let StorageError::Io(error) = StorageError::from(error) else {
        panic!("the reaction is another one");
    };
    assert_eq!(error.kind(), io::Error::from_raw_os_error(EIO).kind());
    assert!(error.to_string().contains("000003.sst"), "{error}");
    assert!(
        reader
            .get(b"key \x01", SequenceNumber::MAX)
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_failed_scan_says_so_until_it_is_dropped() {
    let faults = FaultFs::new(Arc::new(disk()));
    let summary = write(&faults, 3, small_options(), &small()).unwrap();
    for direction in [Direction::Forward, Direction::Reverse] {
        let reader = open(&faults, &summary).unwrap();
        faults.add(failing(FaultOperation::Read, 2));
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let mut cursor = SstableCursor::new(reader, SequenceNumber::MAX, bounds, direction);
        let mut stops = 0;
        let error = loop {
            match cursor.next() {
                Ok(stop) => assert!(stop.is_some(), "the scan ended early"),
                Err(error) => break error,
            }
            stops += 1;
        };
        assert!(stops > 0);
        check_is_eio(&error);
        check_is_eio(&cursor.peek().err().unwrap());
        check_is_eio(&cursor.next().err().unwrap());
    }
}
