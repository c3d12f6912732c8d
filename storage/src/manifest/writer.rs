//! Appends edits, and writes the state into a new manifest where appending is not allowed or not
//! worth it any more.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::{
    FILE_BYTES_MAX, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FileHeader, frame_bytes, push_frame,
};
use super::{Edit, Loaded, Record, current, edit};
use crate::codec::{index, long};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::salt::Salt;
use crate::vfs::{Vfs, VfsFile};

/// Why an edit is not in the manifest for sure.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// It may be there or not; the next edit goes into a new manifest without it.
    Io(io::Error),
    /// The state would not fit a manifest; nothing was written.
    TooLarge {
        /// What it would take.
        bytes: u64,
        /// What it may take.
        bytes_max: u64,
    },
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The manifest, for writing.
///
/// Invariants:
/// - A frame is written only behind frames that are durable.
/// - A file on which a write or sync failed is never written again.
pub(crate) struct ManifestWriter {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    database: DatabaseId,
    /// A new file has at least this length.
    file_bytes_min: u64,
    /// None when the next edit needs a new file.
    open: Option<OpenFile>,
    /// Files that CURRENT may name after a crash, beside the open one: none when that is certain.
    stale: Vec<FileNumber>,
    counters: Arc<ManifestCounters>,
}

/// What anybody may look at without waiting for the writer.
#[derive(Debug, Default)]
pub(crate) struct ManifestCounters {
    bytes: AtomicU64,
    rolls: AtomicU64,
}

impl ManifestCounters {
    /// Bytes of the manifest that are in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Manifests that were written whole.
    pub(crate) fn rolls(&self) -> u64 {
        self.rolls.load(Ordering::Relaxed)
    }
}

struct OpenFile {
    file: Arc<dyn VfsFile>,
    number: FileNumber,
    end: u64,
    file_bytes: u64,
}

