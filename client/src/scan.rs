//! Scans: page after page of a range, each with its own deadline and attempts.
//!
//! Pages are separate reads: a record written between two pages may or may not be seen, but no
//! record is seen twice. The node that answers may change from page to page; the cursor carries
//! all that it needs.

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use kelp_wire::{
    Executed, ReadOptions, Request, Revision, Scan as WireScan, ScanBound, ScanEntries, Status,
};

use crate::client::Client;
use crate::connection::Reply;
use crate::error::ClientError;
use crate::options::{ScanOptions, ScanRange};

/// One record of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanRecord {
    /// The key.
    pub key: Bytes,
    /// The value; empty in a keys-only scan.
    pub value: Bytes,
    /// Revision of the record.
    pub revision: Revision,
}

/// Records in key order, or in reverse key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanPage {
    /// The records; may be empty although more pages follow.
    pub records: Vec<ScanRecord>,
}

/// A scan under way. It holds nothing on any node: it may rest as long as it likes.
#[derive(Clone, Debug)]
pub struct Scan {
    client: Client,
    options: ScanOptions,
    cursor: Bytes,
    records_left: u64,
    is_done: bool,
}

impl Scan {
    pub(crate) fn new(client: Client, options: ScanOptions) -> Self {
        let records_left = options.limit.unwrap_or(u64::MAX);
        Self {
            client,
            options,
            cursor: Bytes::new(),
            records_left,
            is_done: records_left == 0,
        }
    }

    /// Reads the next page; `None` after the last. After an error the same page may be asked for
    /// again. Cancel-safe: a page that was not returned is read anew.
    ///
    /// # Errors
    /// As for any read; see [`ClientError`].
    pub async fn next_page(&mut self) -> Result<Option<ScanPage>, ClientError> {
        if self.is_done {
            return Ok(None);
        }
        let reply = self
            .client
            .call(Request::Scan(self.request()), &self.options.request)
            .await?;
        if reply.status != Status::Ok {
            return Err(unexpected("status of a scan"));
        }
        let page = self.read_page(&reply)?;
        if !reply.cursor.is_empty() && reply.cursor == self.cursor {
            return Err(unexpected("scan cursor stands still"));
        }
        let count = u64::try_from(page.records.len()).unwrap_or(u64::MAX);
        self.records_left = self.records_left.saturating_sub(count);
        self.is_done = reply.cursor.is_empty() || self.records_left == 0;
        self.cursor = reply.cursor;
        Ok(Some(page))
    }

    /// The pages as a stream; it ends after the last page or the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<ScanPage, ClientError>> + Send {
        stream::unfold(Some(self), |scan| async move {
            let mut scan = scan?;
            match scan.next_page().await {
                Ok(Some(page)) => Some((Ok(page), Some(scan))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    fn request(&self) -> WireScan<'_> {
        let options = &self.options;
        let (start, bound): (&[u8], _) = match &options.range {
            ScanRange::All => (&[], ScanBound::Unbounded),
            ScanRange::Prefix(prefix) if prefix.is_empty() => (&[], ScanBound::Unbounded),
            ScanRange::Prefix(prefix) => (&[], ScanBound::Prefix(prefix)),
            ScanRange::Between { start, end } => (
                start,
                end.as_deref()
                    .map_or(ScanBound::Unbounded, ScanBound::Before),
            ),
        };
        let first = self.cursor.is_empty();
        // The cursor stands in for the end from which the scan comes.
        let (start, bound): (&[u8], _) = match (first, options.reverse) {
            (true, _) => (start, bound),
            (false, false) => (&[], bound),
            (false, true) => (start, ScanBound::Unbounded),
        };
        WireScan {
            database: options.request.database,
            start,
            bound,
            cursor: (!first).then_some(&self.cursor),
            limit: self.page_limit(),
            bytes: options.page_bytes_max,
            reverse: options.reverse,
            keys_only: options.keys_only,
            options: ReadOptions {
                deadline: None,
                consistency: options.request.consistency,
                token: options.request.token,
            },
        }
    }

    /// What the next page may hold of the records still wanted.
    fn page_limit(&self) -> Option<u32> {
        let left = u32::try_from(self.records_left).ok();
        match (self.options.page_records_max, left) {
            (Some(page), Some(left)) => Some(page.min(left)),
            (page, left) => page.or(left),
        }
    }

    fn read_page(&self, reply: &Reply) -> Result<ScanPage, ClientError> {
        let value = &reply.value;
        let records: Vec<ScanRecord> = ScanEntries::new(value)
            .map(|entry| {
                let entry = entry.map_err(|_| unexpected("scan page is cut short"))?;
                Ok(ScanRecord {
                    key: value.slice_ref(entry.key),
                    value: value.slice_ref(entry.value),
                    revision: entry.revision,
                })
            })
            .collect::<Result<_, ClientError>>()?;
        let count = u64::try_from(records.len()).unwrap_or(u64::MAX);
        if count > self.records_left {
            return Err(unexpected("scan page is longer than asked for"));
        }
        Ok(ScanPage { records })
    }
}

fn unexpected(problem: &'static str) -> ClientError {
    ClientError::UnexpectedReply {
        problem,
        executed: Executed::No,
    }
}
