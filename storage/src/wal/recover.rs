//! Reads the write-ahead log at open: what is whole, what is torn, what is corrupt.
//!
//! Files are chained by what each knows of the one before it. Every file of the chain but the
//! newest must be whole to the byte. In the newest, the first place that does not hold is a torn
//! tail, unless something proves that bytes behind it were durable once: then they are lost and
//! the log is corrupt. Nothing is changed until [`Recovery::repair`], and a repair is durable
//! before anything is written after it.
//!
//! What can be read need not be durable: a killed process leaves bytes that were never synced, and
//! a failed sync leaves bytes that no later sync will bring to the disk. So everything that the
//! newest file shows and nothing proves durable is written again and synced before it is shown to
//! anybody.

mod repair;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use super::files::WalFile;
use super::format::{self, FileHeader, HeaderFault, Predecessor};
use super::queue::{Lsn, Place};
use super::record::Record;
use super::scan::{Boundary, Frame, Scanner, Witness, find_witness, read_header};
use crate::codec::short;
use crate::error::{Corruption, OpenError};
use crate::file_number::FileNumber;
use crate::identity::DatabaseId;
use crate::log::LogNumber;
use crate::salt::Salt;
use crate::vfs::Vfs;

/// Takes the records of the log in order.
pub(crate) trait Replay {
    /// Applies a record. An error says why it cannot follow those before it.
    fn apply(&mut self, log: LogNumber, record: Record<'_>, place: Place) -> Result<(), String>;

    /// What is still missing once all records were applied: entries that lay in older files.
    fn missing(&self) -> Option<String>;
}

/// What reading the log came to.
pub(crate) struct Recovery {
    directory: PathBuf,
    /// The chain, oldest first.
    pub(crate) files: Vec<WalFile>,
    /// The sequence of the next record.
    pub(crate) next_sequence: u64,
    /// The number of the next file: above all that exist.
    pub(crate) next_file: FileNumber,
    /// The valid length of the newest file; its seal included when it has one.
    newest_length: u64,
    sealed: bool,
    /// How much of the newest file was durable once, by its own frames and by HARDSTATE.
    durable_upto: u64,
    /// Places between the frames of the newest file, from the last one at or before what its
    /// frames say was durable.
    unwitnessed: VecDeque<Boundary>,
    /// Files that hold nothing anybody was promised.
    leftovers: Vec<PathBuf>,
}

/// Reads all files of the log below `directory` into `replay`. `durable` is what HARDSTATE knows to
/// have been durable.
pub(crate) fn read(
    vfs: &dyn Vfs,
    directory: &Path,
    database: DatabaseId,
    durable: Option<(FileNumber, u64)>,
    replay: &mut dyn Replay,
) -> Result<Recovery, OpenError> {
    let found = Found::list(vfs, directory, database)?;
    let next_file = found.highest.next();
    let chain = found.chain()?;
    let mut recovery = Recovery {
        directory: directory.to_owned(),
        files: Vec::new(),
        next_sequence: 1,
        next_file,
        newest_length: 0,
        sealed: true,
        durable_upto: 0,
        unwitnessed: VecDeque::new(),
        leftovers: chain.leftovers,
    };
    let mut start = Lsn(0);
    for (position, (header, mut file)) in chain.files.iter().cloned().enumerate() {
        file.start = start;
        if position == 0 {
            let before = header.predecessor.map_or(0, |known| known.last_sequence);
            recovery.next_sequence = before + 1;
        }
        let successor = chain
            .files
            .get(position + 1)
            .and_then(|(next, _)| next.predecessor);
        let end = recovery.read_file(&file, successor, chain.torn_witness, replay)?;
        start = Lsn(start.0 + end);
        recovery.files.push(file);
    }
    recovery.check_durable(durable)?;
    if let Some(missing) = replay.missing() {
        let oldest = chain
            .files
            .first()
            .and_then(|(header, _)| header.predecessor);
        let number = oldest.map_or(FileNumber::new(1), |known| known.number);
        let path = directory.join(number.wal_name());
        return Err(Corruption::new(path, 0, format!("the file is missing: {missing}")).into());
    }
    Ok(recovery)
}

impl Recovery {
    /// Replays one file; answers its valid length.
    fn read_file(
        &mut self,
        file: &WalFile,
        successor: Option<Predecessor>,
        torn_witness: Witness,
        replay: &mut dyn Replay,
    ) -> Result<u64, OpenError> {
        let io = || OpenError::io("read", &file.path);
        let mut scanner = Scanner::new(&*file.file, file.salt, self.next_sequence).map_err(io())?;
        self.unwitnessed.clear();
        let fault = loop {
            self.note_boundary(&scanner);
            match scanner.next_frame().map_err(io())? {
                Frame::Data => {
                    for (offset, raw) in scanner.records() {
                        let place = Place {
                            lsn: Lsn(file.start.0 + offset),
                            bytes: short(raw.payload.len()),
                        };
                        let applied = match Record::decode(raw.payload) {
                            Some((log, record)) => replay.apply(log, record, place),
                            None => Err("an intact record says nothing known".to_owned()),
                        };
                        applied.map_err(|fault| Corruption::new(&file.path, offset, fault))?;
                    }
                }
                Frame::Sealed => break None,
                Frame::Fault(fault) => break Some(fault),
            }
        };
        let end = scanner.offset;
        self.next_sequence = scanner.next_sequence;
        self.newest_length = end;
        self.sealed = fault.is_none();
        self.note_boundary(&scanner);
        self.durable_upto = scanner.synced_upto;
        if let Some(known) = successor {
            let whole = known.length == end && known.last_sequence + 1 == self.next_sequence;
            if !whole || fault.is_some() {
                let fault = fault.unwrap_or("the file does not end where its successor says");
                return Err(Corruption::new(&file.path, end, fault).into());
            }
        } else if let Some(fault) = fault {
            let witness = find_witness(&*file.file, file.salt, end).map_err(io())?;
            if witness.synced_upto > end || torn_witness.predecessor_durable {
                return Err(Corruption::new(&file.path, end, fault).into());
            }
        }
        Ok(end)
    }

