//! All keyspaces of a database that somebody asked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelp_seams::Completion;

use super::Keyspace;
use crate::error::StorageError;

/// The most keyspaces of a database. Each has memtables of its own; more are a mistake.
const KEYSPACES_MAX: usize = 256;

/// Keyspaces by name.
#[derive(Default)]
pub(crate) struct Keyspaces {
    known: Mutex<BTreeMap<String, Keyspace>>,
}

impl Keyspaces {
    /// The keyspace `name`, which `open` makes a handle of the first time.
    pub(crate) fn get_or_open(
        &self,
        name: &str,
        open: impl FnOnce() -> Result<Keyspace, StorageError>,
    ) -> Result<Keyspace, StorageError> {
        let mut known = self.lock();
        if let Some(keyspace) = known.get(name) {
            return Ok(keyspace.clone());
        }
        if known.len() == KEYSPACES_MAX {
            return Err(StorageError::TooLarge {
                what: "keyspaces",
                size: known.len() + 1,
                size_max: KEYSPACES_MAX,
            });
        }
        let keyspace = open()?;
        known.insert(name.to_owned(), keyspace.clone());
        Ok(keyspace)
    }

    /// Handles of all, by name.
    pub(crate) fn all(&self) -> Vec<Keyspace> {
        self.lock().values().cloned().collect()
    }

    /// Whether every one of them has room.
    pub(crate) fn have_room(&self) -> bool {
        self.lock().values().all(Keyspace::has_room)
    }

    /// The calls of those who waited for room and have it now.
    pub(crate) fn take_wakes(&self) -> Vec<Completion> {
        let known = self.all();
        known.iter().flat_map(Keyspace::take_wakes).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Keyspace>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
