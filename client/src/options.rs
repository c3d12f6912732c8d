//! Options of single calls.

use std::time::Duration;

use bytes::Bytes;
use kelp_wire::{Consistency, SessionToken};

/// Options of one call; the default suits most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// Number of the logical database; 0 by default.
    pub database: u8,
    /// How long the call may take, all attempts together; the client's by default.
    pub timeout: Option<Duration>,
    /// How fresh a read must be; linearizable by default. Writes ignore it.
    pub consistency: Consistency,
    /// Lowest point of the log that a read must include; writes ignore it.
    pub token: Option<SessionToken>,
}

/// Which keys a scan visits, in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScanRange {
    /// Every key.
    #[default]
    All,
    /// The keys that begin with these bytes; empty means every key.
    Prefix(Bytes),
    /// The keys from `start`, included, to `end`, excluded.
    Between {
        /// Lowest key; empty is the first.
        start: Bytes,
        /// Upper end, not part of the range; `None` is the end of the database.
        end: Option<Bytes>,
    },
}

/// Options of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanOptions {
    /// Which keys.
    pub range: ScanRange,
    /// The most records in all pages together; unlimited by default.
    pub limit: Option<u64>,
    /// The most records of one page; the node's default (1,000) unless given.
    pub page_records_max: Option<u32>,
    /// The most bytes of one page; the node's default (1 MiB) unless given.
    pub page_bytes_max: Option<u32>,
    /// From the last key to the first.
    pub reverse: bool,
    /// Without values.
    pub keys_only: bool,
    /// Options of the request for each page; the timeout is per page.
    pub request: RequestOptions,
}
