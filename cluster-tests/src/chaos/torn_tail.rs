//! Appends half a frame to the log of a node that is down, as a power cut in the middle of a write
//! leaves it. The layout is drawn in `docs/formats/wal.md`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

const FILE_HEADER_BYTES: u64 = 64;
const FRAME_HEADER_BYTES: u64 = 40;
const FRAME_MAGIC: &[u8; 4] = b"KFRM";
/// Where the length of its body stands in the header of a frame.
const BODY_LENGTH_AT: usize = 8;
const ALIGNMENT: u64 = 8;

/// Writes the first half of the last frame once more, behind it.
///
/// # Errors
/// When the directory holds no log with a frame in it.
pub(super) fn append(data_directory: &Path) -> Result<()> {
    // The newest file may be one that was made ahead of its use.
    for path in logs_newest_first(data_directory)? {
        let file = File::options().read(true).write(true).open(path)?;
        if let Some((start, bytes)) = last_frame(&file) {
            let half = (bytes / 2).max(FRAME_HEADER_BYTES / 2);
            let mut tail = vec![0; usize::try_from(half)?];
            file.read_exact_at(&mut tail, start)?;
            return Ok(file.write_all_at(&tail, start + bytes)?);
        }
    }
    bail!("no log in {} has a frame", data_directory.display())
}

/// Where the last frame of a file starts and how long it is.
fn last_frame(file: &File) -> Option<(u64, u64)> {
    let (mut last, mut end) = (None, FILE_HEADER_BYTES);
    while let Some(bytes) = frame_bytes(file, end) {
        last = Some((end, bytes));
        end += bytes;
    }
    last
}

/// The whole length of the frame at `offset`, if there is one.
fn frame_bytes(file: &File, offset: u64) -> Option<u64> {
    let mut header = [0; BODY_LENGTH_AT + 4];
    file.read_exact_at(&mut header, offset).ok()?;
    let length = header[BODY_LENGTH_AT..]
        .try_into()
        .ok()
        .map(u32::from_le_bytes)?;
    let body = u64::from(length).next_multiple_of(ALIGNMENT);
    header
        .starts_with(FRAME_MAGIC)
        .then_some(FRAME_HEADER_BYTES + body)
}

/// The files of the log; their names sort by number.
fn logs_newest_first(data_directory: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(data_directory).context("data directory")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wal") {
            logs.push(path);
        }
    }
    logs.sort();
    logs.reverse();
    Ok(logs)
}

#[cfg(test)]
mod tests;
