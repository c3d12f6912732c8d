//! Frees large memtables where it hurts nobody.
//!
//! Freeing a list of hundreds of thousands of nodes takes longer than any writer or reader may be
//! held up, and the last handle of a memtable may be dropped by either. So a large list goes to
//! whoever works in the background, who frees one list per call.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kelp_seams::JobHandle;

use super::List;

/// Lists with fewer entries are freed at once; that takes less than a millisecond.
const FREED_AT_ONCE_MAX: usize = 1024;

/// Takes the lists of dropped memtables.
#[derive(Default)]
pub(crate) struct Reclaimer {
    lists: Mutex<Lists>,
    /// Who frees them.
    job: OnceLock<JobHandle>,
}

#[derive(Default)]
struct Lists {
    waiting: Vec<List>,
    /// Nobody works in the background any more.
    closed: bool,
}

impl Reclaimer {
    /// Names the job that is told when there is something to free.
    pub(crate) fn attach(&self, job: JobHandle) {
        let _ = self.job.set(job);
    }

    /// Frees one list; false when there is none.
    pub(crate) fn free_one(&self) -> bool {
        let list = self.lock().waiting.pop();
        list.is_some()
    }

    /// Frees everything from now on where it is dropped.
    pub(crate) fn close(&self) {
        let waiting = {
            let mut lists = self.lock();
            lists.closed = true;
            std::mem::take(&mut lists.waiting)
        };
        drop(waiting);
    }

    /// Frees `list` of `entries` entries now or later.
    pub(super) fn take(&self, list: List, entries: usize) {
        let Some(job) = self.job.get().filter(|_| entries > FREED_AT_ONCE_MAX) else {
            return;
        };
        let mut lists = self.lock();
        if lists.closed {
            return;
        }
        lists.waiting.push(list);
        drop(lists);
        job.notify();
    }

    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
