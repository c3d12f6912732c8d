//! Many writes under way at once, acknowledged in the order of the file.
//!
//! What counts as done is the longest run of records from the start that are all acknowledged. A
//! record whose key is still being written waits, so that of two records with one key the later
//! one stays, whichever connection or retry carries it.

use std::collections::{BTreeSet, VecDeque};
use std::io::BufRead;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt};
use kelp_client::ClientError;
use tokio::sync::mpsc;

use crate::cli::record::{ReadError, Record, RecordReader};

/// Requests under way at once: enough to fill a proposal while another one is on its way.
pub(super) const REQUESTS_MAX: usize = 256;
/// Bytes under way at once; a larger record goes alone.
pub(super) const BYTES_MAX: usize = 8 << 20;
/// Records of one batch.
const BATCH_RECORDS_MAX: usize = 256;
/// Bytes of one batch; a larger record makes a batch of its own.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Records with the offset behind each.
#[derive(Debug, Default)]
pub(super) struct Batch {
    records: Vec<(Record, u64)>,
}

impl Batch {
    /// Reads up to a full batch, and what stopped reading if that was a fault.
    pub(super) fn read<R: BufRead>(reader: &mut RecordReader<R>) -> (Self, Option<ReadError>) {
        let mut batch = Self::default();
        let mut bytes = 0;
        while batch.records.len() < BATCH_RECORDS_MAX && bytes < BATCH_BYTES_MAX {
            match reader.next() {
                Ok(Some((record, offset))) => {
                    bytes += weight(&record);
                    batch.records.push((record, offset));
                }
                Ok(None) => break,
                Err(error) => return (batch, Some(error)),
            }
        }
        (batch, None)
    }

    /// Whether there is nothing in it, as behind the end of the input.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

/// How far an import came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Records acknowledged without a gap.
    pub(super) records: u64,
    /// The offset behind the last of them.
    pub(super) offset: u64,
}

/// Why an import ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// All records are acknowledged.
    End,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// The input could not be read further.
    Input(ReadError),
    /// A record has a key whose earlier write may still come through and undo this one.
    Doubtful {
        /// The record, counted from 1 where this import began.
        record: u64,
    },
    /// A write failed.
    Refused {
        /// The record, counted from 1 where this import began.
        record: u64,
        /// What the client says.
        error: ClientError,
    },
}

/// How sure it is that an acknowledged record will not be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It was sent once.
    Once,
    /// It was repeated after an unknown outcome, which may still come through: harmless, unless
    /// another value of the key was written meanwhile.
    Perhaps,
}

/// Where records go.
pub(super) trait Sink {
    /// Writes one record; the future is polled until it is ready or the import ends.
    fn put(&self, record: Record) -> BoxFuture<'static, Result<Certainty, ClientError>>;
}

/// The writes of one import.
pub(super) struct Pipeline<'a> {
    sink: &'a dyn Sink,
    show: &'a dyn Fn(Outcome),
    under_way: FuturesOrdered<BoxFuture<'static, Written>>,
    keys: BTreeSet<Vec<u8>>,
    doubtful: BTreeSet<Vec<u8>>,
    bytes: usize,
    done: Outcome,
}

/// What comes back from a write.
struct Written {
    key: Vec<u8>,
    bytes: usize,
    offset: u64,
    result: Result<Certainty, ClientError>,
}

/// What the next step is about.
enum Event {
    Written(Option<Written>),
    Batch(Option<Result<Batch, ReadError>>),
}

impl<'a> Pipeline<'a> {
    /// A pipeline that writes to `sink`, starting at `offset` of the input, and tells `show` of
    /// each step forward.
    pub(super) fn new(sink: &'a dyn Sink, offset: u64, show: &'a dyn Fn(Outcome)) -> Self {
        Self {
            sink,
            show,
            under_way: FuturesOrdered::new(),
            keys: BTreeSet::new(),
            doubtful: BTreeSet::new(),
            bytes: 0,
            done: Outcome { records: 0, offset },
        }
    }

    /// How far it came.
    pub(super) fn outcome(&self) -> Outcome {
        self.done
    }

    /// Writes all batches. Dropping the future leaves what is under way unacknowledged.
    ///
    /// After a fault of the input, what was read before it is still written; after a refused
    /// record, what is under way is abandoned: the records before it count, those behind do not.
    pub(super) async fn run(
        &mut self,
        mut batches: mpsc::Receiver<Result<Batch, ReadError>>,
    ) -> Stop {
        let mut waiting: VecDeque<(Record, u64)> = VecDeque::new();
        let mut end = None;
        loop {
            while let Some((record, offset)) =
                waiting.pop_front_if(|(record, _)| self.takes(record))
            {
                self.start(record, offset);
            }
            if self.under_way.is_empty() && !waiting.is_empty() {
                return Stop::Doubtful {
                    record: self.done.records + 1,
                };
            }
            let wants_more = waiting.is_empty() && end.is_none();
            if self.under_way.is_empty() && !wants_more {
                return end.unwrap_or(Stop::End);
            }
            let event = tokio::select! {
                biased;
                written = self.under_way.next(), if !self.under_way.is_empty() => {
                    Event::Written(written)
                }
                batch = batches.recv(), if wants_more => Event::Batch(batch),
            };
            match event {
                Event::Written(Some(written)) => {
                    if let Err(stop) = self.finish(written) {
                        return stop;
                    }
                }
                Event::Written(None) => {}
                Event::Batch(Some(Ok(batch))) => waiting = batch.records.into(),
                Event::Batch(Some(Err(fault))) => end = Some(Stop::Input(fault)),
                Event::Batch(None) => end = Some(Stop::End),
            }
        }
    }

    /// Whether a record may start now.
    fn takes(&self, record: &Record) -> bool {
        let room = self.under_way.len() < REQUESTS_MAX
            && self.bytes.saturating_add(weight(record)) <= BYTES_MAX;
        let is_free = !self.keys.contains(&record.key) && !self.doubtful.contains(&record.key);
        (room || self.under_way.is_empty()) && is_free
    }

    fn start(&mut self, record: Record, offset: u64) {
        let bytes = weight(&record);
        let key = record.key.clone();
        self.bytes += bytes;
        self.keys.insert(key.clone());
        let write = self.sink.put(record);
        self.under_way.push_back(Box::pin(async move {
            Written {
                key,
                bytes,
                offset,
                result: write.await,
            }
        }));
    }

    fn finish(&mut self, written: Written) -> Result<(), Stop> {
        self.bytes -= written.bytes;
        self.keys.remove(&written.key);
        match written.result {
            Ok(certainty) => {
                if certainty == Certainty::Perhaps {
                    self.doubtful.insert(written.key);
                }
                self.done.records += 1;
                self.done.offset = written.offset;
                (self.show)(self.done);
                Ok(())
            }
            Err(error) => Err(Stop::Refused {
                record: self.done.records + 1,
                error,
            }),
        }
    }
}

/// What a record weighs while it is under way.
fn weight(record: &Record) -> usize {
    record.key.len() + record.value.len()
}

#[cfg(test)]
mod tests;
