//! CURRENT: the name of the manifest that counts.
//!
//! One line of text, so that a person can read it: the name, a space, and the CRC-32 of the name
//! in eight hexadecimal digits.

use std::io;
use std::path::Path;

use crate::codec::index;
use crate::error::{Corruption, OpenError};
use crate::file_number::FileNumber;
use crate::vfs::{Vfs, read_full};

/// The name of the file.
pub(crate) const FILE_NAME: &str = "CURRENT";
/// Where a new content is written before it takes the name.
pub(crate) const TEMPORARY_NAME: &str = "CURRENT.new";

/// Longer than any content; of a longer file, enough is read to refuse it.
const BYTES_MAX: u64 = 64;

/// The content that names the manifest `number`.
pub(super) fn encode(number: FileNumber) -> Vec<u8> {
    let name = number.manifest_name();
    let check = crc32fast::hash(name.as_bytes());
    format!("{name} {check:08x}\n").into_bytes()
}

/// The manifest that a content names.
pub(super) fn decode(bytes: &[u8]) -> Option<FileNumber> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (name, _) = text.split_once(' ')?;
    let number = FileNumber::from_manifest_name(name)?;
    (encode(number) == bytes).then_some(number)
}

/// Reads CURRENT of `directory`; none when there is none.
pub(super) fn load(vfs: &dyn Vfs, directory: &Path) -> Result<Option<FileNumber>, OpenError> {
    let path = directory.join(FILE_NAME);
    let found = vfs
        .exists(&path)
        .map_err(OpenError::io("look for", &path))?;
    if !found {
        return Ok(None);
    }
    let bytes = read_small(vfs, &path).map_err(OpenError::io("read", &path))?;
    match decode(&bytes) {
        Some(number) => Ok(Some(number)),
        None => Err(Corruption::new(path, 0, "its checksum does not hold").into()),
    }
}

/// Makes CURRENT name the manifest `number`, which is durable: durable and whole when this
/// returns; the old one, none or the new one after an error.
pub(super) fn store(vfs: &dyn Vfs, directory: &Path, number: FileNumber) -> io::Result<()> {
    let temporary = directory.join(TEMPORARY_NAME);
    if vfs.exists(&temporary)? {
        vfs.remove(&temporary)?;
    }
    let file = vfs.create(&temporary)?;
    file.write_at(&encode(number), 0)?;
    file.sync_all()?;
    vfs.rename(&temporary, &directory.join(FILE_NAME))?;
    vfs.sync_dir(directory)
}

fn read_small(vfs: &dyn Vfs, path: &Path) -> io::Result<Vec<u8>> {
    let file = vfs.open(path)?;
    let mut bytes = vec![0; index(file.len()?.min(BYTES_MAX))];
    let count = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}
