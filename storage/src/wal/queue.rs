//! What is submitted and not yet written: the active buffer and everything decided with it.
//!
//! Places are given out here, under one short lock: the buffer knows in which file and at which
//! offset it will be written, because the buffers before it are already of known length. Only
//! copying happens under the lock; checksums are made before it and frame headers after it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::format::{
    self, FILE_HEADER_BYTES, FRAME_BODY_BYTES_TARGET, FRAME_HEADER_BYTES, FileHeader, FrameHeader,
    FrameKind, Predecessor, RECORD_HEADER_BYTES, padded,
};
use super::record::{Head, Record, StoredVote};
use crate::codec::{long, short};
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::log::{Durable, LogNumber};
use crate::salt::Salt;

/// A buffer larger than this is given back to the system after use: a burst should not cost its
/// memory for ever. Twice the admission threshold, so that normal buffers are kept.
const KEPT_BUFFER_BYTES_MAX: usize = 16 << 20;

/// A place in the write-ahead log seen as one string of bytes over all files. Lives in memory
/// only; each open counts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lsn(pub(crate) u64);

/// Where a record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where it starts, header included.
    pub(crate) lsn: Lsn,
    /// The length of its payload.
    pub(crate) bytes: u32,
}

/// A log as of the last submission.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogHead {
    pub(crate) head: Head,
    /// Where the first entry present lies; of no meaning in an empty log.
    pub(crate) first_lsn: Lsn,
}

/// Whether submissions are taken.
#[derive(Clone, Debug)]
pub(crate) enum Status {
    Open,
    Poisoned(Arc<io::Error>),
    Closed,
}

impl Status {
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        match self {
            Self::Open => Ok(()),
            Self::Poisoned(error) => Err(StorageError::Poisoned(Arc::clone(error))),
            Self::Closed => Err(StorageError::Closed),
        }
    }
}

/// A frame of a buffer; its header is encoded when the buffer is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameMark {
    /// Where its header starts in the buffer.
    position: usize,
    kind: FrameKind,
    body_bytes: usize,
    record_count: u32,
    first_sequence: u64,
}

/// Invariants: `bytes` begins at `offset` of `file`; all lengths are multiples of the alignment;
/// `heads` is the state of every log after the last record.
pub(crate) struct Queue {
    database: DatabaseId,
    file_bytes: u64,
    pub(crate) status: Status,
    bytes: Vec<u8>,
    frames: Vec<FrameMark>,
    callbacks: Vec<Durable>,
    spare: Vec<u8>,
    /// How much of the buffer is the opening of a new file, which needs no write of its own.
    opening_bytes: usize,
    file: FileNumber,
    next_file: FileNumber,
    salt: Salt,
    predecessor: Option<Predecessor>,
    offset: u64,
    /// The place of the file's first byte.
    file_lsn: u64,
    next_sequence: u64,
    pub(crate) sync_wanted: bool,
    votes_changed: bool,
    /// Whether the flusher will look at the queue by itself soon.
    pub(crate) timer_armed: bool,
    heads: BTreeMap<LogNumber, LogHead>,
}

/// Where a queue starts after recovery.
pub(crate) struct QueueStart {
    pub(crate) database: DatabaseId,
    pub(crate) file_bytes: u64,
    pub(crate) file: FileNumber,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) file_lsn: Lsn,
    pub(crate) next_sequence: u64,
    pub(crate) heads: BTreeMap<LogNumber, LogHead>,
}

impl Queue {
    pub(crate) fn new(start: QueueStart) -> Self {
        let mut queue = Self {
            database: start.database,
            file_bytes: start.file_bytes,
            status: Status::Open,
            bytes: Vec::new(),
            frames: Vec::new(),
            callbacks: Vec::new(),
            spare: Vec::new(),
            opening_bytes: 0,
            file: start.file,
            next_file: start.file,
            salt: Salt::new(start.database, start.file),
            predecessor: start.predecessor,
            offset: 0,
            file_lsn: start.file_lsn.0,
            next_sequence: start.next_sequence,
            sync_wanted: false,
            votes_changed: false,
            timer_armed: false,
            heads: start.heads,
        };
        queue.begin_file();
        queue
    }

    /// The file being filled.
    pub(crate) fn file(&self) -> FileNumber {
        self.file
    }

