//! What a client may ask of a node.
//!
//! The types borrow their bytes: on the node from the read buffer, in the client from the caller.
//! `decode` and `encode` turn them from and into frames, `check` holds the limits of both.

mod check;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::options::{ReadOptions, WriteOptions};
use crate::{
    Hello, Opcode, SCAN_PAGE_BYTES_DEFAULT, SCAN_PAGE_BYTES_MAX, SCAN_PAGE_ENTRIES_DEFAULT,
    SCAN_PAGE_ENTRIES_MAX,
};

pub use decode::{Decode, decode_request};
pub use encode::encode_request;

/// What a client asks; everything borrows from the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Says who speaks; the first frame of a connection.
    Hello(Hello<'a>),
    /// Asks for the same bytes back.
    Echo {
        /// The bytes.
        value: &'a [u8],
    },
    /// Sets a key.
    Put {
        /// Number of the logical database.
        database: u8,
        /// The key.
        key: &'a [u8],
        /// Its new value; may be empty.
        value: &'a [u8],
        /// Further options.
        options: WriteOptions,
    },
    /// Reads a key.
    Get {
        /// Number of the logical database.
        database: u8,
        /// The key.
        key: &'a [u8],
        /// Further options.
        options: ReadOptions,
    },
    /// Removes a key.
    Delete {
        /// Number of the logical database.
        database: u8,
        /// The key.
        key: &'a [u8],
        /// Further options.
        options: WriteOptions,
    },
    /// Reads one page of a range.
    Scan(Scan<'a>),
    /// Asks for the node's view of the cluster; the reply's value is a JSON object.
    Status,
}

impl Request<'_> {
    /// The opcode of this request.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Hello(_) => Opcode::Hello,
            Self::Echo { .. } => Opcode::Echo,
            Self::Put { .. } => Opcode::Put,
            Self::Get { .. } => Opcode::Get,
            Self::Delete { .. } => Opcode::Delete,
            Self::Scan(_) => Opcode::Scan,
            Self::Status => Opcode::Status,
        }
    }

    /// Whether the request may change data, so that executing it twice may matter.
    pub fn is_write(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Delete { .. })
    }

    /// The same request, telling the node that the sender waits for `deadline`. Requests without
    /// options stay as they are.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        match &mut self {
            Self::Put { options, .. } | Self::Delete { options, .. } => {
                options.deadline = Some(deadline);
            }
            Self::Get { options, .. } => options.deadline = Some(deadline),
            Self::Scan(scan) => scan.options.deadline = Some(deadline),
            Self::Hello(_) | Self::Echo { .. } | Self::Status => {}
        }
        self
    }
}

/// Where the keys of a scan end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanBound<'a> {
    /// With the database.
    #[default]
    Unbounded,
    /// Before this key; not empty.
    Before(&'a [u8]),
    /// With the last key that begins with these bytes; they are not empty.
    Prefix(&'a [u8]),
}

/// A page of keys in order.
///
/// The range is `start <= key`, limited by `bound`, whatever the direction; `reverse` only turns
/// the order around. Invariants: a cursor stands in for the end from which the scan comes, so with
/// one `start` is empty, or in reverse `bound` is [`ScanBound::Unbounded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Number of the logical database.
    pub database: u8,
    /// Lowest key, included; empty is the first key of the database.
    pub start: &'a [u8],
    /// Upper end of the range.
    pub bound: ScanBound<'a>,
    /// Where an earlier page of the same scan ended, as its reply said; opaque to clients.
    pub cursor: Option<&'a [u8]>,
    /// The most entries wanted in the page.
    pub limit: Option<u32>,
    /// The most bytes wanted in the page, as encoded; one entry is returned even if longer.
    pub bytes: Option<u32>,
    /// From the last key to the first.
    pub reverse: bool,
    /// Without values.
    pub keys_only: bool,
    /// Further options.
    pub options: ReadOptions,
}

impl Scan<'_> {
    /// Entries that a page may have: what the request says within what the protocol allows.
    pub fn page_entries_max(&self) -> usize {
        let entries = self.limit.unwrap_or(SCAN_PAGE_ENTRIES_DEFAULT);
        to_usize(entries.clamp(1, SCAN_PAGE_ENTRIES_MAX))
    }

    /// Bytes that a page may have: what the request says within what the protocol allows.
    pub fn page_bytes_max(&self) -> usize {
        let bytes = self.bytes.unwrap_or(SCAN_PAGE_BYTES_DEFAULT);
        to_usize(bytes.min(SCAN_PAGE_BYTES_MAX))
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