impl ManifestWriter {
    /// A writer of a directory that has no manifest.
    pub(crate) fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        database: DatabaseId,
        file_bytes_min: u64,
    ) -> Self {
        Self {
            vfs,
            directory,
            database,
            file_bytes_min,
            open: None,
            stale: Vec::new(),
            counters: Arc::default(),
        }
    }

    /// Goes on with what was read, once that is durable: it may come from a killed process and
    /// exist only in the system's cache. All but the last frame were synced before it was written.
    pub(crate) fn resume(&mut self, loaded: Loaded) -> io::Result<()> {
        let (offset, frame) = &loaded.last_frame;
        loaded.file.write_at(frame, *offset)?;
        loaded.file.sync_data()?;
        self.vfs.sync_dir(&self.directory)?;
        self.counters.bytes.store(loaded.end, Ordering::Relaxed);
        if loaded.torn {
            self.stale.push(loaded.number);
        } else {
            self.open = Some(OpenFile {
                file: loaded.file,
                number: loaded.number,
                end: loaded.end,
                file_bytes: loaded.file_bytes,
            });
        }
        Ok(())
    }

    /// Whether there is room for `edit` in the file.
    pub(crate) fn has_room(&self, edit: &[Record]) -> bool {
        let bytes = long(frame_bytes(edit::encode(edit).len()));
        let left = |open: &OpenFile| open.file_bytes - open.end;
        self.open.as_ref().is_some_and(|open| bytes <= left(open))
    }

    /// Appends `edit` to the open file, which has room for it; durable when this returns.
    ///
    /// # Panics
    /// When there is no room.
    pub(crate) fn append(&mut self, edit: &[Record]) -> Result<(), AppendError> {
        assert!(self.has_room(edit), "the caller makes room");
        let mut open = self.open.take().expect("there is room in a file");
        let mut frame = Vec::new();
        let salt = Salt::new(self.database, open.number);
        push_frame(&mut frame, &edit::encode(edit), open.end, salt);
        // From here on the file counts as damaged until all is well.
        self.stale.push(open.number);
        open.file.write_at(&frame, open.end)?;
        open.file.sync_data()?;
        open.end += long(frame.len());
        self.counters.bytes.store(open.end, Ordering::Relaxed);
        self.stale.pop();
        self.open = Some(open);
        Ok(())
    }

    /// Writes `state` into a new file `number`, with room for `next` behind it, and turns CURRENT
    /// to it. Answers the names of the files that nobody needs any more.
    pub(crate) fn roll(
        &mut self,
        number: FileNumber,
        state: &[Edit],
        next: &[Record],
    ) -> Result<Vec<String>, AppendError> {
        let (bytes, file_bytes) = self.encode_file(number, state, next)?;
        self.stale.extend(self.open.take().map(|open| open.number));
        let before = self.stale.len();
        self.stale.push(number);
        let file = match self.write_file(number, &bytes, file_bytes) {
            Ok(file) => file,
            Err(error) => {
                // CURRENT never named it, and on a full disk its room is missed.
                if self.remove_file(number) {
                    self.stale.truncate(before);
                }
                return Err(error.into());
            }
        };
        current::store(&*self.vfs, &self.directory, number)?;
        self.stale.truncate(before);
        self.open = Some(OpenFile {
            file,
            number,
            end: long(bytes.len()),
            file_bytes,
        });
        self.counters
            .bytes
            .store(long(bytes.len()), Ordering::Relaxed);
        self.counters.rolls.fetch_add(1, Ordering::Relaxed);
        let unneeded = self.stale.drain(..).map(FileNumber::manifest_name);
        Ok(unneeded.collect())
    }

    /// Makes a manifest with these first bytes, durable under its name.
    fn write_file(
        &self,
        number: FileNumber,
        bytes: &[u8],
        file_bytes: u64,
    ) -> io::Result<Arc<dyn VfsFile>> {
        let file = self
            .vfs
            .create(&self.directory.join(number.manifest_name()))?;
        file.write_at(bytes, 0)?;
        // Room ahead of time is a gift; the length is a part of the format.
        if let Err(error) = file.allocate(file_bytes) {
            tracing::warn!(%error, "cannot reserve room for a manifest");
            file.set_len(file_bytes)?;
        }
        file.sync_all()?;
        self.vfs.sync_dir(&self.directory)?;
        Ok(file)
    }

    /// Removes a manifest that was perhaps made; false when it may still be there.
    fn remove_file(&self, number: FileNumber) -> bool {
        let removed = self
            .vfs
            .remove(&self.directory.join(number.manifest_name()));
        removed.map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |()| true)
    }

    /// What the writer counts.
    pub(crate) fn counters(&self) -> &Arc<ManifestCounters> {
        &self.counters
    }

    /// The used bytes of a new file, and the length that it gets.
    fn encode_file(
        &self,
        number: FileNumber,
        state: &[Edit],
        next: &[Record],
    ) -> Result<(Vec<u8>, u64), AppendError> {
        let salt = Salt::new(self.database, number);
        let mut bytes = vec![0; FILE_HEADER_BYTES];
        for edit in state {
            let offset = long(bytes.len());
            push_frame(&mut bytes, &edit::encode(edit), offset, salt);
        }
        let state_end = long(bytes.len());
        let needed = state_end + long(frame_bytes(edit::encode(next).len()));
        let file_bytes = needed
            .max(state_end * 2)
            .max(self.file_bytes_min.min(FILE_BYTES_MAX))
            .next_multiple_of(long(FRAME_HEADER_BYTES));
        if needed > FILE_BYTES_MAX {
            return Err(AppendError::TooLarge {
                bytes: needed,
                bytes_max: FILE_BYTES_MAX,
            });
        }
        let file_bytes = file_bytes.min(FILE_BYTES_MAX);
        let header = FileHeader {
            number,
            database: self.database,
            file_bytes,
            state_end,
        };
        bytes[..FILE_HEADER_BYTES].copy_from_slice(&header.encode());
        debug_assert!(bytes.len() <= index(file_bytes));
        Ok((bytes, file_bytes))
    }
}
