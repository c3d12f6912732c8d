//! Writes what waits in the queue: one write, one sync, callbacks in order.
//!
//! ```text
//!   queue has a callback ---> take all -> write -> sync -> [HARDSTATE] -> callbacks -> again
//!   idle for 20 ms -------> write unsynced records, or an empty frame that witnesses the last sync
//!   no space -------------> the same bytes at the same place again, 100 ms later
//!   any other failure ----> poisoned: every callback fails, nothing is written any more
//! ```

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kelp_seams::{Clock, Completion, Job, Monotonic, Next, Step};

use super::Wal;
use super::files::Prepared;
use super::queue::{Group, Lsn, Status};
use crate::error::StorageError;
use crate::file_number::FileNumber;
use crate::hard_state::HardState;
use crate::log::Durable;
use crate::vfs::VfsFile;

/// How long after the last group its sync is witnessed. Shorter costs writes under a thin load;
/// longer leaves the last group longer without a witness.
const IDLE_BEFORE_WITNESS: Duration = Duration::from_millis(20);

/// How long to wait for space before the same write is tried again.
const NO_SPACE_RETRY: Duration = Duration::from_millis(100);

/// Error numbers of a full disk and an exhausted quota.
const NO_SPACE: [i32; 2] = [28, 122];

/// The one writer of the write-ahead log.
///
/// Invariants: groups are written in the order in which they were taken; a group is taken only
/// when the one before it is done.
pub(crate) struct Writer {
    wal: Arc<Wal>,
    hard_state: Arc<HardState>,
    clock: Arc<dyn Clock>,
    current: Option<(FileNumber, Arc<dyn VfsFile>)>,
    /// The durable part of the current file.
    synced: u64,
    /// Whether the last sync has no witness yet.
    unwitnessed: bool,
    active_at: Monotonic,
    /// The group that waits for a file or for space.
    pending: Option<Group>,
}

enum Failure {
    /// The next file is being made; whoever makes it notifies.
    Busy,
    NoSpace,
    Broken(io::Error),
}

impl Writer {
    pub(crate) fn new(wal: Arc<Wal>, hard_state: Arc<HardState>, clock: Arc<dyn Clock>) -> Self {
        let active_at = clock.monotonic();
        Self {
            wal,
            hard_state,
            clock,
            current: None,
            synced: 0,
            unwitnessed: false,
            active_at,
            pending: None,
        }
    }

    fn step(&mut self) -> Step {
        if self.pending.is_none() {
            match self.take_due() {
                Ok(group) => self.pending = Some(group),
                Err(next) => return Step::then(next),
            }
        }
        let Some(mut group) = self.pending.take() else {
            return Step::then(Next::Idle);
        };
        match self.write(&mut group) {
            Ok(()) => Step {
                next: Next::Again,
                completions: self.finish(group),
            },
            Err(Failure::Busy) => {
                self.pending = Some(group);
                Step::then(Next::Idle)
            }
            Err(Failure::NoSpace) => {
                self.pending = Some(group);
                self.wal.counters.set_disk_full(true);
                Step::then(Next::At(self.clock.monotonic() + NO_SPACE_RETRY))
            }
            Err(Failure::Broken(error)) => Step {
                next: Next::Idle,
                completions: self.fail(group, error),
            },
        }
    }

    /// Takes a group if one is due, or says when to look again.
    fn take_due(&mut self) -> Result<Group, Next> {
        let now = self.clock.monotonic();
        let mut queue = self.wal.lock();
        if !matches!(queue.status, Status::Open) {
            return Err(Next::Idle);
        }
        if queue.sync_wanted {
            return Ok(queue.take());
        }
        let waiting = queue.waiting_bytes() > 0;
        if !waiting && !self.unwitnessed {
            queue.timer_armed = false;
            return Err(Next::Idle);
        }
        let due = self.active_at + IDLE_BEFORE_WITNESS;
        if now < due {
            queue.timer_armed = true;
            return Err(Next::At(due));
        }
        if !waiting {
            queue.push_witness();
        }
        Ok(queue.take())
    }

    fn write(&mut self, group: &mut Group) -> Result<(), Failure> {
        if group.bytes.is_empty() {
            // Callbacks without records: all that was before is durable, except what was written
            // without a sync.
            return self.sync(group);
        }
        let file = self.file(group)?;
        group.encode_frames(self.synced);
        file.write_at(&group.bytes, group.offset)
            .map_err(classify)?;
        self.wal.files.set_written(group.end_lsn());
        self.wal
            .counters
            .wrote(group.bytes.len(), group.frame_count());
        self.wal.counters.set_disk_full(false);
        // Its own frames bear witness of everything before the group.
        self.unwitnessed = false;
        self.sync(group)
    }

    fn sync(&mut self, group: &Group) -> Result<(), Failure> {
        let Some((number, file)) = &self.current else {
            return Ok(());
        };
        if !group.sync {
            return Ok(());
        }
        let started = self.clock.monotonic();
        self.wal.counters.sync_started(started);
        file.sync_data().map_err(Failure::Broken)?;
        self.wal
            .counters
            .sync_ended(started, self.clock.monotonic());
        self.synced = self.synced.max(group.end_offset());
        self.unwitnessed = true;
        if let Some(votes) = &group.votes {
            let stored = self.hard_state.put_votes(votes, *number, self.synced);
            stored.map_err(Failure::Broken)?;
        }
        Ok(())
    }

