//! Doors for fuzzers: each feeds bytes to one decoder of a durable format, which must not panic
//! nor ask for memory out of proportion. Not part of the promised interface.

use std::path::Path;
use std::sync::Arc;

use crate::catalog::{CatalogRecovery, CatalogSetup};
use crate::codec::{index, long};
use crate::file_number::FileNumber;
use crate::hard_state::HardState;
use crate::identity::{DatabaseId, Identity};
use crate::log::ReplayLogs;
use crate::manifest::CURRENT_NAME;
use crate::manifest::frame::{
    FILE_HEADER_BYTES as MANIFEST_HEADER_BYTES, FRAME_HEADER_BYTES as MANIFEST_FRAME_HEADER_BYTES,
    frame_bytes, push_frame,
};
use crate::pinned::Description;
use crate::salt::Salt;
use crate::sstable::{Birth, BlockCache, EntryCursor, SstableFile, SstableReader};
use crate::vfs::{MemFs, Vfs};
use crate::wal::format::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES, RECORD_HEADER_BYTES, padded};
use crate::wal::record::Record;
use crate::wal::recover;

/// The database whose files the bytes pretend to be.
const DATABASE: DatabaseId = DatabaseId::from_bytes([7; 16]);

/// The file that the bytes of a log pretend to be: not the first, which has no predecessor.
const WAL_FILE: FileNumber = FileNumber::new(2);

/// The manifest that bytes pretend to be, and an edit that makes the keyspace 1.
const MANIFEST: FileNumber = FileNumber::new(3);
const MANIFEST_STATE: &[u8] = &[
    1, 8, 100, 0, 0, 0, 0, 0, 0, 0, 2, 4, 2, 0, 0, 0, 3, 23, 1, 0, 0, 0, 1, 0, 0, 0, b's', 10, 0,
    0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 1, 10,
];

/// The length of a slot of HARDSTATE, its checksum included.
const SLOT_BYTES: usize = 4096;
/// The length of a checksum at the end of a slot or file.
const CHECK_BYTES: usize = 4;

/// Decodes one record of the write-ahead log.
pub fn wal_record(bytes: &[u8]) {
    let _ = Record::decode(bytes);
}

/// Recovers a write-ahead log of one file; a log that was repaired must be whole.
pub fn wal_file(bytes: &[u8]) {
    let (disk, directory) = disk_with(&WAL_FILE.wal_name(), bytes);
    let read = |logs: &mut ReplayLogs| recover::read(&disk, directory, DATABASE, None, logs);
    let Ok(mut recovery) = read(&mut ReplayLogs::default()) else {
        return;
    };
    if recovery.repair(&disk).is_ok() {
        let again = read(&mut ReplayLogs::default());
        assert!(again.is_ok(), "a repaired log is whole");
    }
}

/// Like [`wal_file`], with all checksums put right that keep a fuzzer out.
pub fn wal_file_resealed(bytes: &[u8]) {
    if let Some(file) = resealed_wal(bytes) {
        wal_file(&file);
    }
}

/// Loads HARDSTATE; what was loaded can be written again.
pub fn hard_state(bytes: &[u8]) {
    let (disk, directory) = disk_with(crate::hard_state::FILE_NAME, bytes);
    if let Ok(state) = HardState::load(&disk, directory, DATABASE) {
        let _ = state.make_durable(directory);
        let _ = state.raise_boot();
    }
}

/// Like [`hard_state`], with the checksums of both slots put right.
pub fn hard_state_resealed(bytes: &[u8]) {
    hard_state(&resealed_slots(bytes));
}

/// Decodes IDENTITY.
pub fn identity(bytes: &[u8]) {
    if let Ok(identity) = Identity::decode(bytes) {
        assert_eq!(identity.encode(), bytes);
    }
}

/// Like [`identity`]: the last bytes of `bytes` become the right checksum.
pub fn identity_resealed(bytes: &[u8]) {
    let end = bytes.len().saturating_sub(CHECK_BYTES);
    identity(&sealed(bytes[..end].to_vec()));
}

/// `content` with its checksum behind it.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let check = crc32fast::hash(&content);
    content.extend_from_slice(&check.to_le_bytes());
    content
}

/// Two slots of the right database, which begin with the halves of `bytes`.
fn resealed_slots(bytes: &[u8]) -> Vec<u8> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let slots = [first, second].map(|start| {
        let mut slot = start.to_vec();
        slot.resize(SLOT_BYTES - CHECK_BYTES, 0);
        slot[40..56].copy_from_slice(DATABASE.as_bytes());
        sealed(slot)
    });
    slots.concat()
}

