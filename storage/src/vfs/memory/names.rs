//! The names of the disk in memory, durable and not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::file::Content;
use super::lock;

type Shared = Arc<Mutex<Content>>;
type Files = BTreeMap<PathBuf, Shared>;

/// Invariants: applying `pending` to `durable` gives `visible`. Directories are durable at once:
/// their loss is the loss of the whole database, which no test needs.
#[derive(Default)]
pub(super) struct Names {
    directories: BTreeSet<PathBuf>,
    visible: Files,
    durable: Files,
    pending: Vec<Change>,
}

enum Change {
    Create(PathBuf, Shared),
    Rename(PathBuf, PathBuf, Shared),
    Remove(PathBuf),
}

impl Change {
    fn directory(&self) -> Option<&Path> {
        match self {
            Self::Create(path, _) | Self::Rename(_, path, _) | Self::Remove(path) => path.parent(),
        }
    }

    fn copy(&self, copies: &mut Copies) -> Self {
        match self {
            Self::Create(path, content) => Self::Create(path.clone(), copies.of(content)),
            Self::Rename(from, to, content) => {
                Self::Rename(from.clone(), to.clone(), copies.of(content))
            }
            Self::Remove(path) => Self::Remove(path.clone()),
        }
    }

    fn apply(&self, files: &mut Files) {
        match self {
            Self::Create(path, content) => {
                files.insert(path.clone(), Arc::clone(content));
            }
            Self::Rename(from, to, content) => {
                files.remove(from);
                files.insert(to.clone(), Arc::clone(content));
            }
            Self::Remove(path) => {
                files.remove(path);
            }
        }
    }
}

/// Copies of contents, one for each, however many names it has. By address; each entry keeps its
/// original alive, so that no address is used twice.
#[derive(Default)]
struct Copies {
    known: BTreeMap<usize, (Shared, Shared)>,
}

impl Copies {
    fn of(&mut self, content: &Shared) -> Shared {
        let known = self.known.entry(Arc::as_ptr(content).addr());
        let (_, copy) = known.or_insert_with(|| {
            let copy = lock(content).clone();
            (Arc::clone(content), Arc::new(Mutex::new(copy)))
        });
        Arc::clone(copy)
    }

    fn of_files(&mut self, files: &Files) -> Files {
        let copied = files
            .iter()
            .map(|(name, content)| (name.clone(), self.of(content)));
        copied.collect()
    }
}

impl Names {
    pub(super) fn add_directory(&mut self, path: &Path) {
        self.directories
            .extend(path.ancestors().map(Path::to_owned));
    }

    pub(super) fn create(&mut self, path: &Path) -> io::Result<Shared> {
        if self.exists(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !path
            .parent()
            .is_some_and(|parent| self.directories.contains(parent))
        {
            return Err(io::ErrorKind::NotFound.into());
        }
        let content = Arc::default();
        self.change(Change::Create(path.to_owned(), Arc::clone(&content)));
        Ok(content)
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<Shared> {
        let content = self.visible.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::clone(content))
    }

    pub(super) fn find_or_create(&mut self, path: &Path) -> io::Result<Shared> {
        match self.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(path),
            other => other,
        }
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let content = self.find(from)?;
        self.change(Change::Rename(from.to_owned(), to.to_owned(), content));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        self.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.visible.contains_key(path) || self.directories.contains(path)
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if !self.directories.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let files = self.visible.keys().chain(&self.directories);
        let inside = files.filter(|name| name.parent() == Some(path));
        let names = inside.filter_map(|name| name.file_name());
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn sync(&mut self, directory: &Path) {
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            if change.directory() == Some(directory) {
                change.apply(&mut self.durable);
            } else {
                self.pending.push(change);
            }
        }
    }

    /// The same names, visible and durable, with contents of their own.
    pub(super) fn copy(&self) -> Self {
        let mut copies = Copies::default();
        Self {
            directories: self.directories.clone(),
            visible: copies.of_files(&self.visible),
            durable: copies.of_files(&self.durable),
            pending: self
                .pending
                .iter()
                .map(|change| change.copy(&mut copies))
                .collect(),
        }
    }

    /// The names after a power cut in which each un-synced change `survives` or not.
    pub(super) fn after_crash(&self, mut survives: impl FnMut() -> bool) -> Self {
        let mut files = self.durable.clone();
        for change in &self.pending {
            if survives() {
                change.apply(&mut files);
            }
        }
        // A file may have lost its name and an open handle still change it: copies part the disks.
        let mut copies = Files::new();
        for (name, content) in files {
            let content = lock(&content).after_crash(&mut survives);
            copies.insert(name, Arc::new(Mutex::new(content)));
        }
        Self {
            directories: self.directories.clone(),
            visible: copies.clone(),
            durable: copies,
            pending: Vec::new(),
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.visible);
        self.pending.push(change);
    }
}
