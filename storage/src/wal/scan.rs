//! Reads one file of the write-ahead log from its start to the first place that does not hold.

use std::io;
use std::ops::Range;

use super::format::RECORD_HEADER_BYTES;
use super::format::{
    ALIGNMENT, FILE_HEADER_BYTES, FRAME_BODY_BYTES_MAX, FRAME_HEADER_BYTES, FileHeader,
    FrameHeader, FrameKind, HeaderFault, RawRecord, padded, record_at,
};
use crate::codec::{index, long};
use crate::salt::Salt;
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

/// A place between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Boundary {
    pub(super) offset: u64,
    /// The sequence that the next record has there.
    pub(super) next_sequence: u64,
}

/// How much is read at a time: a log of small frames costs few calls.
const READ_AHEAD_BYTES: u64 = 1 << 20;

/// Walks over the frames of a file.
pub(super) struct Scanner<'a> {
    file: &'a dyn VfsFile,
    salt: Salt,
    length: u64,
    /// Where the next frame starts: everything before is intact.
    pub(super) offset: u64,
    /// The sequence that the next record has.
    pub(super) next_sequence: u64,
    /// The most that a frame so far says was durable.
    pub(super) synced_upto: u64,
    /// A piece of the file and where it starts.
    window: Vec<u8>,
    window_offset: u64,
    /// The last frame in the window, its body, and its records in the body.
    frame: Range<usize>,
    body: Range<usize>,
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
            synced_upto: 0,
            window: Vec::new(),
            window_offset: 0,
            frame: 0..0,
            body: 0..0,
            records: Vec::new(),
        })
    }

    /// Goes to where a scanner of the same bytes was.
    pub(super) fn go_to(&mut self, boundary: Boundary) {
        self.offset = boundary.offset;
        self.next_sequence = boundary.next_sequence;
    }

    pub(super) fn boundary(&self) -> Boundary {
        Boundary {
            offset: self.offset,
            next_sequence: self.next_sequence,
        }
    }

    /// Reads the next frame whole and checks all of it before anything is believed.
    pub(super) fn next_frame(&mut self) -> io::Result<Frame> {
        let Some(found) = self.fetch(self.offset, FRAME_HEADER_BYTES)? else {
            return Ok(Frame::Fault("the file ends without a seal"));
        };
        let Some(header) = FrameHeader::decode(&self.window[found], self.salt, self.offset) else {
            return Ok(Frame::Fault("no frame starts here"));
        };
        if header.first_sequence != self.next_sequence {
            return Ok(Frame::Fault(
                "the frame's records do not continue those before it",
            ));
        }
        let body_offset = self.offset + long(FRAME_HEADER_BYTES);
        let body_bytes = index(u64::from(header.body_bytes));
        if body_bytes > FRAME_BODY_BYTES_MAX {
            return Ok(Frame::Fault("the frame is longer than a frame may be"));
        }
        let Some(frame) = self.fetch(self.offset, FRAME_HEADER_BYTES + body_bytes)? else {
            return Ok(Frame::Fault("the file ends inside the frame"));
        };
        self.body = frame.start + FRAME_HEADER_BYTES..frame.end;
        self.frame = frame;
        if !self.split(header.record_count, body_offset) {
            return Ok(Frame::Fault("the checksum of a record does not hold"));
        }
        self.offset = body_offset + long(body_bytes);
        self.next_sequence += u64::from(header.record_count);
        self.synced_upto = self.synced_upto.max(header.synced_upto);
        Ok(match header.kind {
            FrameKind::Data => Frame::Data,
            FrameKind::Seal => Frame::Sealed,
        })
    }

    /// The bytes of the last intact frame.
    pub(super) fn frame(&self) -> &[u8] {
        &self.window[self.frame.clone()]
    }

    /// The records of the last intact frame with their offsets in the file.
    pub(super) fn records(&self) -> impl Iterator<Item = (u64, RawRecord<'_>)> {
        let body = &self.window[self.body.clone()];
        let body_offset = self.window_offset + long(self.body.start);
        self.records.iter().map(move |(position, length)| {
            let start = position + RECORD_HEADER_BYTES;
            let payload = &body[start..start + length];
            let record = RawRecord {
                position: *position,
                payload,
            };
            (body_offset + long(*position), record)
        })
    }

    /// Finds the records of the body. Answers whether they are exactly the promised ones.
    fn split(&mut self, record_count: u32, body_offset: u64) -> bool {
        self.records.clear();
        let body = &self.window[self.body.clone()];
        let mut position = 0;
        for _ in 0..record_count {
            let Some(record) = record_at(body, position, self.salt, body_offset) else {
                return false;
            };
            let length = record.payload.len();
            self.records.push((position, length));
            position += RECORD_HEADER_BYTES + padded(length);
        }
        position == body.len()
    }

    /// Brings a piece of the file into the window. None when the file ends inside it; nothing is
    /// allocated for bytes that the file does not have.
    fn fetch(&mut self, offset: u64, count: usize) -> io::Result<Option<Range<usize>>> {
        let left = self.length.saturating_sub(offset);
        if left < long(count) {
            return Ok(None);
        }
        let held = self.window_offset + long(self.window.len());
        if offset < self.window_offset || held < offset + long(count) {
            let wanted = READ_AHEAD_BYTES.max(long(count)).min(left);
            self.window.resize(index(wanted), 0);
            let read = read_full(self.file, &mut self.window, offset)?;
            self.window.truncate(read);
            self.window_offset = offset;
        }
        let start = index(offset - self.window_offset);
        Ok((start + count <= self.window.len()).then(|| start..start + count))
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