/// A log file of the right number and database, in which whatever stands where a frame or a record
/// should has the checksum of one.
fn resealed_wal(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut file = bytes.to_vec();
    let (header, frames) = file.split_first_chunk_mut::<FILE_HEADER_BYTES>()?;
    header[8..16].copy_from_slice(&WAL_FILE.get().to_le_bytes());
    header[16..32].copy_from_slice(DATABASE.as_bytes());
    let check = crc32fast::hash(&header[..60]);
    header[60..].copy_from_slice(&check.to_le_bytes());
    reseal_frames(frames, Salt::new(DATABASE, WAL_FILE));
    Some(file)
}

/// Puts right the checksums of the frames that follow a file's header.
fn reseal_frames(frames: &mut [u8], salt: Salt) {
    let mut start = 0;
    while let Some(header) = frames.get_mut(start..start + FRAME_HEADER_BYTES) {
        let check = salt.apply(
            crc32fast::hash(&header[8..]),
            long(FILE_HEADER_BYTES + start),
        );
        header[4..8].copy_from_slice(&check.to_le_bytes());
        let body_bytes = number_at(header, 8);
        start += FRAME_HEADER_BYTES;
        let Some(body) = frames.get_mut(start..start + body_bytes) else {
            return;
        };
        reseal_records(body, salt, FILE_HEADER_BYTES + start);
        start += body_bytes;
    }
}

/// Puts right the checksums of the records of a frame, whose body starts at `body_offset`.
fn reseal_records(body: &mut [u8], salt: Salt, body_offset: usize) {
    let mut position = 0;
    while body.len() - position >= RECORD_HEADER_BYTES {
        let length = number_at(body, position);
        let start = position + RECORD_HEADER_BYTES;
        let Some(payload) = body.get(start..start + length) else {
            return;
        };
        let check = salt.apply(crc32fast::hash(payload), long(body_offset + position));
        body[position + 4..start].copy_from_slice(&check.to_le_bytes());
        position = body.len().min(start + padded(length));
    }
}

/// The u32 at `position`, which is there.
fn number_at(bytes: &[u8], position: usize) -> usize {
    let bytes = bytes[position..].first_chunk().expect("the caller looked");
    index(u64::from(u32::from_le_bytes(*bytes)))
}

/// Opens a catalog whose manifest is `bytes`; whatever opens once opens again.
pub fn manifest(bytes: &[u8]) {
    let name = MANIFEST.manifest_name();
    let (disk, directory) = disk_with(&name, bytes);
    let current = format!("{name} {:08x}\n", crc32fast::hash(name.as_bytes()));
    let file = disk
        .create(&directory.join(CURRENT_NAME))
        .expect("the disk has no CURRENT");
    file.write_at(current.as_bytes(), 0)
        .expect("a disk in memory takes all bytes");
    let disk: Arc<dyn Vfs> = Arc::new(disk);
    let open = || {
        CatalogRecovery::read(CatalogSetup {
            vfs: Arc::clone(&disk),
            directory: directory.to_owned(),
            database: DATABASE,
            cache: Arc::new(BlockCache::new(0)),
            manifest_bytes_min: 0,
        })
    };
    if open().is_ok() {
        assert!(open().is_ok(), "reading changes nothing");
    }
}

/// Like [`manifest`], with `bytes` as the edit that follows the state of a database with one
/// keyspace.
pub fn manifest_edit(bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let salt = Salt::new(DATABASE, MANIFEST);
    let mut file = vec![0; MANIFEST_HEADER_BYTES];
    for payload in [MANIFEST_STATE, bytes] {
        let offset = long(file.len());
        push_frame(&mut file, payload, offset, salt);
    }
    manifest(&with_manifest_header(file));
}

/// Like [`manifest`], with all checksums put right that keep a fuzzer out.
pub fn manifest_resealed(bytes: &[u8]) {
    let mut file = vec![0; MANIFEST_HEADER_BYTES];
    let mut rest = bytes.get(MANIFEST_HEADER_BYTES..).unwrap_or_default();
    while let Some((header, behind)) = rest.split_first_chunk::<MANIFEST_FRAME_HEADER_BYTES>() {
        let length = number_at(header, 0);
        let Some(payload) = behind.get(..length).filter(|payload| !payload.is_empty()) else {
            break;
        };
        let offset = long(file.len());
        push_frame(&mut file, payload, offset, Salt::new(DATABASE, MANIFEST));
        rest = rest.get(frame_bytes(length)..).unwrap_or_default();
    }
    manifest(&with_manifest_header(file));
}

