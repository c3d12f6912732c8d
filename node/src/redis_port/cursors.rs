//! Where scans stand: the numbers that clients hold, and the keys behind them.
//!
//! ```text
//! cursor: node u16 | entry u48          entry: low 20 bits of the boot | counter u28
//! ```
//!
//! A cursor of SCAN is a number, and a key does not fit into one; so the node that served a page
//! keeps the last key of it under an entry, and any other node asks it. An entry that is gone, with
//! its node or because newer ones took its place, makes the scan begin again: clients may see keys
//! twice, but miss none. Numbers are not used again within 2^20 starts of a node or 2^28 pages, so
//! that an old cursor never means another scan.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kelp_raft::{Boot, EnvelopeError, GroupId, NODE_KIND_FIRST, NodeId, PeerReply, PeerRequest};
use kelp_seams::WallMillis;

/// Kind of the question where a scan stands.
pub(crate) const CURSOR: u8 = NODE_KIND_FIRST + 2;

/// Entries that are kept: a scan that pauses while others take so many pages begins again.
const ENTRY_COUNT_MAX: usize = 65_536;

/// Bytes of keys that are kept.
const ENTRY_BYTES_MAX: usize = 16 << 20;

const ENTRY_BITS: u32 = 48;
const COUNTER_BITS: u32 = 28;
const BOOT_MASK: u64 = (1 << (ENTRY_BITS - COUNTER_BITS)) - 1;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;
const ENTRY_MASK: u64 = (1 << ENTRY_BITS) - 1;

/// Where a scan stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) database: u8,
    /// The last key that was looked at.
    pub(crate) key: Bytes,
}

impl Position {
    /// Database, key.
    pub(super) fn encode(&self) -> BytesMut {
        let mut out = BytesMut::with_capacity(1 + self.key.len());
        out.put_u8(self.database);
        out.put_slice(&self.key);
        out
    }

    /// Reads what [`encode`](Self::encode) wrote; a key is never empty.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        let database = bytes.try_get_u8().ok()?;
        (!bytes.is_empty()).then_some(Self {
            database,
            key: bytes,
        })
    }
}

/// A cursor as clients hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) node: NodeId,
    pub(crate) entry: u64,
}

impl Cursor {
    pub(crate) fn number(self) -> u64 {
        (u64::from(self.node.get()) << ENTRY_BITS) | (self.entry & ENTRY_MASK)
    }

    pub(crate) fn from_number(number: u64) -> Self {
        let node = u16::try_from(number >> ENTRY_BITS).expect("16 bits are left");
        Self {
            node: NodeId::new(node),
            entry: number & ENTRY_MASK,
        }
    }
}

/// The scans that this node knows.
pub(crate) struct Cursors {
    node: NodeId,
    /// The upper bits of all entries.
    base: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// The counter of the front.
    first: u64,
    positions: VecDeque<Position>,
    bytes: usize,
}

impl Cursors {
    pub(crate) fn new(node: NodeId, boot: Boot) -> Self {
        Self {
            node,
            base: (boot.get() & BOOT_MASK) << COUNTER_BITS,
            table: Mutex::default(),
        }
    }

    /// Keeps a position and returns the cursor that leads back to it.
    pub(crate) fn keep(&self, position: Position) -> Cursor {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.bytes += position.key.len();
        table.positions.push_back(position);
        let count = u64::try_from(table.positions.len()).expect("the table is bounded");
        let counter = table.first + count - 1;
        while table.positions.len() > ENTRY_COUNT_MAX || table.bytes > ENTRY_BYTES_MAX {
            let oldest = table.positions.pop_front();
            table.bytes -= oldest.map_or(0, |oldest| oldest.key.len());
            table.first += 1;
        }
        Cursor {
            node: self.node,
            entry: self.base | (counter & COUNTER_MASK),
        }
    }

