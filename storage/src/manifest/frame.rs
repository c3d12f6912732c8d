//! The frame of a manifest: the file's header, frames, and what may be wrong with the last one.
//!
//! Pure encoding and decoding. The file has its full length from the start and is zero behind the
//! last frame, so a file that was cut is never taken for one that was torn. A crash leaves sectors
//! of the frame that was being written as they were before, zero; a frame's header never spans two
//! sectors, and its last byte is never zero. So a frame is torn only where something is missing.
//! What is there and does not match its check is damage.

use crate::codec::{Reader, index, long, short};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::salt::Salt;

/// The newest version of the format.
pub(super) const VERSION: u16 = 1;
/// The header of the file.
pub(crate) const FILE_HEADER_BYTES: usize = 64;
/// The header of a frame; also what frames are aligned to.
pub(crate) const FRAME_HEADER_BYTES: usize = 16;
/// The longest file, and so the largest allocation that a file on the disk can ask for: the state
/// of some millions of tables.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;

/// What a disk writes as a whole.
const SECTOR_BYTES: usize = 512;
const MAGIC: u32 = u32::from_le_bytes(*b"KMAN");
const CHECKED_BYTES: usize = 60;
/// Ends every frame.
const END_MARK: u8 = 0xFF;

/// The first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) number: FileNumber,
    pub(super) database: DatabaseId,
    /// The length of the file.
    pub(super) file_bytes: u64,
    /// Where the frames end that were durable before CURRENT named the file.
    pub(super) state_end: u64,
}

/// Why bytes are not the header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Damaged,
    Newer(u16),
}

impl FileHeader {
    pub(super) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.get().to_le_bytes());
        bytes[16..32].copy_from_slice(self.database.as_bytes());
        bytes[32..40].copy_from_slice(&self.file_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.state_end.to_le_bytes());
        let check = crc32fast::hash(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let (content, check) = bytes.split_at(CHECKED_BYTES);
        let mut reader = Reader::new(content);
        let intact = crc32fast::hash(content).to_le_bytes() == *check;
        if !intact || reader.u32() != Some(MAGIC) {
            return Err(HeaderFault::Damaged);
        }
        let version = reader.u16().ok_or(HeaderFault::Damaged)?;
        if version > VERSION {
            return Err(HeaderFault::Newer(version));
        }
        Self::decode_fields(&mut reader).ok_or(HeaderFault::Damaged)
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Option<Self> {
        let flags = reader.u16()?;
        let header = Self {
            number: FileNumber::from_encoded(reader.u64()?)?,
            database: DatabaseId::from_bytes(reader.array()?),
            file_bytes: reader.u64()?,
            state_end: reader.u64()?,
        };
        let zero = reader.rest().iter().all(|byte| *byte == 0);
        let aligned = |offset: u64| offset.is_multiple_of(long(FRAME_HEADER_BYTES));
        let bounded = (long(FILE_HEADER_BYTES)..=header.file_bytes).contains(&header.state_end)
            && header.file_bytes <= FILE_BYTES_MAX
            && aligned(header.file_bytes)
            && aligned(header.state_end);
        (flags == 0 && zero && bounded).then_some(header)
    }
}

/// The length of a frame with this much payload.
pub(crate) fn frame_bytes(payload_bytes: usize) -> usize {
    FRAME_HEADER_BYTES + (payload_bytes + 1).next_multiple_of(FRAME_HEADER_BYTES)
}

/// Appends `payload` as the frame at `offset`.
///
/// # Panics
/// When it is empty or longer than a file may be.
pub(crate) fn push_frame(out: &mut Vec<u8>, payload: &[u8], offset: u64, salt: Salt) {
    let bounded = !payload.is_empty() && long(payload.len()) < FILE_BYTES_MAX;
    assert!(bounded, "a payload of {} bytes is no edit", payload.len());
    let start = out.len();
    out.resize(start + FRAME_HEADER_BYTES, 0);
    out.extend_from_slice(payload);
    out.resize(start + frame_bytes(payload.len()), 0);
    let frame = &mut out[start..];
    if let Some(last) = frame.last_mut() {
        *last = END_MARK;
    }
    let (header, body) = frame.split_at_mut(FRAME_HEADER_BYTES);
    header[..4].copy_from_slice(&short(payload.len()).to_le_bytes());
    header[4..8].copy_from_slice(&salt.apply(crc32fast::hash(body), offset).to_le_bytes());
    let check = salt.apply(crc32fast::hash(&header[..12]), offset);
    header[12..].copy_from_slice(&check.to_le_bytes());
}

/// One frame of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) offset: u64,
    pub(super) payload: &'a [u8],
}

/// The frames of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frames<'a> {
    pub(super) whole: Vec<Frame<'a>>,
    /// The end of the last one.
    pub(super) end: usize,
    /// Whether there is something behind it that a crash may have left.
    pub(super) torn: bool,
}

/// Damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameFault {
    pub(super) offset: u64,
    pub(super) fault: &'static str,
}