    /// Bytes that wait to be written.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes.len() - self.opening_bytes
    }

    /// The state of `log` for the head of the next file. The caller changes it together with the
    /// record that it pushes.
    pub(crate) fn head(&mut self, log: LogNumber) -> &mut LogHead {
        self.heads.entry(log).or_default()
    }

    /// Queues an entry whose payload has the checksum `check`.
    pub(crate) fn push_append(&mut self, prefix: &[u8], payload: &[u8], check: u32) -> Place {
        self.push_parts([prefix, payload], check)
    }

    /// Queues any other record.
    pub(crate) fn push(&mut self, log: LogNumber, record: &Record<'_>) -> Place {
        let encoded = record.encode(log);
        if matches!(record, Record::PutVote(_)) {
            self.votes_changed = true;
        }
        let parts = [encoded.as_slice(), &[]];
        self.push_parts(parts, format::record_check(parts))
    }

    /// Runs `callback` once all that was pushed before is durable.
    pub(crate) fn on_durable(&mut self, callback: Durable) {
        self.callbacks.push(callback);
        self.sync_wanted = true;
    }

    /// Takes all that waits. The file is sealed and the next one begun when it is full.
    pub(crate) fn take(&mut self) -> Group {
        let end = self.offset + long(self.bytes.len() + FRAME_HEADER_BYTES);
        let sealed = self
            .frames
            .last()
            .is_some_and(|frame| frame.kind == FrameKind::Seal);
        let full = end >= self.file_bytes && !self.bytes.is_empty() && !sealed;
        let waiting_bytes = self.waiting_bytes();
        if full {
            self.mark_frame(FrameKind::Seal);
        }
        let mut group = Group {
            file: self.file,
            salt: self.salt,
            offset: self.offset,
            file_lsn: self.file_lsn,
            has_predecessor: self.predecessor.is_some(),
            waiting_bytes,
            bytes: std::mem::replace(&mut self.bytes, std::mem::take(&mut self.spare)),
            frames: std::mem::take(&mut self.frames),
            callbacks: std::mem::take(&mut self.callbacks),
            // A seal must be durable before the next file begins.
            sync: std::mem::take(&mut self.sync_wanted) || full,
            votes: None,
            live_from: self.live_from(),
            next_file: self.next_file,
        };
        if std::mem::take(&mut self.votes_changed) {
            group.votes = Some(self.votes());
            group.sync = true;
        }
        self.offset += long(group.bytes.len());
        self.opening_bytes = 0;
        if full {
            self.begin_next_file();
            group.next_file = self.next_file;
        }
        group
    }

    /// Adds a frame without records, whose header tells what was synced before it. Nothing else
    /// may wait, so that the frame counts as added by the log itself.
    pub(crate) fn push_witness(&mut self) {
        debug_assert_eq!(self.waiting_bytes(), 0, "a witness goes alone");
        self.mark_frame(FrameKind::Data);
        self.opening_bytes = self.bytes.len();
    }

    /// Adds the last frame of the current file; nothing may follow.
    pub(crate) fn push_seal(&mut self) {
        self.mark_frame(FrameKind::Seal);
    }

    /// Whether the current file has content that is not only its opening.
    pub(crate) fn file_is_begun(&self) -> bool {
        self.offset > 0
    }

    /// Takes the callbacks that wait, when nothing will ever be written for them.
    pub(crate) fn take_callbacks(&mut self) -> Vec<Durable> {
        std::mem::take(&mut self.callbacks)
    }

    /// Takes a written buffer back for reuse.
    pub(crate) fn give_back(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= KEPT_BUFFER_BYTES_MAX && bytes.capacity() > self.spare.capacity() {
            bytes.clear();
            self.spare = bytes;
        }
    }

    pub(crate) fn votes(&self) -> Vec<(LogNumber, StoredVote)> {
        let with_vote = self.heads.iter().filter_map(|(log, known)| {
            let vote = known.head.vote.clone()?;
            Some((*log, vote))
        });
        with_vote.collect()
    }

    fn push_parts(&mut self, parts: [&[u8]; 2], check: u32) -> Place {
        let payload_bytes = parts[0].len() + parts[1].len();
        let record_bytes = RECORD_HEADER_BYTES + padded(payload_bytes);
        let fits = self.frames.last().is_some_and(|frame| {
            frame.kind == FrameKind::Data
                && frame.body_bytes + record_bytes <= FRAME_BODY_BYTES_TARGET
        });
        if !fits {
            self.mark_frame(FrameKind::Data);
        }
        let offset = self.offset + long(self.bytes.len());
        format::push_record(&mut self.bytes, parts, check, self.salt, offset);
        let frame = self
            .frames
            .last_mut()
            .expect("a frame was just seen or made");
        frame.body_bytes += record_bytes;
        frame.record_count += 1;
        self.next_sequence += 1;
        Place {
            lsn: Lsn(self.file_lsn + offset),
            bytes: short(payload_bytes),
        }
    }

    fn mark_frame(&mut self, kind: FrameKind) {
        self.frames.push(FrameMark {
            position: self.bytes.len(),
            kind,
            body_bytes: 0,
            record_count: 0,
            first_sequence: self.next_sequence,
        });
        self.bytes.resize(self.bytes.len() + FRAME_HEADER_BYTES, 0);
    }

    fn begin_next_file(&mut self) {
        self.predecessor = Some(Predecessor {
            number: self.file,
            length: self.offset,
            last_sequence: self.next_sequence - 1,
        });
        self.file = self.next_file;
        self.file_lsn += self.offset;
        self.offset = 0;
        self.salt = Salt::new(self.database, self.file);
        self.begin_file();
    }

    /// Puts header and heads of a new file into the empty buffer.
    fn begin_file(&mut self) {
        self.next_file = self.file.next();
        let predecessor = self.predecessor;
        let header = FileHeader {
            number: self.file,
            database: self.database,
            predecessor,
        };
        self.bytes.extend_from_slice(&header.encode());
        let heads: Vec<_> = self
            .heads
            .iter()
            .map(|(log, known)| (*log, known.head.clone()))
            .collect();
        for (log, head) in heads {
            self.push(log, &Record::Head(head));
        }
        self.opening_bytes = self.bytes.len();
    }

    /// The first place that some log still needs, at most the start of the current file.
    fn live_from(&self) -> Lsn {
        let with_entries = self
            .heads
            .values()
            .filter(|known| known.head.entries.is_some());
        let first = with_entries.map(|known| known.first_lsn).min();
        first.unwrap_or(Lsn(u64::MAX)).min(Lsn(self.file_lsn))
    }
}

