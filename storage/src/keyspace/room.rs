//! Those who wait until a keyspace has room again.
//!
//! Nobody is put to sleep: a writer that finds no room leaves a call behind and does something
//! else. The flush job makes the calls, after the step that made room.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kelp_seams::Completion;

/// The calls to be made, and whether there was room when it was looked last.
#[derive(Default)]
pub(super) struct Room {
    waiting: Mutex<Vec<Completion>>,
    stalled: AtomicBool,
}

impl Room {
    /// Takes note of whether there is room now; true when it has just run out.
    pub(super) fn note(&self, has_room: bool) -> bool {
        let stalled_before = self.stalled.swap(!has_room, Ordering::Relaxed);
        !has_room && !stalled_before
    }

    /// Keeps `wake` while there is no room, else gives it back. `has_room` is asked with the lock
    /// held that [`Room::take`] also holds, so that no call is left behind.
    pub(super) fn wait(
        &self,
        wake: Completion,
        has_room: impl FnOnce() -> bool,
    ) -> Option<Completion> {
        let mut waiting = self.lock();
        if has_room() {
            return Some(wake);
        }
        waiting.push(wake);
        None
    }

    /// The calls to make now.
    pub(super) fn take(&self, has_room: impl FnOnce() -> bool) -> Vec<Completion> {
        let mut waiting = self.lock();
        if waiting.is_empty() || !has_room() {
            return Vec::new();
        }
        std::mem::take(&mut waiting)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Completion>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