    /// Remembers where a frame begins, and forgets those that a later one proves durable.
    fn note_boundary(&mut self, scanner: &Scanner<'_>) {
        let here = scanner.boundary();
        if self.unwitnessed.back() != Some(&here) {
            self.unwitnessed.push_back(here);
        }
        while self
            .unwitnessed
            .get(1)
            .is_some_and(|next| next.offset <= scanner.synced_upto)
        {
            self.unwitnessed.pop_front();
        }
    }

    /// The log must reach as far as HARDSTATE saw it durable.
    fn check_durable(&mut self, durable: Option<(FileNumber, u64)>) -> Result<(), OpenError> {
        let Some((number, length)) = durable else {
            return Ok(());
        };
        let newest = self
            .files
            .last()
            .map_or(FileNumber::new(0), |file| file.number);
        let path = self.directory.join(number.wal_name());
        if newest < number {
            return Err(Corruption::new(path, 0, "the file is missing").into());
        }
        if newest == number && self.newest_length < length {
            let fault = format!("the file was durable up to byte {length}");
            return Err(Corruption::new(path, self.newest_length, fault).into());
        }
        if newest == number {
            self.durable_upto = self.durable_upto.max(length);
        }
        Ok(())
    }

    /// The file before the next one.
    pub(crate) fn predecessor(&self) -> Option<Predecessor> {
        let newest = self.files.last()?;
        Some(Predecessor {
            number: newest.number,
            length: self.newest_length,
            last_sequence: self.next_sequence - 1,
        })
    }

    /// The valid length of the newest file.
    pub(crate) fn newest_length(&self) -> u64 {
        self.newest_length
    }