/// Reads the frames of `file`, which begins with `header` and has its full length.
pub(super) fn read_frames<'a>(
    file: &'a [u8],
    header: &FileHeader,
) -> Result<Frames<'a>, FrameFault> {
    let salt = Salt::new(header.database, header.number);
    let mut found = Frames {
        end: FILE_HEADER_BYTES,
        ..Frames::default()
    };
    loop {
        let start = found.end;
        let tail = match frame_at(file, start, salt) {
            Place::Frame { payload, end } => {
                let offset = long(start);
                found.whole.push(Frame { offset, payload });
                found.end = end;
                continue;
            }
            Place::Damaged(fault) => return Err(damaged(start, fault)),
            Place::Unfinished => true,
            Place::Nothing => false,
        };
        // What was durable before CURRENT named the file cannot be torn by a crash.
        if long(start) < header.state_end {
            return Err(damaged(start, "a part of the state is missing"));
        }
        // No frame is written before the one before it is durable.
        if tail && is_followed(file, start + FRAME_HEADER_BYTES, salt) {
            return Err(damaged(start, "a frame in front of another one is missing"));
        }
        found.torn = tail;
        return Ok(found);
    }
}

/// What stands where a frame may begin.
enum Place<'a> {
    Frame {
        payload: &'a [u8],
        end: usize,
    },
    /// Nothing, up to the end of the file.
    Nothing,
    /// Parts of a frame of which others were never written.
    Unfinished,
    Damaged(&'static str),
}

fn frame_at(file: &[u8], start: usize, salt: Salt) -> Place<'_> {
    let rest = file.get(start..).unwrap_or_default();
    let Some((header, behind)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        return Place::Nothing;
    };
    if is_zero(header) {
        return if is_zero(behind) {
            Place::Nothing
        } else {
            Place::Unfinished
        };
    }
    let Some((payload_bytes, check)) = decode_header(header, long(start), salt) else {
        // A write that stopped within the header wrote nothing behind it.
        return if is_zero(behind) {
            Place::Unfinished
        } else {
            Place::Damaged("the header of a frame does not match its check")
        };
    };
    let body_bytes = frame_bytes(payload_bytes) - FRAME_HEADER_BYTES;
    let Some(body) = behind.get(..body_bytes) else {
        return Place::Damaged("a frame reaches beyond the file");
    };
    if salt.apply(crc32fast::hash(body), long(start)) == check {
        return Place::Frame {
            payload: &body[..payload_bytes],
            end: start + FRAME_HEADER_BYTES + body_bytes,
        };
    }
    if lacks_part(body, start + FRAME_HEADER_BYTES) {
        Place::Unfinished
    } else {
        Place::Damaged("a frame does not match its check")
    }
}

/// Length and check of the body that a frame's header tells of.
fn decode_header(
    header: &[u8; FRAME_HEADER_BYTES],
    offset: u64,
    salt: Salt,
) -> Option<(usize, u32)> {
    let (content, header_check) = header.split_last_chunk()?;
    let header_check = u32::from_le_bytes(*header_check);
    if salt.apply(crc32fast::hash(content), offset) != header_check {
        return None;
    }
    let mut reader = Reader::new(content);
    let (length, check, flags) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let bounded = length > 0 && u64::from(length) < FILE_BYTES_MAX && flags == 0;
    bounded.then(|| (index(u64::from(length)), check))
}

/// Whether a part of a frame's body was never written: its end, or all that lies in one sector.
fn lacks_part(body: &[u8], start: usize) -> bool {
    let first = (SECTOR_BYTES - start % SECTOR_BYTES).min(body.len());
    let (first, others) = body.split_at(first);
    let unwritten = |part: &[u8]| !part.is_empty() && is_zero(part);
    // The sector that the body begins in holds the header, so it was written.
    let first_unwritten = start.is_multiple_of(SECTOR_BYTES) && unwritten(first);
    body.last() == Some(&0) || first_unwritten || others.chunks(SECTOR_BYTES).any(unwritten)
}

/// Whether the header of a frame stands anywhere from `start` on.
fn is_followed(file: &[u8], start: usize, salt: Salt) -> bool {
    let places = file.get(start..).unwrap_or_default();
    let places = places.chunks_exact(FRAME_HEADER_BYTES).enumerate();
    places
        .filter_map(|(place, header)| Some((place, header.first_chunk()?)))
        .filter(|(_, header)| !is_zero(*header))
        .any(|(place, header)| {
            let offset = long(start + place * FRAME_HEADER_BYTES);
            decode_header(header, offset, salt).is_some()
        })
}

/// Compares sector by sector, as most of a file is zero.
fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; SECTOR_BYTES] = [0; SECTOR_BYTES];
    let mut pieces = bytes.chunks(SECTOR_BYTES);
    pieces.all(|piece| *piece == ZEROS[..piece.len()])
}

fn damaged(offset: usize, fault: &'static str) -> FrameFault {
    FrameFault {
        offset: long(offset),
        fault,
    }
}
