//! Opens a directory: lock, identity, HARDSTATE, write-ahead log, catalog, in this order.
//!
//! Nothing is changed before all checks have passed, but for the LOCK file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{Compaction, Database, DatabaseOptions, Seams, Shared};
use crate::catalog::{Catalog, CatalogRecovery, CatalogSetup};
use crate::compaction::{CompactionCounters, CompactionOptions, Compactor, Subject};
use crate::error::{Corruption, OpenError};
use crate::flush::{FlushControl, FlushJob, FlushParts};
use crate::hard_state::{self, HardState};
use crate::identity::{self, DatabaseId, Identity};
use crate::keyspace::Keyspaces;
use crate::log::{LogNumber, LogShared, LogState, ReplayLogs};
use crate::metrics::Counters;
use crate::sstable::BlockCache;
use crate::vfs::Vfs;
use crate::wal::Wal;
use crate::wal::files::{Keeper, WalFiles};
use crate::wal::flusher::{Flusher, Writer};
use crate::wal::queue::{Queue, QueueStart};
use crate::wal::recover::{self, Recovery};

const LOCK_NAME: &str = "LOCK";

/// What an interrupted first open may leave before there is an identity.
const BEFORE_IDENTITY: [&str; 3] = [LOCK_NAME, hard_state::FILE_NAME, identity::TEMPORARY_NAME];

pub(super) fn open(
    directory: &Path,
    options: DatabaseOptions,
    seams: Seams,
) -> Result<Database, OpenError> {
    let vfs = &*seams.vfs;
    refuse_foreign(vfs, directory)?;
    vfs.create_dir_all(directory)
        .map_err(OpenError::io("make", directory))?;
    let lock = vfs.lock(&directory.join(LOCK_NAME)).map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            OpenError::Locked {
                directory: directory.to_owned(),
            }
        } else {
            OpenError::io("lock", directory)(error)
        }
    })?;
    let identity = match Identity::load(vfs, directory)? {
        Some(identity) => identity,
        None => create(&seams, directory)?,
    };
    let hard_state = HardState::load(vfs, directory, identity.database)?;
    let mut logs = ReplayLogs::default();
    let mut recovery = recover::read(
        vfs,
        directory,
        identity.database,
        hard_state.wal_mark(),
        &mut logs,
    )?;
    check_votes(&hard_state, &logs, directory, &recovery)?;
    let catalog = read_catalog(directory, &options, &seams, identity.database)?;
    hard_state.make_durable(directory)?;
    recovery.repair(vfs)?;
    if let Some(newest) = recovery.predecessor() {
        hard_state.note_durable(newest.number, newest.length);
    }
    // The log comes first: what a table set holds was in the log before.
    let catalog = catalog.start(&*seams.executor)?;
    let opened = Opened {
        identity,
        hard_state,
        recovery,
        logs,
        catalog,
    };
    let shared = start(directory, options, seams, opened);
    *shared.lock.lock().expect("nobody else has it yet") = Some(lock);
    Ok(Database {
        shared: Arc::new(shared),
    })
}

/// A directory with files but without identity is somebody else's, or lost its identity.
fn refuse_foreign(vfs: &dyn Vfs, directory: &Path) -> Result<(), OpenError> {
    let names = match vfs.list(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(OpenError::io("list", directory))?,
    };
    if names.iter().any(|name| name == identity::FILE_NAME) {
        return Ok(());
    }
    match names
        .into_iter()
        .find(|name| !BEFORE_IDENTITY.contains(&name.as_str()))
    {
        Some(file) => Err(OpenError::NotADatabase {
            directory: directory.to_owned(),
            file,
        }),
        None => Ok(()),
    }
}

/// Makes a new database. IDENTITY comes last: without it, all else is made again.
fn create(seams: &Seams, directory: &Path) -> Result<Identity, OpenError> {
    let vfs = &*seams.vfs;
    let identity = Identity {
        database: DatabaseId::random(&*seams.rng),
        owner: None,
    };
    HardState::create(vfs, directory, identity.database)
        .map_err(OpenError::io("make HARDSTATE in", directory))?;
    identity
        .store(vfs, directory)
        .map_err(OpenError::io("make IDENTITY in", directory))?;
    Ok(identity)
}

/// Checks the table sets of all keyspaces; changes nothing.
fn read_catalog(
    directory: &Path,
    options: &DatabaseOptions,
    seams: &Seams,
    database: DatabaseId,
) -> Result<CatalogRecovery, OpenError> {
    CatalogRecovery::read(CatalogSetup {
        vfs: Arc::clone(&seams.vfs),
        directory: directory.to_owned(),
        database,
        cache: Arc::new(BlockCache::new(options.block_cache_bytes)),
        manifest_bytes_min: options.manifest_bytes,
    })
}