    /// The place after everything.
    pub(crate) fn end(&self) -> Lsn {
        let start = self.files.last().map_or(Lsn(0), |file| file.start);
        Lsn(start.0 + self.newest_length)
    }
}

/// The files of the log before they are read.
struct Found {
    directory: PathBuf,
    highest: FileNumber,
    headed: BTreeMap<FileNumber, (FileHeader, WalFile)>,
    /// Files without a header, with what frames in them say.
    headless: BTreeMap<FileNumber, (PathBuf, Witness)>,
}

struct Chain {
    files: Vec<(FileHeader, WalFile)>,
    leftovers: Vec<PathBuf>,
    /// What frames behind the chain say, in files whose header did not survive.
    torn_witness: Witness,
}

impl Found {
    fn list(vfs: &dyn Vfs, directory: &Path, database: DatabaseId) -> Result<Self, OpenError> {
        let names = vfs
            .list(directory)
            .map_err(OpenError::io("list", directory))?;
        let mut found = Self {
            directory: directory.to_owned(),
            highest: FileNumber::new(0),
            headed: BTreeMap::new(),
            headless: BTreeMap::new(),
        };
        for number in names
            .iter()
            .filter_map(|name| FileNumber::from_wal_name(name))
        {
            found.highest = found.highest.max(number);
            found.add(vfs, number, database)?;
        }
        Ok(found)
    }

    fn add(
        &mut self,
        vfs: &dyn Vfs,
        number: FileNumber,
        database: DatabaseId,
    ) -> Result<(), OpenError> {
        let path = self.directory.join(number.wal_name());
        let file = vfs.open(&path).map_err(OpenError::io("open", &path))?;
        let salt = Salt::new(database, number);
        match read_header(&*file).map_err(OpenError::io("read", &path))? {
            Ok(header) if header.database != database => {
                return Err(OpenError::ForeignFile { path });
            }
            Ok(header) if header.number != number => {
                return Err(Corruption::new(path, 0, "the header is that of another file").into());
            }
            Ok(header) => {
                let wal_file = WalFile {
                    number,
                    path,
                    file,
                    salt,
                    start: Lsn(0),
                };
                self.headed.insert(number, (header, wal_file));
            }
            Err(HeaderFault::Newer(version)) => {
                let supported = format::VERSION;
                return Err(OpenError::NewerFormat {
                    path,
                    found: version,
                    supported,
                });
            }
            Err(HeaderFault::Damaged) => {
                let witness =
                    find_witness(&*file, salt, 0).map_err(OpenError::io("read", &path))?;
                self.headless.insert(number, (path, witness));
            }
        }
        Ok(())
    }

    /// Follows the chain back from the newest file that has a header.
    fn chain(mut self) -> Result<Chain, OpenError> {
        for (path, witness) in self.headless.values() {
            // A header is written with the first frames; once they were durable, so was it.
            if witness.synced_upto > 0 {
                return Err(Corruption::new(path, 0, "the file header is damaged").into());
            }
        }
        let mut files = Vec::new();
        let newest = self.headed.keys().next_back().copied();
        let mut wanted = newest;
        while let Some(number) = wanted {
            let Some((header, file)) = self.headed.remove(&number) else {
                if let Some((path, _)) = self.headless.get(&number) {
                    return Err(Corruption::new(path, 0, "the file header is damaged").into());
                }
                break;
            };
            wanted = header.predecessor.map(|known| known.number);
            if wanted.is_some_and(|before| before >= number) {
                return Err(Corruption::new(file.path, 0, "the chain of files is broken").into());
            }
            files.push((header, file));
        }
        files.reverse();
        let behind = self.headless.range(newest.unwrap_or(FileNumber::new(0))..);
        let torn_witness = Witness {
            synced_upto: 0,
            predecessor_durable: behind
                .map(|(_, (_, witness))| witness)
                .any(|witness| witness.predecessor_durable),
        };
        let headed = self.headed.into_values().map(|(_, file)| file.path);
        let leftovers = headed
            .chain(self.headless.into_values().map(|(path, _)| path))
            .collect();
        Ok(Chain {
            files,
            leftovers,
            torn_witness,
        })
    }
}
