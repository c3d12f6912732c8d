//! Opens the catalog of a directory: everything is checked first, then made durable, and what no
//! table set needs is removed last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use kelp_seams::Executor;

use super::dead_files::Remover;
use super::replay::{KeyspaceState, State};
use super::{Catalog, DeadFiles, Entry, Inner, KeyspaceId};
use crate::error::{Corruption, OpenError};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::manifest::{
    self, AppendError, CURRENT_NAME, CURRENT_TEMPORARY_NAME, Loaded, ManifestWriter,
};
use crate::sstable::BlockCache;
use crate::table::Table;
use crate::version::{Levels, Version};
use crate::vfs::Vfs;

/// What a catalog is opened with.
#[derive(Clone)]
pub(crate) struct CatalogSetup {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) directory: PathBuf,
    pub(crate) database: DatabaseId,
    pub(crate) cache: Arc<BlockCache>,
    /// A manifest has at least this length.
    pub(crate) manifest_bytes_min: u64,
}

/// A catalog that was read and checked; nothing has been changed yet.
pub(crate) struct CatalogRecovery {
    setup: CatalogSetup,
    /// None in a directory that has no catalog yet.
    loaded: Option<Loaded>,
    next_number: FileNumber,
    next_keyspace: KeyspaceId,
    keyspaces: BTreeMap<KeyspaceId, Entry>,
    dead_files: Arc<DeadFiles>,
    /// Files that nobody needs.
    orphans: Vec<String>,
}

impl CatalogRecovery {
    /// Reads CURRENT and the manifest, and opens every table.
    pub(crate) fn read(setup: CatalogSetup) -> Result<Self, OpenError> {
        let (vfs, directory) = (&*setup.vfs, setup.directory.as_path());
        let names = vfs
            .list(directory)
            .map_err(OpenError::io("list", directory))?;
        let mut loaded = manifest::load(vfs, directory, setup.database)?;
        if loaded.is_none() {
            refuse_lost_current(directory, &names)?;
        }
        let state = match &mut loaded {
            Some(loaded) => replay(loaded)?,
            None => State::new(),
        };
        let dead_files = Arc::new(DeadFiles::default());
        let mut keyspaces = BTreeMap::new();
        let source = loaded.as_ref().map_or(directory, |loaded| &loaded.path);
        for (id, keyspace) in &state.keyspaces {
            let version = open_keyspace(&setup, source, *id, keyspace, &dead_files)?;
            let name = Arc::clone(&keyspace.name);
            keyspaces.insert(*id, Entry { name, version });
        }
        let manifest = loaded.as_ref().map(|loaded| loaded.number);
        Ok(Self {
            next_number: next_number(&state, &names),
            next_keyspace: state.next_keyspace,
            orphans: orphans(&state, manifest, names),
            setup,
            loaded,
            keyspaces,
            dead_files,
        })
    }

    /// Makes what was read durable, or a new catalog, and removes what nobody needs.
    pub(crate) fn start(self, executor: &dyn Executor) -> Result<Arc<Catalog>, OpenError> {
        let setup = self.setup;
        let (vfs, directory) = (&setup.vfs, &setup.directory);
        let mut inner = Inner {
            writer: ManifestWriter::new(
                Arc::clone(vfs),
                directory.clone(),
                setup.database,
                setup.manifest_bytes_min,
            ),
            keyspaces: self.keyspaces,
            next_keyspace: self.next_keyspace,
        };
        let mut next_number = self.next_number;
        if let Some(loaded) = self.loaded {
            let path = loaded.path.clone();
            let resumed = inner.writer.resume(loaded);
            resumed.map_err(OpenError::io("make durable", path))?;
            remove(&**vfs, directory, &self.orphans);
        } else {
            // What an interrupted attempt left would be in the way.
            remove(&**vfs, directory, &self.orphans);
            next_number = create(&mut inner, directory)?;
        }
        let remover = Remover {
            files: Arc::clone(&self.dead_files),
            vfs: Arc::clone(vfs),
            directory: directory.clone(),
        };
        let job = executor.spawn("remover", Box::new(remover));
        self.dead_files.attach(job);
        Ok(Arc::new(Catalog {
            setup,
            next_number: AtomicU64::new(next_number.get()),
            dead_files: self.dead_files,
            manifest: Arc::clone(inner.writer.counters()),
            inner: Mutex::new(inner),
            closed: AtomicBool::new(false),
        }))
    }
}