    /// The position behind an entry of this node.
    pub(crate) fn find(&self, entry: u64) -> Option<Position> {
        if entry & !COUNTER_MASK != self.base {
            return None;
        }
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // The counter has gone on beyond the bits that an entry has of it.
        let behind = (entry & COUNTER_MASK).wrapping_sub(table.first) & COUNTER_MASK;
        table.positions.get(usize::try_from(behind).ok()?).cloned()
    }
}

/// Bytes that are not a message of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CursorError {
    #[error("malformed cursor message")]
    Malformed,
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

pub(super) fn encode_request(group: GroupId, entry: u64) -> Bytes {
    PeerRequest {
        kind: CURSOR,
        group,
        body: Bytes::copy_from_slice(&entry.to_be_bytes()),
    }
    .encode()
}

/// The entry that is asked for.
pub(crate) fn decode_request(body: &[u8]) -> Result<u64, CursorError> {
    let entry = <[u8; 8]>::try_from(body).map_err(|_| CursorError::Malformed)?;
    Ok(u64::from_be_bytes(entry))
}

pub(crate) fn encode_reply(wall: WallMillis, position: Option<&Position>) -> Bytes {
    let body = position.map(Position::encode).unwrap_or_default();
    PeerReply {
        kind: CURSOR,
        wall,
        body: body.freeze(),
    }
    .encode()
}

pub(super) fn decode_reply(reply: Bytes) -> Result<Option<Position>, CursorError> {
    let PeerReply { kind, body, .. } = PeerReply::decode(reply)?;
    if kind != CURSOR {
        return Err(CursorError::Malformed);
    }
    if body.is_empty() {
        return Ok(None);
    }
    Position::decode(body)
        .map(Some)
        .ok_or(CursorError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(number: usize) -> Position {
        Position {
            database: 3,
            key: Bytes::from(number.to_string()),
        }
    }

    fn cursors(boot: u64) -> Cursors {
        Cursors::new(NodeId::new(2), Boot::new(boot))
    }

    #[test]
    fn a_cursor_leads_back_to_its_position_as_often_as_asked() {
        let cursors = cursors(5);
        let kept = [0, 1, 2].map(|number| cursors.keep(position(number)));
        for (number, cursor) in kept.into_iter().enumerate() {
            assert_eq!(Cursor::from_number(cursor.number()), cursor);
            assert_ne!(cursor.number(), 0);
            assert_eq!(cursors.find(cursor.entry), Some(position(number)));
        }
        assert_eq!(cursors.find(kept[2].entry + 1), None);
    }

    #[test]
    fn the_oldest_entries_go_and_are_not_taken_for_others() {
        let cursors = cursors(5);
        let first = cursors.keep(position(0));
        for number in 1..=ENTRY_COUNT_MAX {
            cursors.keep(position(number));
        }
        assert_eq!(cursors.find(first.entry), None);
        assert_eq!(cursors.find(first.entry + 1), Some(position(1)));
        let large = Position {
            database: 0,
            key: Bytes::from(vec![0; ENTRY_BYTES_MAX]),
        };
        let large_cursor = cursors.keep(large.clone());
        assert_eq!(cursors.find(first.entry + 1), None);
        assert_eq!(cursors.find(large_cursor.entry), Some(large));
    }

    #[test]
    fn an_entry_of_an_earlier_start_is_unknown() {
        let before = cursors(5).keep(position(0));
        let after = cursors(6);
        after.keep(position(9));
        assert_eq!(after.find(before.entry), None);
    }

    #[test]
    fn question_and_reply_read_back() {
        let request = PeerRequest::decode(encode_request(GroupId::new(1), 7)).unwrap();
        assert_eq!(
            (request.kind, decode_request(&request.body)),
            (CURSOR, Ok(7))
        );
        assert_eq!(decode_request(b"short"), Err(CursorError::Malformed));
        for position in [None, Some(position(4))] {
            let reply = encode_reply(WallMillis::new(1), position.as_ref());
            assert_eq!(decode_reply(reply), Ok(position));
        }
    }
}
