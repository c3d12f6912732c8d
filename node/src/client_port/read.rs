//! Serving a read from a view of the state: a get, or one page of a scan.
//!
//! A page leaves as several frames, so that neither side holds more than it must. Its last frame
//! carries, in the key field, the cursor to go on from; an empty key means that the range is done.
//! The cursor is opaque to clients:
//!
//! ```text
//! version u8 | group u32 | epoch u64 | prefix bytes u16 | last key
//! ```
//!
//! The prefix bytes say how much of the last key every key of the scan begins with; a scan in
//! reverse, whose cursor takes the place of its prefix, has its lower end from them.

use std::ops::Bound;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kelp_raft::{CachedRecord, Record, ScanRange, StateError, StateView};
use kelp_wire::{
    Response, ResponseFields, Revision, SCAN_ENTRY_HEADER_BYTES, Scan, ScanBound, ScanEntry,
    Status, encode_response, key_after_prefix,
};

use super::session::RequestMark;

/// Entries are collected into frames of about this size.
const FRAME_BYTES_TARGET: usize = 256 << 10;

const CURSOR_VERSION: u8 = 1;
const CURSOR_HEAD_BYTES: usize = 1 + 4 + 8 + 2;

/// The one Raft group that there is today.
const GROUP: u32 = 0;

/// The range map has one range and has never changed.
const EPOCH: u64 = 0;

/// What a read asks for.
pub(super) enum Read {
    /// One key.
    Get {
        /// Database of the key.
        database: u8,
        /// The user key.
        key: Bytes,
    },
    /// A page of an ordered range.
    Scan(ScanJob),
}

/// One page of a scan.
pub(super) struct ScanJob {
    range: ScanRange,
    entry_count_max: usize,
    bytes_max: usize,
    keys_only: bool,
    /// Bytes that every key of the range begins with.
    prefix_bytes: u16,
}

impl Read {
    /// Appends the reply to `out` if memory alone knows it; none, and nothing appended, when
    /// [`Read::serve`] has to find out where blocking harms nobody.
    ///
    /// # Errors
    /// The storage engine failed; nothing was appended.
    pub(super) fn serve_cached(
        &self,
        view: &StateView,
        mark: RequestMark,
        out: &mut BytesMut,
    ) -> Result<Option<Status>, StateError> {
        match self {
            Self::Get { database, key } => Ok(match view.get_cached(*database, key)? {
                CachedRecord::Hit(record) => Some(get(record.as_ref(), mark, out)),
                CachedRecord::NeedsDisk => None,
            }),
            Self::Scan(job) if view.is_in_memory() => job.serve(view, mark, out).map(Some),
            Self::Scan(_) => Ok(None),
        }
    }

    /// Appends the reply to `out`; may read the disk.
    ///
    /// # Errors
    /// The storage engine failed; nothing was appended.
    pub(super) fn serve(
        &self,
        view: &StateView,
        mark: RequestMark,
        out: &mut BytesMut,
    ) -> Result<Status, StateError> {
        match self {
            Self::Get { database, key } => Ok(get(view.get(*database, key)?.as_ref(), mark, out)),
            Self::Scan(job) => job.serve(view, mark, out),
        }
    }
}

fn get(record: Option<&Record>, mark: RequestMark, out: &mut BytesMut) -> Status {
    let Some(record) = record else {
        encode_response(out, &Response::new(mark.id, mark.opcode, Status::NotFound));
        return Status::NotFound;
    };
    let fields = ResponseFields::with_revision(Revision::new(record.revision.get()));
    let found = Response {
        fields,
        value: &record.value,
        ..Response::new(mark.id, mark.opcode, Status::Ok)
    };
    encode_response(out, &found);
    Status::Ok
}

