//! Counts the ticks for which nothing happened.
//!
//! Silence is measured in ticks of the connection's own interval and not by a clock: a process that
//! was itself stopped for a while sees one late tick, finds in its sockets what arrived meanwhile,
//! and does not blame its peers.

use std::time::Duration;

/// How many more ticks a connection waits for a sign of life.
#[derive(Debug)]
pub(super) struct Patience {
    ticks: u32,
    ticks_max: u32,
}

impl Patience {
    /// Lasts for `time`, which is counted in ticks of `interval`, at least two.
    pub(super) fn new(time: Duration, interval: Duration) -> Self {
        let ticks = time.as_nanos() / interval.as_nanos().max(1);
        Self {
            ticks: 0,
            ticks_max: u32::try_from(ticks).unwrap_or(u32::MAX).max(2),
        }
    }

    /// Something happened.
    pub(super) fn renew(&mut self) {
        self.ticks = 0;
    }

    /// One more interval has passed; whether the patience is at its end.
    pub(super) fn tick(&mut self) -> bool {
        self.ticks = self.ticks.saturating_add(1);
        self.ticks > self.ticks_max
    }
}
