//! Reading the state at one point.

use std::sync::OnceLock;

use bytes::Bytes;
use kelp_storage::{Cached, Database, DatabaseId, Keyspace, LogPosition, ReadView, StorageError};

use super::StateError;
use super::key::{MetaKey, StateKey, record_key};
use super::meta::{AppliedRecord, ChainRecord, Limits, MembershipRecord, decode_directory};
use super::record::Record;
use super::scan::{Page, PageLimits, Scan, ScanRange};
use crate::model::{ChainHash, DecodeError, GroupId, LogIndex, NodeId, StampMillis};

/// Opens views of the newest state; clones share the keyspace.
#[derive(Clone)]
pub struct StateReader {
    keyspace: Keyspace,
}

impl StateReader {
    /// Opens the state of `group` in `database`, which is behind the log until a replica of the
    /// group has started.
    pub fn open(database: &Database, group: GroupId) -> Result<Self, StorageError> {
        let keyspace = database.keyspace(&format!("state.{group}"))?;
        Ok(Self::new(keyspace))
    }

    /// Reads the `state` keyspace of a group.
    pub fn new(keyspace: Keyspace) -> Self {
        Self { keyspace }
    }

    pub(crate) fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The newest state.
    pub fn view(&self) -> StateView {
        StateView::new(self.keyspace.view())
    }

    /// The last applied entry, `None` before the first.
    pub fn applied(&self) -> Result<Option<LogIndex>, StateError> {
        self.view().applied()
    }
}

/// What memory alone knows of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedRecord {
    /// The record, or that there is none.
    Hit(Option<Record>),
    /// [`StateView::get`] finds out, and may read the disk.
    NeedsDisk,
}

/// The state at one point: between two entries, or right after a sub-batch within one.
///
/// Reads may touch the disk. Clones are cheap and read the same state for as long as they live.
#[derive(Clone)]
pub struct StateView {
    view: ReadView,
    /// The replicated clock, read when a record with a deadline is met.
    clock: OnceLock<StampMillis>,
}

impl StateView {
    /// Reads a view of a `state` keyspace.
    pub fn new(view: ReadView) -> Self {
        Self {
            view,
            clock: OnceLock::new(),
        }
    }

    /// What `key` holds; `None` when it is absent or its deadline has passed by the replicated
    /// clock.
    pub fn get(&self, database: u8, key: &[u8]) -> Result<Option<Record>, StateError> {
        let key = record_key(database, key);
        let Some(value) = self.view.get(&key)? else {
            return Ok(None);
        };
        let record = Record::decode(&value).map_err(|source| StateError::corrupt(&key, source))?;
        Ok(self.is_live(&record)?.then_some(record))
    }

    /// As [`StateView::get`], but from memory alone.
    pub fn get_cached(&self, database: u8, key: &[u8]) -> Result<CachedRecord, StateError> {
        let key = record_key(database, key);
        let Cached::Hit(value) = self.view.get_cached(&key) else {
            return Ok(CachedRecord::NeedsDisk);
        };
        let Some(value) = value else {
            return Ok(CachedRecord::Hit(None));
        };
        let record = Record::decode(&value).map_err(|source| StateError::corrupt(&key, source))?;
        if record.expire_at.is_some() && !self.knows_clock() {
            return Ok(CachedRecord::NeedsDisk);
        }
        let is_live = self.is_live(&record)?;
        Ok(CachedRecord::Hit(is_live.then_some(record)))
    }

    /// Whether nothing behind this view lies on the disk.
    pub fn is_in_memory(&self) -> bool {
        self.view.is_cached_only()
    }

    /// The records of `range` in its order, without those whose deadline has passed.
    pub fn scan(&self, range: ScanRange) -> Scan {
        Scan::new(self.clone(), range)
    }

    /// The first records of `range`, as many as `limits` allow but at least one if there is one.
    pub fn page(&self, range: ScanRange, limits: PageLimits) -> Result<Page, StateError> {
        Page::collect(self.scan(range), limits)
    }

    /// The number of records in `range`, counted up to `count_max`.
    pub fn count(&self, range: ScanRange, count_max: usize) -> Result<usize, StateError> {
        let mut count = 0;
        for record in self.scan(range).take(count_max) {
            record?;
            count += 1;
        }
        Ok(count)
    }

    /// The last applied entry, `None` before the first. In the middle of an entry it is that entry.
    pub fn applied(&self) -> Result<Option<LogIndex>, StateError> {
        Ok(self.applied_record()?.map(|record| record.position.index))
    }

    /// Where the last applied entry stands in the log.
    pub fn applied_position(&self) -> Result<Option<LogPosition>, StateError> {
        Ok(self.applied_record()?.map(|record| record.position))
    }

    /// The last applied entry and the replicated clock.
    pub fn applied_record(&self) -> Result<Option<AppliedRecord>, StateError> {
        self.meta(MetaKey::Applied, |value| AppliedRecord::decode(value))
    }

    /// The replicated clock; 0 before the first entry.
    pub fn clock(&self) -> Result<StampMillis, StateError> {
        if let Some(clock) = self.clock.get() {
            return Ok(*clock);
        }
        let clock = self
            .applied_record()?
            .map_or(StampMillis::default(), |record| record.clock);
        Ok(*self.clock.get_or_init(|| clock))
    }

    /// The chain hash after the last whole entry, [`ChainHash::START`] before the first.
    pub fn chain_hash(&self) -> Result<ChainHash, StateError> {
        Ok(self
            .chain_record()?
            .map_or(ChainHash::START, |record| record.hash))
    }

    /// The chain hash and the entry after which it holds.
    pub fn chain_record(&self) -> Result<Option<ChainRecord>, StateError> {
        self.meta(MetaKey::Chain, |value| ChainRecord::decode(value))
    }

    /// The last applied membership.
    pub fn membership(&self) -> Result<Option<MembershipRecord>, StateError> {
        self.meta(MetaKey::Membership, MembershipRecord::decode)
    }

    /// The limits of keys and values.
    pub fn limits(&self) -> Result<Limits, StateError> {
        Ok(self
            .meta(MetaKey::Limits, |value| Limits::decode(value))?
            .unwrap_or_default())
    }

    /// The data directory that `node` announced first; `None` before it did.
    pub fn directory_of(&self, node: NodeId) -> Result<Option<DatabaseId>, StateError> {
        let key = StateKey::NodeDirectory { node }.encode();
        let value = self.view.get(&key)?;
        value
            .map(|value| decode_directory(&value))
            .transpose()
            .map_err(|source| StateError::corrupt(&key, source))
    }

    /// Whether the replicated clock can be told without the disk.
    fn knows_clock(&self) -> bool {
        self.clock.get().is_some()
            || matches!(
                self.view.get_cached(&MetaKey::Applied.encode()),
                Cached::Hit(_)
            )
    }

    /// The engine's view.
    pub(crate) fn engine(&self) -> &ReadView {
        &self.view
    }

    /// Reads a single record of the group.
    pub(crate) fn meta<T>(
        &self,
        key: MetaKey,
        decode: impl FnOnce(&Bytes) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, StateError> {
        let key = key.encode();
        let value = self.view.get(&key)?;
        value
            .map(|value| decode(&value).map_err(|source| StateError::corrupt(&key, source)))
            .transpose()
    }

    /// Whether `record` still exists by the replicated clock.
    pub(super) fn is_live(&self, record: &Record) -> Result<bool, StateError> {
        Ok(record.expire_at.is_none() || !record.is_dead_at(self.clock()?))
    }
}
