//! Makes what was read durable, cuts what is torn, removes what is not needed.

use std::io;

use super::super::files::WalFile;
use super::super::format::{FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use super::super::scan::{Frame, Scanner, read_header};
use super::Recovery;
use crate::codec::long;
use crate::error::OpenError;
use crate::vfs::Vfs;

impl Recovery {
    /// Makes all of the newest file durable, after cutting a torn tail; seals it if it is not, and
    /// removes what holds nothing. All of it is durable when this returns, and a crash in between
    /// leaves what the next open repairs again.
    pub(crate) fn repair(&mut self, vfs: &dyn Vfs) -> Result<(), OpenError> {
        if let Some(newest) = self.files.last() {
            let repaired = self.repair_newest(newest);
            self.newest_length = repaired.map_err(OpenError::io("repair", &newest.path))?;
            self.sealed = true;
        }
        for path in self.leftovers.drain(..) {
            vfs.remove(&path).map_err(OpenError::io("remove", &path))?;
        }
        vfs.sync_dir(&self.directory)
            .map_err(OpenError::io("sync", &self.directory))
    }

    /// Answers the length of the newest file once it is sealed.
    fn repair_newest(&self, newest: &WalFile) -> io::Result<u64> {
        let end = self.newest_length;
        if !self.sealed {
            newest.file.set_len(end)?;
        }
        if self.durable_upto < end {
            self.write_again(newest)?;
        }
        newest.file.sync_all()?;
        if self.sealed {
            return Ok(end);
        }
        let seal = FrameHeader {
            kind: FrameKind::Seal,
            body_bytes: 0,
            record_count: 0,
            first_sequence: self.next_sequence,
            synced_upto: end,
            predecessor_durable: true,
        };
        newest.file.write_at(&seal.encode(newest.salt, end), end)?;
        newest.file.sync_all()?;
        tracing::info!(path = %newest.path.display(), end, "cut the log after its last frame");
        Ok(end + long(FRAME_HEADER_BYTES))
    }

    /// Writes everything that nothing proves durable in its place again. Each frame is read and
    /// checked again and written from the same memory: what the first reading saw may be gone.
    fn write_again(&self, newest: &WalFile) -> io::Result<()> {
        let file = &*newest.file;
        if self.durable_upto < long(FILE_HEADER_BYTES) {
            let header = read_header(file)?.map_err(|_| reads_differently())?;
            file.write_at(&header.encode(), 0)?;
        }
        let mut scanner = Scanner::new(file, newest.salt, self.next_sequence)?;
        let last_durable = self
            .unwitnessed
            .iter()
            .take_while(|boundary| boundary.offset <= self.durable_upto)
            .last();
        if let Some(start) = last_durable.or(self.unwitnessed.front()) {
            scanner.go_to(*start);
        }
        while scanner.offset < self.newest_length {
            let offset = scanner.offset;
            if let Frame::Fault(_) = scanner.next_frame()? {
                return Err(reads_differently());
            }
            file.write_at(scanner.frame(), offset)?;
        }
        let same =
            scanner.offset == self.newest_length && scanner.next_sequence == self.next_sequence;
        same.then_some(()).ok_or_else(reads_differently)
    }
}

/// The system threw away what it had not brought to the disk, between two looks at it.
fn reads_differently() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the log reads differently the second time",
    )
}