    /// The file of the group, made if it is not there yet.
    fn file(&mut self, group: &Group) -> Result<Arc<dyn VfsFile>, Failure> {
        if let Some((number, file)) = &self.current
            && *number == group.file
        {
            return Ok(Arc::clone(file));
        }
        let file = match self.wal.files.take_prepared(group.file) {
            Prepared::Ready(file) => file,
            Prepared::Busy => return Err(Failure::Busy),
            Prepared::Failed(error) => return Err(Failure::Broken(error)),
            Prepared::Missing => self.wal.files.create(group.file).map_err(|failed| {
                if failed.retryable {
                    classify(failed.error)
                } else {
                    Failure::Broken(failed.error)
                }
            })?,
        };
        self.wal
            .files
            .add(group.file, Lsn(group.file_lsn), Arc::clone(&file));
        self.current = Some((group.file, Arc::clone(&file)));
        self.synced = 0;
        Ok(file)
    }

    fn finish(&mut self, group: Group) -> Vec<Completion> {
        self.active_at = self.clock.monotonic();
        if group.sync {
            let retired = self.wal.files.retire(group.live_from);
            let current = self.current.as_ref().map(|(number, _)| *number);
            let wanted = current.is_some_and(|number| group.next_file > number)
                && self.wal.files.want(group.next_file);
            if wanted || retired {
                self.wal.notify_keeper();
            }
        }
        self.wal.counters.unqueued(group.waiting_bytes);
        let Group {
            bytes, callbacks, ..
        } = group;
        self.wal.lock().give_back(bytes);
        complete(callbacks, Ok(()))
    }

    fn fail(&mut self, group: Group, error: io::Error) -> Vec<Completion> {
        tracing::error!(%error, "writing the log failed, the database is poisoned");
        let (error, waiting) = self.wal.poison(error);
        let mut callbacks = group.callbacks;
        callbacks.extend(waiting);
        complete(callbacks, Err(error))
    }

    /// Writes all that waits and seals the file. To be called once no job runs any more; what is
    /// submitted meanwhile is written too or refused.
    pub(crate) fn close(&mut self) -> Vec<Completion> {
        let mut completions = Vec::new();
        if let Some(group) = self.pending.take() {
            completions.extend(self.write_last(group));
        }
        if let Some(group) = self.take_waiting() {
            completions.extend(self.write_last(group));
        }
        if let Some(group) = self.take_seal() {
            completions.extend(self.seal(group));
        }
        completions
    }

    /// Takes what waits, if the database is not poisoned.
    fn take_waiting(&self) -> Option<Group> {
        let mut queue = self.wal.lock();
        let due = queue.sync_wanted || queue.waiting_bytes() > 0;
        (due && matches!(queue.status, Status::Open)).then(|| queue.take())
    }

    fn write_last(&mut self, mut group: Group) -> Vec<Completion> {
        group.sync = true;
        match self.write(&mut group) {
            Ok(()) => self.finish(group),
            // The keeper is gone, so nothing is busy; without space this process cannot wait.
            Err(Failure::Busy | Failure::NoSpace) => {
                self.fail(group, io::ErrorKind::StorageFull.into())
            }
            Err(Failure::Broken(error)) => self.fail(group, error),
        }
    }

    /// Refuses submissions from now on and takes the last group: a seal behind all that was still
    /// submitted. None when there is nothing to seal, or when the database is poisoned.
    fn take_seal(&self) -> Option<Group> {
        let mut queue = self.wal.lock();
        if !matches!(queue.status, Status::Open) {
            return None;
        }
        queue.status = Status::Closed;
        let waiting = queue.sync_wanted || queue.waiting_bytes() > 0;
        if !waiting && !queue.file_is_begun() && !self.unwitnessed {
            return None;
        }
        queue.push_seal();
        Some(queue.take())
    }

    /// Ends the file with a durable seal, which also witnesses the last sync.
    fn seal(&mut self, mut group: Group) -> Vec<Completion> {
        let sealed = self.write_seal(&mut group);
        if let Err(error) = &sealed {
            tracing::warn!(%error, "cannot seal the log, the next open repairs it");
        }
        self.wal.counters.unqueued(group.waiting_bytes);
        complete(
            group.callbacks,
            sealed.map_err(|error| StorageError::Poisoned(Arc::new(error))),
        )
    }

    fn write_seal(&mut self, group: &mut Group) -> io::Result<()> {
        let file = self.file(group).map_err(|failure| match failure {
            Failure::Broken(error) => error,
            Failure::Busy | Failure::NoSpace => io::ErrorKind::StorageFull.into(),
        })?;
        group.encode_frames(self.synced);
        file.write_at(&group.bytes, group.offset)?;
        self.wal.files.set_written(group.end_lsn());
        file.set_len(group.end_offset())?;
        file.sync_all()?;
        // Even the loss of the whole newest file is noticed after a clean end.
        match &group.votes {
            Some(votes) => self
                .hard_state
                .put_votes(votes, group.file, group.end_offset()),
            None => self.hard_state.put_durable(group.file, group.end_offset()),
        }
    }
}

fn classify(error: io::Error) -> Failure {
    if error
        .raw_os_error()
        .is_some_and(|number| NO_SPACE.contains(&number))
    {
        Failure::NoSpace
    } else {
        Failure::Broken(error)
    }
}

/// One completion that runs all callbacks in order.
fn complete(callbacks: Vec<Durable>, result: Result<(), StorageError>) -> Vec<Completion> {
    if callbacks.is_empty() {
        return Vec::new();
    }
    vec![Box::new(move || {
        for callback in callbacks {
            callback(result.clone());
        }
    })]
}

/// The flusher job; the writer is shared with whoever closes the database after the job's end.
pub(crate) struct Flusher(pub(crate) Arc<Mutex<Writer>>);

impl Job for Flusher {
    fn step(&mut self) -> Step {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).step()
    }
}
