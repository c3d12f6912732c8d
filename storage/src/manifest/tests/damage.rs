//! Every cut and every flipped bit is found; only what a crash does to the last frame is taken for
//! a crash.

use super::super::frame::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES};
use super::*;

const SECTOR_BYTES: usize = 512;

fn assert_names_the_file(error: &OpenError) {
    assert!(error.to_string().contains("MANIFEST-000003"), "{error}");
}

#[test]
fn what_is_written_is_read() {
    let (disk, _) = written();
    assert_eq!(read(&disk).unwrap(), all());
}

#[test]
fn a_cut_anywhere_is_an_error() {
    let (disk, _) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    for end in 0..bytes.len() {
        let error = read_instead(&disk, &bytes[..end]).unwrap_err();
        assert_names_the_file(&error);
    }
    let longer = [bytes.as_slice(), &[0; 16]].concat();
    assert_names_the_file(&read_instead(&disk, &longer).unwrap_err());
}

#[test]
fn a_flipped_bit_in_any_frame_is_an_error_and_behind_them_loses_nothing() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    let end = *ends.last().unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << bit;
            match read_instead(&disk, &flipped) {
                Err(error) => assert_names_the_file(&error),
                Ok(found) => {
                    assert!(place >= end, "bit {bit} of byte {place} is not missed");
                    assert_eq!(found, all());
                }
            }
        }
    }
}

#[test]
fn a_frame_that_was_not_written_to_its_end_is_torn_only_if_it_is_the_last() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    for (edit, range) in ends.windows(2).enumerate() {
        for stop in range[0]..range[1] {
            let mut torn = bytes.clone();
            torn[stop..range[1]].fill(0);
            if edit + 1 < edits().len() {
                assert_names_the_file(&read_instead(&disk, &torn).unwrap_err());
            }
            // The same as the last frame of the file.
            torn[range[1]..].fill(0);
            let expected = &all()[..state().len() + edit];
            assert_eq!(
                read_instead(&disk, &torn).unwrap(),
                expected,
                "up to {stop}"
            );
        }
    }
}

#[test]
fn a_last_frame_that_lacks_sectors_is_torn_and_any_other_is_damaged() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    // The second edit spans sectors.
    let (start, end) = (ends[1], ends[2]);
    let sectors = start / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES;
    assert!(sectors.clone().count() > 1);
    for sector in sectors {
        let lost = start.max(sector * SECTOR_BYTES)..end.min((sector + 1) * SECTOR_BYTES);
        let mut torn = bytes.clone();
        torn[lost].fill(0);
        let error = read_instead(&disk, &torn).unwrap_err();
        assert_names_the_file(&error);
        torn[end..].fill(0);
        let expected = &all()[..=state().len()];
        assert_eq!(read_instead(&disk, &torn).unwrap(), expected);
    }
}

#[test]
fn a_part_of_the_state_is_never_torn() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    let state_end = ends[0];
    for stop in FILE_HEADER_BYTES..state_end {
        let mut cut = bytes.clone();
        cut[stop..].fill(0);
        assert_names_the_file(&read_instead(&disk, &cut).unwrap_err());
    }
}

#[test]
fn a_frame_holds_at_its_place_in_its_file_only() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    let mut moved = bytes.clone();
    let frame = bytes[ends[0]..ends[1]].to_vec();
    moved[ends[3]..ends[3] + frame.len()].copy_from_slice(&frame);
    assert_names_the_file(&read_instead(&disk, &moved).unwrap_err());

    let other = MemFs::new();
    other.create_dir_all(directory()).unwrap();
    let mut writer = writer(&other);
    writer.roll(FileNumber::new(4), &state(), &[]).unwrap();
    for edit in edits() {
        writer.append(&edit).unwrap();
    }
    let others = bytes_of(&other, "MANIFEST-000004");
    let mut mixed = bytes;
    mixed[ends[0]..ends[1]].copy_from_slice(&others[ends[0]..ends[1]]);
    assert_names_the_file(&read_instead(&disk, &mixed).unwrap_err());
    assert_names_the_file(&read_instead(&disk, &others).unwrap_err());
}

#[test]
fn a_header_of_another_database_or_a_newer_version_is_told_apart_from_damage() {
    let (disk, _) = written();
    let found = load(&disk, directory(), DatabaseId::from_bytes([8; 16]));
    assert!(matches!(found.err(), Some(OpenError::ForeignFile { .. })));
    let mut bytes = bytes_of(&disk, "MANIFEST-000003");
    bytes[4] = 2;
    let check = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&check.to_le_bytes());
    let error = read_instead(&disk, &bytes).unwrap_err();
    assert!(matches!(error, OpenError::NewerFormat { found: 2, .. }));
}

#[test]
fn a_missing_manifest_and_a_damaged_current_are_errors_that_name_the_file() {
    let (disk, _) = written();
    let current = directory().join(CURRENT_NAME);
    let bytes = bytes_of(&disk, CURRENT_NAME);
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        disk.corrupt(&current, |file| *file = damaged).unwrap();
        let error = read(&disk).unwrap_err();
        assert!(error.to_string().contains("CURRENT"), "{error}");
        disk.corrupt(&current, |file| *file = bytes[..place].to_vec())
            .unwrap();
        let error = read(&disk).unwrap_err();
        assert!(error.to_string().contains("CURRENT"), "{error}");
    }
    disk.corrupt(&current, |file| *file = bytes).unwrap();
    disk.remove(&directory().join("MANIFEST-000003")).unwrap();
    assert_names_the_file(&read(&disk).unwrap_err());
}

#[test]
fn arbitrary_changes_of_a_file_never_panic() {
    let (disk, ends) = written();
    let bytes = bytes_of(&disk, "MANIFEST-000003");
    let end = *ends.last().unwrap();
    for start in (0..end).step_by(FRAME_HEADER_BYTES) {
        for value in [0, 0x7F, 0xFF] {
            let mut changed = bytes.clone();
            changed[start..start + FRAME_HEADER_BYTES].fill(value);
            if let Ok(found) = read_instead(&disk, &changed) {
                let expected = all();
                assert!(
                    found.len() + 1 >= expected.len(),
                    "more than one edit is gone"
                );
                assert_eq!(found, expected[..found.len()]);
            }
        }
    }
}
