//! Time as a value that is handed in.
//!
//! [`Monotonic`] measures distances and never goes back; [`WallMillis`] is what people and other
//! machines call the time, and may jump. They are different types so that one cannot stand in for
//! the other.

use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point on a clock that never goes back, in nanoseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The point `nanos` nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero when `earlier` is in fact later.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    /// Saturates at the end of the clock, 584 years away.
    fn add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(nanos(distance)))
    }
}

/// Milliseconds since the Unix epoch by the wall clock, which may jump in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallMillis(u64);

impl WallMillis {
    /// The wall time `millis` milliseconds after the Unix epoch.
    pub const fn new(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The only source of time.
pub trait Clock: Send + Sync + 'static {
    /// Now, for distances and deadlines.
    fn monotonic(&self) -> Monotonic;

    /// Now, for stamps that leave the process.
    fn wall(&self) -> WallMillis;
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic side starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock seam")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock seam")]
    fn monotonic(&self) -> Monotonic {
        Monotonic(nanos(self.start.elapsed()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock seam")]
    fn wall(&self) -> WallMillis {
        // A wall clock before 1970 reads as 1970: stamps only need to be numbers.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        WallMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that moves only when told to.
#[derive(Debug, Default)]
pub struct ManualClock {
    monotonic: AtomicU64,
    wall: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both clocks ahead by `distance`; the wall clock by its whole milliseconds.
    pub fn advance(&self, distance: Duration) {
        let before = self.monotonic.fetch_add(nanos(distance), Ordering::SeqCst);
        let millis = before.saturating_add(nanos(distance)) / 1_000_000 - before / 1_000_000;
        self.wall.fetch_add(millis, Ordering::SeqCst);
    }

    /// Sets the wall clock, also backwards; the monotonic clock stays.
    pub fn set_wall(&self, wall: WallMillis) {
        self.wall.store(wall.get(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn monotonic(&self) -> Monotonic {
        Monotonic(self.monotonic.load(Ordering::SeqCst))
    }

    fn wall(&self) -> WallMillis {
        WallMillis(self.wall.load(Ordering::SeqCst))
    }
}

fn nanos(distance: Duration) -> u64 {
    u64::try_from(distance.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
