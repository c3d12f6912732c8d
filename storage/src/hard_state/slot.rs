//! The bytes of one slot of HARDSTATE. Pure; format page: `docs/formats/hard_state.md`.

use bytes::Bytes;

use crate::codec::{Reader, index, long};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::log::LogNumber;
use crate::wal::record::{StoredVote, VOTE_BYTES_MAX};

/// One page of the file system, so that the two slots never share one.
pub(super) const SLOT_BYTES: usize = 4096;
/// The newest version of the format.
pub(super) const VERSION: u16 = 1;
/// How many votes fit a slot, and so how many logs a database may have.
pub(crate) const VOTES_MAX: usize = 48;

/// Beyond any count of writes and starts, and far enough from the end of the range that adding to it
/// is safe.
pub(super) const COUNT_MAX: u64 = 1 << 62;

const MAGIC: u32 = u32::from_le_bytes(*b"KHRD");
const HEADER_BYTES: usize = 56;
const VOTE_HEADER_BYTES: usize = 16;
const CHECK_AT: usize = SLOT_BYTES - 4;

const _: () = assert!(HEADER_BYTES + VOTES_MAX * (VOTE_HEADER_BYTES + VOTE_BYTES_MAX) <= CHECK_AT);

/// What a slot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// 1 for the first slot ever written, then one more for each.
    pub(super) sequence: u64,
    pub(super) boot: u64,
    pub(super) database: DatabaseId,
    /// The file of the write-ahead log that was being written, 0 before the first vote.
    pub(super) wal_file: FileNumber,
    /// How much of it was durable.
    pub(super) wal_synced: u64,
    pub(super) votes: Vec<(LogNumber, StoredVote)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotFault {
    Damaged,
    Newer(u16),
}

impl Slot {
    pub(super) const fn empty(database: DatabaseId) -> Self {
        Self {
            sequence: 0,
            boot: 0,
            database,
            wal_file: FileNumber::new(0),
            wal_synced: 0,
            votes: Vec::new(),
        }
    }

    /// Where in the file the slot belongs.
    pub(super) const fn offset(&self) -> u64 {
        (self.sequence % 2) * SLOT_BYTES as u64
    }

    /// # Panics
    /// With more votes than fit: the count of logs is checked when a log is made.
    pub(super) fn encode(&self) -> Vec<u8> {
        assert!(
            self.votes.len() <= VOTES_MAX,
            "{} votes do not fit a slot",
            self.votes.len()
        );
        let vote_count = u16::try_from(self.votes.len()).expect("checked just above");
        let mut bytes = Vec::with_capacity(SLOT_BYTES);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&vote_count.to_le_bytes());
        for field in [
            self.sequence,
            self.boot,
            self.wal_file.get(),
            self.wal_synced,
        ] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(self.database.as_bytes());
        for (log, stored) in &self.votes {
            let length = u32::try_from(stored.vote.len()).expect("put_vote checks the length");
            bytes.extend_from_slice(&log.get().to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&stored.sequence.to_le_bytes());
            bytes.extend_from_slice(&stored.vote);
        }
        bytes.resize(CHECK_AT, 0);
        let check = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        debug_assert_eq!(long(bytes.len()), long(SLOT_BYTES));
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, SlotFault> {
        let (content, check) = bytes.split_last_chunk().ok_or(SlotFault::Damaged)?;
        let intact = crc32fast::hash(content) == u32::from_le_bytes(*check);
        let mut reader = Reader::new(content);
        if bytes.len() != SLOT_BYTES || !intact || reader.u32() != Some(MAGIC) {
            return Err(SlotFault::Damaged);
        }
        let version = reader.u16().ok_or(SlotFault::Damaged)?;
        if version > VERSION {
            return Err(SlotFault::Newer(version));
        }
        Self::decode_fields(&mut reader).ok_or(SlotFault::Damaged)
    }

    fn decode_fields(reader: &mut Reader<'_>) -> Option<Self> {
        let vote_count = reader.u16()?;
        let (sequence, boot) = (reader.u64()?, reader.u64()?);
        let (wal_file, wal_synced) = (FileNumber::new(reader.u64()?), reader.u64()?);
        let database = DatabaseId::from_bytes(reader.array()?);
        if sequence > COUNT_MAX || boot > COUNT_MAX || usize::from(vote_count) > VOTES_MAX {
            return None;
        }
        let mut votes = Vec::new();
        for _ in 0..vote_count {
            let log = LogNumber::new(reader.u32()?);
            let length = index(u64::from(reader.u32()?));
            let sequence = reader.u64()?;
            // The last number of the range would have no successor.
            if length > VOTE_BYTES_MAX || sequence == 0 || sequence == u64::MAX {
                return None;
            }
            let vote = Bytes::copy_from_slice(reader.take(length)?);
            votes.push((log, StoredVote { sequence, vote }));
        }
        Some(Self {
            sequence,
            boot,
            database,
            wal_file,
            wal_synced,
            votes,
        })
    }
}