/// The first manifest is number 1, and tables come after it. So a directory without CURRENT that
/// holds more was not interrupted while its catalog was made: it lost CURRENT.
fn refuse_lost_current(directory: &Path, names: &[String]) -> Result<(), OpenError> {
    let first = FileNumber::new(1);
    let proof = names.iter().find(|name| {
        FileNumber::from_sstable_name(name).is_some()
            || FileNumber::from_manifest_name(name).is_some_and(|number| number != first)
    });
    match proof {
        None => Ok(()),
        Some(name) => {
            let fault = format!("the file is missing, though {name} is there");
            Err(Corruption::new(directory.join(CURRENT_NAME), 0, fault).into())
        }
    }
}

fn replay(loaded: &mut Loaded) -> Result<State, OpenError> {
    let mut state = State::new();
    for (offset, edit) in loaded.edits.drain(..) {
        for record in edit {
            let corrupt =
                |fault: super::replay::ReplayFault| Corruption::new(&loaded.path, offset, fault.0);
            state.apply(record).map_err(corrupt)?;
        }
    }
    Ok(state)
}

fn open_keyspace(
    setup: &CatalogSetup,
    manifest: &Path,
    id: KeyspaceId,
    keyspace: &KeyspaceState,
    dead_files: &Arc<DeadFiles>,
) -> Result<Arc<Version>, OpenError> {
    let mut tables = Vec::with_capacity(keyspace.tables.len());
    for (level, meta) in keyspace.tables.values() {
        let table = Table::open(
            &*setup.vfs,
            &setup.directory,
            meta.clone(),
            &setup.cache,
            dead_files,
        )?;
        tables.push((*level, Arc::new(table)));
    }
    let levels = Levels::new(tables);
    let levels = levels.map_err(|fault| Corruption::new(manifest, 0, fault.0))?;
    Ok(Arc::new(Version::new(
        id,
        keyspace.options,
        keyspace.last_sequence,
        levels,
    )))
}

/// Above every number that was given, as far as anything tells.
fn next_number(state: &State, names: &[String]) -> FileNumber {
    let numbers = names.iter().filter_map(|name| {
        FileNumber::from_sstable_name(name).or_else(|| FileNumber::from_manifest_name(name))
    });
    let seen = numbers.max().map_or(state.next_number, FileNumber::next);
    seen.max(state.next_number)
}

fn orphans(state: &State, manifest: Option<FileNumber>, names: Vec<String>) -> Vec<String> {
    let unneeded = |name: &String| {
        let table = FileNumber::from_sstable_name(name);
        let found = FileNumber::from_manifest_name(name);
        table.is_some_and(|number| !state.holds(number))
            || found.is_some_and(|number| manifest != Some(number))
            || name == CURRENT_TEMPORARY_NAME
    };
    names.into_iter().filter(unneeded).collect()
}

fn remove(vfs: &dyn Vfs, directory: &Path, names: &[String]) {
    for name in names {
        let path = directory.join(name);
        // A file that stays is harmless: the next open tries again.
        if let Err(error) = vfs.remove(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove an unneeded file");
        }
    }
}

/// Makes an empty catalog; answers the next number.
fn create(inner: &mut Inner, directory: &Path) -> Result<FileNumber, OpenError> {
    let first = FileNumber::new(1);
    let state = inner.state(first.next());
    match inner.writer.roll(first, &state, &[]) {
        Ok(_) => Ok(first.next()),
        Err(AppendError::Io(error)) => Err(OpenError::io("make CURRENT in", directory)(error)),
        Err(AppendError::TooLarge { .. }) => unreachable!("an empty state is small"),
    }
}