/// What one write and at most one sync will make durable.
pub(crate) struct Group {
    pub(crate) file: FileNumber,
    pub(crate) salt: Salt,
    pub(crate) offset: u64,
    pub(crate) file_lsn: u64,
    has_predecessor: bool,
    /// How many of its bytes were submitted, not added by the log itself.
    pub(crate) waiting_bytes: usize,
    pub(crate) bytes: Vec<u8>,
    frames: Vec<FrameMark>,
    pub(crate) callbacks: Vec<Durable>,
    pub(crate) sync: bool,
    /// All votes, when one of them changed.
    pub(crate) votes: Option<Vec<(LogNumber, StoredVote)>>,
    /// Files that end before this place are not needed once the group is durable.
    pub(crate) live_from: Lsn,
    /// The file that will be needed after the current one.
    pub(crate) next_file: FileNumber,
}

impl Group {
    /// Fills in the frame headers. `synced_upto` is the length of the file's durable part.
    pub(crate) fn encode_frames(&mut self, synced_upto: u64) {
        for mark in &self.frames {
            let header = FrameHeader {
                kind: mark.kind,
                body_bytes: short(mark.body_bytes),
                record_count: mark.record_count,
                first_sequence: mark.first_sequence,
                synced_upto,
                predecessor_durable: self.has_predecessor,
            };
            let offset = self.offset + long(mark.position);
            let encoded = header.encode(self.salt, offset);
            self.bytes[mark.position..mark.position + FRAME_HEADER_BYTES].copy_from_slice(&encoded);
        }
    }

    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Where the file ends once the group is written.
    pub(crate) fn end_offset(&self) -> u64 {
        self.offset + long(self.bytes.len())
    }

    /// The place after the group.
    pub(crate) fn end_lsn(&self) -> Lsn {
        Lsn(self.file_lsn + self.end_offset())
    }
}

// The opening of a file is written together with its first group, and always fits one buffer.
const _: () = assert!(FILE_HEADER_BYTES < FRAME_BODY_BYTES_TARGET);