/// A vote of HARDSTATE that the write-ahead log does not hold proves that the log lost bytes.
fn check_votes(
    hard_state: &HardState,
    logs: &ReplayLogs,
    directory: &Path,
    recovery: &Recovery,
) -> Result<(), OpenError> {
    for (number, promised) in hard_state.votes() {
        let found = logs.state(number).and_then(|state| state.vote.as_ref());
        let sequence = found.map_or(0, |stored| stored.sequence);
        let same = found.is_none_or(|stored| *stored == promised);
        if sequence < promised.sequence || (sequence == promised.sequence && !same) {
            let path = recovery.files.last().map_or_else(
                || directory.join(hard_state::FILE_NAME),
                |file| file.path.clone(),
            );
            let fault = format!(
                "log {number} has vote {sequence} here and vote {} in HARDSTATE",
                promised.sequence
            );
            return Err(Corruption::new(path, recovery.newest_length(), fault).into());
        }
    }
    Ok(())
}

/// What was read from a directory and made durable.
struct Opened {
    identity: Identity,
    hard_state: HardState,
    recovery: Recovery,
    logs: ReplayLogs,
    catalog: Arc<Catalog>,
}

/// Builds the running parts over what was read.
fn start(directory: &Path, options: DatabaseOptions, seams: Seams, opened: Opened) -> Shared {
    let Opened {
        identity,
        hard_state,
        recovery,
        logs,
        catalog,
    } = opened;
    let states = logs.into_states();
    let wal = wal(
        directory,
        &options,
        &seams,
        identity.database,
        recovery,
        &states,
    );
    let hard_state = Arc::new(hard_state);
    let writer = Writer::new(
        Arc::clone(&wal),
        Arc::clone(&hard_state),
        Arc::clone(&seams.clock),
    );
    let writer = Arc::new(Mutex::new(writer));
    let flusher = seams
        .executor
        .spawn("wal-flusher", Box::new(Flusher(Arc::clone(&writer))));
    let notify = flusher.clone();
    let keeper = Keeper {
        files: Arc::clone(&wal.files),
        notify_flusher: Box::new(move || notify.notify()),
    };
    wal.attach(
        flusher,
        seams.executor.spawn("wal-keeper", Box::new(keeper)),
    );
    let logs = share(states, &wal, &options);
    let keyspaces = Arc::<Keyspaces>::default();
    let compaction = start_compaction(&options, &seams, &keyspaces, &catalog);
    let flush_parts = FlushParts {
        keyspaces: Arc::clone(&keyspaces),
        catalog: Arc::clone(&catalog),
        wal: Arc::clone(&wal),
        clock: Arc::clone(&seams.clock),
        compaction: compaction.job.clone(),
        interval: options.flush_interval,
        table_bytes: options.table_bytes,
    };
    let flush = start_flush(flush_parts, &seams);
    Shared {
        directory: directory.to_owned(),
        options,
        seams,
        hard_state,
        identity: Mutex::new(identity),
        wal,
        writer,
        logs: Mutex::new(logs),
        catalog,
        flush,
        compaction,
        keyspaces,
        lock: Mutex::new(None),
    }
}

fn start_compaction(
    options: &DatabaseOptions,
    seams: &Seams,
    keyspaces: &Arc<Keyspaces>,
    catalog: &Arc<Catalog>,
) -> Compaction {
    let counters = Arc::<CompactionCounters>::default();
    let keyspaces = Arc::clone(keyspaces);
    let subjects = move || {
        let subject = |keyspace| Arc::new(keyspace) as Arc<dyn Subject>;
        keyspaces.all().into_iter().map(subject).collect()
    };
    let job = Compactor::new(
        Arc::clone(catalog),
        Box::new(subjects),
        CompactionOptions::from(options),
        Arc::clone(&seams.clock),
        Arc::clone(&counters),
    );
    let job = seams.executor.spawn("compaction", Box::new(job));
    Compaction { job, counters }
}

fn start_flush(parts: FlushParts, seams: &Seams) -> Arc<FlushControl> {
    let control = Arc::<FlushControl>::default();
    let job = FlushJob::new(parts, Arc::clone(&control));
    control.attach(seams.executor.spawn("flush", Box::new(job)));
    control
}

fn wal(
    directory: &Path,
    options: &DatabaseOptions,
    seams: &Seams,
    database: DatabaseId,
    recovery: Recovery,
    states: &BTreeMap<LogNumber, LogState>,
) -> Arc<Wal> {
    let end = recovery.end();
    let queue = Queue::new(QueueStart {
        database,
        file_bytes: options.wal_file_bytes,
        file: recovery.next_file,
        predecessor: recovery.predecessor(),
        file_lsn: end,
        next_sequence: recovery.next_sequence,
        heads: states
            .iter()
            .map(|(number, state)| (*number, state.to_head()))
            .collect(),
    });
    let vfs = Arc::clone(&seams.vfs);
    let files = WalFiles::new(
        vfs,
        directory.to_owned(),
        database,
        options.wal_file_bytes,
        recovery.files,
        end,
    );
    files.want(queue.file());
    Arc::new(Wal::new(queue, Arc::new(files), Arc::new(Counters::new())))
}

fn share(
    states: BTreeMap<LogNumber, LogState>,
    wal: &Arc<Wal>,
    options: &DatabaseOptions,
) -> BTreeMap<LogNumber, Arc<LogShared>> {
    let shared = states.into_iter().map(|(number, state)| {
        let log = LogShared::new(number, state, Arc::clone(wal), options.hot_tail_bytes);
        (number, Arc::new(log))
    });
    shared.collect()
}