impl ScanJob {
    /// Turns the request into a range of the state.
    ///
    /// # Errors
    /// What is wrong with the cursor or the bounds, in words for the client.
    pub(super) fn new(scan: &Scan<'_>) -> Result<Self, &'static str> {
        let Bounds {
            start,
            end,
            prefix_bytes,
        } = Bounds::of(scan)?;
        Ok(Self {
            range: ScanRange {
                database: scan.database,
                start,
                end,
                reverse: scan.reverse,
            },
            entry_count_max: scan.page_entries_max(),
            bytes_max: scan.page_bytes_max(),
            keys_only: scan.keys_only,
            prefix_bytes,
        })
    }

    fn serve(
        &self,
        view: &StateView,
        mark: RequestMark,
        out: &mut BytesMut,
    ) -> Result<Status, StateError> {
        let start = out.len();
        let served = self.stream(view, mark, out);
        if served.is_err() {
            out.truncate(start);
        }
        served.map(|()| Status::Ok)
    }

    fn stream(
        &self,
        view: &StateView,
        mark: RequestMark,
        out: &mut BytesMut,
    ) -> Result<(), StateError> {
        let mut frame = BytesMut::new();
        let mut last_key = Bytes::new();
        let (mut entry_count, mut bytes) = (0, 0);
        let mut cursor = Bytes::new();
        for found in view.scan(self.range.clone()) {
            let (key, record) = found?;
            let entry = ScanEntry {
                key: &key,
                value: if self.keys_only { &[] } else { &record.value },
                revision: Revision::new(record.revision.get()),
            };
            let full = entry_count >= self.entry_count_max
                || bytes + entry.encoded_bytes() > self.bytes_max;
            if full && entry_count > 0 {
                cursor = Cursor {
                    prefix_bytes: self.prefix_bytes,
                    last_key: &last_key,
                }
                .encode();
                break;
            }
            if !frame.is_empty() && frame.len() + entry.encoded_bytes() > FRAME_BYTES_TARGET {
                put_frame(out, mark, &frame, None);
                frame.clear();
            }
            entry.encode(&mut frame);
            entry_count += 1;
            bytes += SCAN_ENTRY_HEADER_BYTES + key.len() + entry.value.len();
            last_key = key;
        }
        put_frame(out, mark, &frame, Some(&cursor));
        Ok(())
    }
}

/// Appends one frame of a page; the last one has a cursor, which is empty at the end of the range.
fn put_frame(out: &mut BytesMut, mark: RequestMark, entries: &[u8], last: Option<&[u8]>) {
    let response = Response {
        more: last.is_none(),
        key: last.unwrap_or_default(),
        value: entries,
        ..Response::new(mark.id, mark.opcode, Status::Ok)
    };
    encode_response(out, &response);
}

struct Bounds {
    start: Bound<Bytes>,
    end: Bound<Bytes>,
    prefix_bytes: u16,
}

impl Bounds {
    fn of(scan: &Scan<'_>) -> Result<Self, &'static str> {
        let mut bounds = Self {
            start: Bound::Unbounded,
            end: Bound::Unbounded,
            prefix_bytes: 0,
        };
        if !scan.start.is_empty() {
            bounds.start = Bound::Included(Bytes::copy_from_slice(scan.start));
        }
        match scan.bound {
            ScanBound::Unbounded => {}
            ScanBound::Before(end) => {
                if scan.cursor.is_none() && scan.start > end {
                    return Err("the end of the scan lies before its start");
                }
                bounds.end = Bound::Excluded(Bytes::copy_from_slice(end));
            }
            ScanBound::Prefix(prefix) => bounds.narrow_to_prefix(scan.start, prefix)?,
        }
        if let Some(cursor) = scan.cursor {
            let cursor = Cursor::decode(cursor)
                .ok_or("the cursor is not one of this cluster's; start the scan again")?;
            bounds.resume(scan, &cursor)?;
        }
        Ok(bounds)
    }

    fn narrow_to_prefix(&mut self, start: &[u8], prefix: &[u8]) -> Result<(), &'static str> {
        self.prefix_bytes = u16::try_from(prefix.len()).map_err(|_| "the prefix is too long")?;
        if start < prefix {
            self.start = Bound::Included(Bytes::copy_from_slice(prefix));
        }
        self.end = key_after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Ok(())
    }

    fn resume(&mut self, scan: &Scan<'_>, cursor: &Cursor<'_>) -> Result<(), &'static str> {
        let last_key = Bytes::copy_from_slice(cursor.last_key);
        if scan.reverse {
            let prefix = &cursor.last_key[..usize::from(cursor.prefix_bytes)];
            self.narrow_to_prefix(scan.start, prefix)?;
            self.end = Bound::Excluded(last_key);
        } else {
            self.start = Bound::Excluded(last_key);
        }
        Ok(())
    }
}

/// Invariants: `prefix_bytes` is at most the length of `last_key`, which is not empty.
struct Cursor<'a> {
    prefix_bytes: u16,
    last_key: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(CURSOR_HEAD_BYTES + self.last_key.len());
        bytes.put_u8(CURSOR_VERSION);
        bytes.put_u32(GROUP);
        bytes.put_u64(EPOCH);
        bytes.put_u16(self.prefix_bytes);
        bytes.put_slice(self.last_key);
        bytes.freeze()
    }

    fn decode(mut bytes: &'a [u8]) -> Option<Self> {
        if bytes.len() <= CURSOR_HEAD_BYTES {
            return None;
        }
        let head = (bytes.get_u8(), bytes.get_u32(), bytes.get_u64());
        let prefix_bytes = bytes.get_u16();
        let valid =
            head == (CURSOR_VERSION, GROUP, EPOCH) && usize::from(prefix_bytes) <= bytes.len();
        valid.then_some(Self {
            prefix_bytes,
            last_key: bytes,
        })
    }
}
