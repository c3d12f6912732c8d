//! Reads one file of the write-ahead log from its start to the first place that does not hold.

use std::io;

use super::format::RECORD_HEADER_BYTES;
use super::format::{
    ALIGNMENT, FILE_HEADER_BYTES, FRAME_BODY_BYTES_MAX, FRAME_HEADER_BYTES, FileHeader,
    FrameHeader, FrameKind, HeaderFault, RawRecord, Salt, padded, record_at,
};
use crate::codec::{index, long};
use crate::vfs::{VfsFile, read_full};

/// How much is searched for frames at a time.
const SEARCH_BYTES: usize = 1 << 20;

/// Reads the header of a file. A file too short to have one is damaged.
pub(super) fn read_header(file: &dyn VfsFile) -> io::Result<Result<FileHeader, HeaderFault>> {
    let mut bytes = [0; FILE_HEADER_BYTES];
    let count = read_full(file, &mut bytes, 0)?;
    if count < bytes.len() {
        return Ok(Err(HeaderFault::Damaged));
    }
    Ok(FileHeader::decode(&bytes))
}

/// What the scanner came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// An intact frame; its body is in the scanner.
    Data,
    /// The end that a seal marks.
    Sealed,
    /// No intact frame starts here.
    Fault(&'static str),
}

/// Walks over the frames of a file.
pub(super) struct Scanner<'a> {
    file: &'a dyn VfsFile,
    salt: Salt,
    length: u64,
    /// Where the next frame starts: everything before is intact.
    pub(super) offset: u64,
    /// The sequence that the next record has.
    pub(super) next_sequence: u64,
    body: Vec<u8>,
    body_offset: u64,
    records: Vec<(usize, usize)>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(file: &'a dyn VfsFile, salt: Salt, next_sequence: u64) -> io::Result<Self> {
        Ok(Self {
            file,
            salt,
            length: file.len()?,
            offset: long(FILE_HEADER_BYTES),
            next_sequence,
            body: Vec::new(),
            body_offset: 0,
            records: Vec::new(),
        })
    }

    /// Reads the next frame whole and checks all of it before anything is believed.
    pub(super) fn next_frame(&mut self) -> io::Result<Frame> {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        let count = read_full(self.file, &mut bytes, self.offset)?;
        let Some(header) = FrameHeader::decode(&bytes[..count], self.salt, self.offset) else {
            return Ok(Frame::Fault("no frame starts here"));
        };
        if header.first_sequence != self.next_sequence {
            return Ok(Frame::Fault(
                "the frame's records do not continue those before it",
            ));
        }
        let body_offset = self.offset + long(FRAME_HEADER_BYTES);
        let body_bytes = index(u64::from(header.body_bytes));
        let left = self.length.saturating_sub(body_offset);
        if body_bytes > FRAME_BODY_BYTES_MAX || long(body_bytes) > left {
            return Ok(Frame::Fault("the frame is longer than the file"));
        }
        self.body.resize(body_bytes, 0);
        if read_full(self.file, &mut self.body, body_offset)? < body_bytes {
            return Ok(Frame::Fault("the file ends inside the frame"));
        }
        self.body_offset = body_offset;
        if !self.split(header.record_count) {
            return Ok(Frame::Fault("the checksum of a record does not hold"));
        }
        self.offset = body_offset + long(body_bytes);
        self.next_sequence += u64::from(header.record_count);
        Ok(match header.kind {
            FrameKind::Data => Frame::Data,
            FrameKind::Seal => Frame::Sealed,
        })
    }

    /// Finds the records of the body. Answers whether they are exactly the promised ones.
    fn split(&mut self, record_count: u32) -> bool {
        self.records.clear();
        let mut position = 0;
        for _ in 0..record_count {
            let Some(record) = record_at(&self.body, position, self.salt, self.body_offset) else {
                return false;
            };
            let length = record.payload.len();
            self.records.push((position, length));
            position += RECORD_HEADER_BYTES + padded(length);
        }
        position == self.body.len()
    }

    /// The records of the last intact frame with their offsets in the file.
    pub(super) fn records(&self) -> impl Iterator<Item = (u64, RawRecord<'_>)> {
        self.records.iter().map(|(position, length)| {
            let start = position + RECORD_HEADER_BYTES;
            let payload = &self.body[start..start + length];
            let record = RawRecord {
                position: *position,
                payload,
            };
            (self.body_offset + long(*position), record)
        })
    }
}

/// What frames that were found behind a fault say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Witness {
    /// Everything below this offset was durable once.
    pub(super) synced_upto: u64,
    /// The whole file before was durable once.
    pub(super) predecessor_durable: bool,
}

/// Looks for frames at every place from `from` on, and asks them what was durable.
pub(super) fn find_witness(file: &dyn VfsFile, salt: Salt, from: u64) -> io::Result<Witness> {
    let mut witness = Witness::default();
    let mut start = from.next_multiple_of(long(ALIGNMENT));
    let mut bytes = vec![0; SEARCH_BYTES + FRAME_HEADER_BYTES];
    loop {
        let count = read_full(file, &mut bytes, start)?;
        let found = &bytes[..count];
        for position in (0..count.min(SEARCH_BYTES)).step_by(ALIGNMENT) {
            if !FrameHeader::looks_like(&found[position..]) {
                continue;
            }
            let offset = start + long(position);
            if let Some(header) = FrameHeader::decode(&found[position..], salt, offset) {
                witness.synced_upto = witness.synced_upto.max(header.synced_upto);
                witness.predecessor_durable |= header.predecessor_durable;
            }
        }
        if count < bytes.len() {
            return Ok(witness);
        }
        start += long(SEARCH_BYTES);
    }
}