/// The header of a manifest whose frames are in place.
fn with_manifest_header(mut file: Vec<u8>) -> Vec<u8> {
    let bytes = long(file.len());
    file[..4].copy_from_slice(b"KMAN");
    file[4..6].copy_from_slice(&1_u16.to_le_bytes());
    file[8..16].copy_from_slice(&MANIFEST.get().to_le_bytes());
    file[16..32].copy_from_slice(DATABASE.as_bytes());
    file[32..40].copy_from_slice(&bytes.to_le_bytes());
    file[40..48].copy_from_slice(&long(MANIFEST_HEADER_BYTES).to_le_bytes());
    let check = crc32fast::hash(&file[..60]);
    file[60..MANIFEST_HEADER_BYTES].copy_from_slice(&check.to_le_bytes());
    file
}

/// Decodes the description of a shipped state.
pub fn description(bytes: &[u8]) {
    if let Ok(description) = Description::decode(bytes) {
        assert_eq!(description.encode(), bytes);
    }
}

/// Like [`description`]: the last bytes of `bytes` become the right checksum.
pub fn description_resealed(bytes: &[u8]) {
    let end = bytes.len().saturating_sub(CHECK_BYTES);
    description(&sealed(bytes[..end].to_vec()));
}

/// Opens an sstable and walks it in both directions.
pub fn sstable(bytes: &[u8]) {
    let number = FileNumber::new(1);
    let (disk, directory) = disk_with(&number.sstable_name(), bytes);
    let table = SstableFile {
        number,
        bytes: long(bytes.len()),
        birth: Birth {
            database: DATABASE,
            number,
        },
    };
    let cache = Arc::new(BlockCache::new(0));
    let Ok(reader) = SstableReader::open(&disk, directory, table, cache) else {
        return;
    };
    let mut cursor = EntryCursor::once(Arc::new(reader));
    let mut left = bytes.len();
    let mut walked = cursor.seek_first();
    while walked.is_ok() && cursor.entry().is_some() && left > 0 {
        walked = cursor.next();
        left -= 1;
    }
    let mut walked = cursor.seek_last();
    while walked.is_ok() && cursor.entry().is_some() && left > 0 {
        walked = cursor.prev();
        left -= 1;
    }
}

fn disk_with(name: &str, bytes: &[u8]) -> (MemFs, &'static Path) {
    let (disk, directory) = (MemFs::new(), Path::new("/data"));
    disk.create_dir_all(directory)
        .expect("a disk in memory takes a directory");
    let file = disk
        .create(&directory.join(name))
        .expect("the disk is empty");
    file.write_at(bytes, 0)
        .expect("a disk in memory takes all bytes");
    (disk, directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn a_damaged_golden_log_is_whole_once_resealed() {
        let mut bytes = golden::load("000001.wal");
        // A byte of the first entry: behind file, frame and record header and the entry's position.
        bytes[150] ^= 1;
        let file = resealed_wal(&bytes).unwrap();
        let (disk, directory) = disk_with(&WAL_FILE.wal_name(), &file);
        let mut logs = ReplayLogs::default();
        let recovery = recover::read(&disk, directory, DATABASE, None, &mut logs).unwrap();
        assert_eq!(recovery.next_sequence, 9, "the golden file has 8 records");
    }

    #[test]
    fn the_manifest_before_a_made_up_edit_holds_a_keyspace() {
        let edit = crate::manifest::decode_edit(MANIFEST_STATE).unwrap();
        assert_eq!(edit.len(), 3);
        for bytes in [
            &b"\x05\x0c\x01\0\0\0\x09\0\0\0\0\0\0\0"[..],
            b"\x01",
            b"\xff",
        ] {
            manifest_edit(bytes);
        }
    }

    #[test]
    fn the_golden_manifest_and_description_pass_their_doors() {
        for bytes in [golden::load("MANIFEST-000003"), Vec::new()] {
            manifest(&bytes);
            manifest_resealed(&bytes);
        }
        for bytes in [golden::load("description.bin"), Vec::new()] {
            description(&bytes);
            description_resealed(&bytes);
        }
    }

    #[test]
    fn a_golden_hard_state_of_another_database_loads_once_resealed() {
        let file = resealed_slots(&golden::load("HARDSTATE"));
        let (disk, directory) = disk_with(crate::hard_state::FILE_NAME, &file);
        let state = HardState::load(&disk, directory, DATABASE).unwrap();
        assert_eq!(state.votes().len(), 1);
    }
}
