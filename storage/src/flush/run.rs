//! One flush, from the choice of its memtables to the edit of the catalog.

use std::sync::Arc;

use bytes::Bytes;

use super::log_wait::LogWait;
use super::merge::MemtableMerge;
use super::output::TableOutput;
use super::{FlushControl, FlushParts};
use crate::batch::Change;
use crate::catalog::{Committed, KeyspaceId, TableChange};
use crate::error::StorageError;
use crate::internal_key::{Kind, Trailer};
use crate::keyspace::Keyspace;
use crate::memtable::Memtable;
use crate::sequence_number::SequenceNumber;
use crate::table::TableMeta;
use crate::version::Version;

/// Memtables that are flushed together: merging four writes a key that changes often once instead
/// of four times, and more would hold up the room that the flush makes.
pub(super) const FLUSH_MEMTABLES_MAX: usize = 4;

/// Keys and values that one step writes: some milliseconds, after which others may get their turn.
const STEP_BYTES: usize = 1 << 20;

/// The frozen memtables of a keyspace on their way into tables.
pub(super) struct Flush {
    keyspace: Keyspace,
    /// The incarnation to which they belong.
    id: KeyspaceId,
    /// The tables that were there when it began. Later versions hold no key that they do not hold,
    /// since nothing but a flush adds keys.
    version: Arc<Version>,
    /// The oldest ones, newest first.
    memtables: Vec<Arc<Memtable>>,
    last_sequence: SequenceNumber,
    merge: MemtableMerge,
    output: TableOutput,
    /// What was written, once all is.
    written: Option<Vec<TableMeta>>,
    log: LogWait,
}

impl Flush {
    /// Takes the oldest frozen memtables of `keyspace`; none if it has no frozen ones.
    pub(super) fn begin(
        keyspace: &Keyspace,
        parts: &FlushParts,
        control: &Arc<FlushControl>,
    ) -> Option<Self> {
        let sources = keyspace.sources();
        let version = Arc::clone(sources.version());
        let memtables = sources.oldest_frozen(FLUSH_MEMTABLES_MAX);
        let last_sequence = memtables.first()?.published();
        let options = version.options().table();
        Some(Self {
            keyspace: keyspace.clone(),
            id: version.id(),
            last_sequence,
            merge: MemtableMerge::new(&memtables),
            output: TableOutput::new(&parts.catalog, options, parts.table_bytes),
            written: None,
            // All memtables are frozen by now, so what was submitted to the log so far contains
            // what was there at their freezing.
            log: LogWait::start(&parts.wal, control),
            version,
            memtables,
        })
    }

    pub(super) fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// What the log has to say.
    pub(super) fn log(&self) -> &LogWait {
        &self.log
    }

    /// Whether all tables are written and durable.
    pub(super) fn is_written(&self) -> bool {
        self.written.is_some()
    }

    /// Writes the next piece.
    pub(super) fn write_some(&mut self) -> Result<(), StorageError> {
        let mut bytes = 0;
        while bytes < STEP_BYTES {
            let Some(stop) = self.merge.next() else {
                self.written = Some(self.output.finish()?);
                return Ok(());
            };
            let (kind, value) = match stop.change {
                Change::Put(value) => (Kind::Put, value),
                // It hides nothing: no table has the key, and older memtables come along.
                Change::Delete if !self.version.may_hold(&stop.key) => continue,
                Change::Delete => (Kind::Delete, Bytes::new()),
            };
            let trailer = Trailer::new(stop.sequence, kind);
            self.output.add(&stop.key, trailer, &value)?;
            bytes += stop.key.len() + value.len();
        }
        Ok(())
    }

    /// Has the tables join the keyspace in the place of the memtables; answers their bytes, or
    /// none when the keyspace has become another incarnation.
    pub(super) fn commit(self, parts: &FlushParts) -> Result<Option<u64>, StorageError> {
        let tables = self.written.unwrap_or_default();
        let bytes = tables.iter().map(|table| table.bytes).sum();
        let change = TableChange {
            added: tables.into_iter().map(|table| (0, table)).collect(),
            removed: Vec::new(),
            last_sequence: Some(self.last_sequence),
        };
        let (keyspace, memtables) = (&self.keyspace, &self.memtables);
        let publish = |version: &Arc<_>| keyspace.publish_flushed(version, memtables);
        match parts.catalog.commit(self.id, change, publish)? {
            Committed::Published(_) => {
                self.output.keep();
                Ok(Some(bytes))
            }
            Committed::Declined => Ok(None),
        }
    }
}
