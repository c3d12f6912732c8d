//! Clocks that follow tokio's paused clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kelp_seams::{Clock, Monotonic, WallMillis};
use tokio::time::Instant;

/// Where wall clocks start: a plausible date, far from zero.
const WALL_START_MILLIS: u64 = 1_800_000_000_000;

/// How long conditions may take, in virtual time: many failovers.
const PATIENCE: Duration = Duration::from_mins(1);

/// A clock in virtual time with a wall clock that may be wrong.
pub(crate) struct VirtualClock {
    start: Instant,
    skew_millis: AtomicI64,
}

impl VirtualClock {
    /// A clock that agrees with all others made from the same `start`.
    pub(crate) fn new(start: Instant) -> Self {
        Self {
            start,
            skew_millis: AtomicI64::new(0),
        }
    }

    /// Sets how far the wall clock is ahead of the truth.
    pub(crate) fn skew(&self, millis: i64) {
        self.skew_millis.store(millis, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn monotonic(&self) -> Monotonic {
        let nanos = Instant::now().duration_since(self.start).as_nanos();
        Monotonic::from_nanos(u64::try_from(nanos).unwrap())
    }

    fn wall(&self) -> WallMillis {
        let elapsed = Instant::now().duration_since(self.start).as_millis();
        let truth = WALL_START_MILLIS + u64::try_from(elapsed).unwrap();
        WallMillis::new(
            truth
                .checked_add_signed(self.skew_millis.load(Ordering::Relaxed))
                .unwrap(),
        )
    }
}

/// Lets virtual time pass until `condition` gives something.
///
/// # Panics
///
/// After a minute of virtual time; `what` says what was waited for.
pub(crate) async fn eventually<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    within_patience(condition)
        .await
        .unwrap_or_else(|| panic!("never happened: {what}"))
}

/// Lets virtual time pass until `condition` gives something; `None` after a minute of it.
pub(crate) async fn within_patience<T>(mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= deadline {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
