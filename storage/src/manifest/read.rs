//! Reads the manifest that CURRENT names.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{
    FILE_BYTES_MAX, FILE_HEADER_BYTES, FileHeader, FrameFault, HeaderFault, VERSION, read_frames,
};
use super::{Edit, current, edit};
use crate::codec::{index, long};
use crate::error::{Corruption, OpenError};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::vfs::{Vfs, VfsFile, read_full};

/// What the manifest holds.
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) number: FileNumber,
    /// The edits, each with its place in the file.
    pub(crate) edits: Vec<(u64, Edit)>,
    pub(super) file: Arc<dyn VfsFile>,
    pub(super) file_bytes: u64,
    /// Where the edits end.
    pub(super) end: u64,
    /// Whether a crash left something behind them.
    pub(super) torn: bool,
    /// The last frame, with its place.
    pub(super) last_frame: (u64, Vec<u8>),
}

/// Reads the newest manifest of `directory`; none when there is no CURRENT. Changes nothing.
pub(crate) fn load(
    vfs: &dyn Vfs,
    directory: &Path,
    database: DatabaseId,
) -> Result<Option<Loaded>, OpenError> {
    let Some(number) = current::load(vfs, directory)? else {
        return Ok(None);
    };
    let path = directory.join(number.manifest_name());
    let file = vfs.open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Corruption::new(&path, 0, "the file is missing").into(),
        _ => OpenError::io("open", &path)(error),
    })?;
    let (header, bytes) = read_file(&*file, &path)?;
    if header.database != database {
        return Err(OpenError::ForeignFile { path });
    }
    if header.number != number {
        return Err(Corruption::new(path, 0, "the file is another manifest").into());
    }
    let corrupt = |fault: FrameFault| Corruption::new(&path, fault.offset, fault.fault);
    let found = read_frames(&bytes, &header).map_err(corrupt)?;
    let mut edits = Vec::with_capacity(found.whole.len());
    for frame in &found.whole {
        let corrupt = |fault: edit::EditFault| Corruption::new(&path, frame.offset, fault.0);
        edits.push((frame.offset, edit::decode(frame.payload).map_err(corrupt)?));
    }
    let last = found.whole.last().map_or(0, |frame| frame.offset);
    Ok(Some(Loaded {
        number,
        edits,
        file,
        file_bytes: header.file_bytes,
        end: long(found.end),
        torn: found.torn,
        last_frame: (last, bytes[index(last)..found.end].to_vec()),
        path,
    }))
}

/// The whole file, which must have the length that it was made with.
fn read_file(file: &dyn VfsFile, path: &Path) -> Result<(FileHeader, Vec<u8>), OpenError> {
    let length = file.len().map_err(OpenError::io("measure", path))?;
    let mut header = [0; FILE_HEADER_BYTES];
    let count = read_full(file, &mut header, 0).map_err(OpenError::io("read", path))?;
    if count < FILE_HEADER_BYTES {
        return Err(Corruption::new(path, long(count), "the file has no header").into());
    }
    let header = FileHeader::decode(&header).map_err(|fault| match fault {
        HeaderFault::Damaged => {
            Corruption::new(path, 0, "the header does not match its check").into()
        }
        HeaderFault::Newer(found) => OpenError::NewerFormat {
            path: path.to_owned(),
            found,
            supported: VERSION,
        },
    })?;
    if length != header.file_bytes || length > FILE_BYTES_MAX {
        let expected = header.file_bytes;
        let fault = format!("the file has {length} bytes instead of {expected}");
        return Err(Corruption::new(path, length.min(expected), fault).into());
    }
    let mut bytes = vec![0; index(length)];
    let count = read_full(file, &mut bytes, 0).map_err(OpenError::io("read", path))?;
    if count < bytes.len() {
        return Err(Corruption::new(path, long(count), "the file ends early").into());
    }
    Ok((header, bytes))
}
