//! Round trip and clock offset, from the four stamps of a heartbeat and its echo.
//!
//! ```text
//! here   T1 ---------.                .--> T4
//! peer                `--> T2 ... T3 -'
//! ```
//!
//! The round trip comes from monotonic clocks alone, so that a wall clock that is set does not show
//! in it; the offset comes from wall clocks. An exchange that took long tells little about the
//! offset, so the one with the shortest round trip of the last few is believed, as NTP does.

use std::time::Duration;

use kelp_seams::Monotonic;
use kelp_wire::{HeartbeatEcho, HeartbeatStamp};

use super::exchange::Moment;

/// Samples of which the shortest round trip is believed.
const SAMPLES: usize = 8;

/// A new round trip moves the smoothed one by this part of the difference, as in TCP.
const SMOOTHING: u32 = 8;

/// Without a sample for this long the values are not shown any more: the peer has stopped to echo.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// A longer round trip is the echo of a datagram that nobody waits for any more, or nonsense.
const ROUND_TRIP_MAX: Duration = Duration::from_mins(1);

/// What has been measured of one boot of a peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimate {
    smoothed: Option<Duration>,
    samples: [Option<Sample>; SAMPLES],
    taken: usize,
    /// The own sequence that the last sample was about: an echo is repeated until a newer one.
    sequence: u64,
    at: Monotonic,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    round_trip: Duration,
    offset_millis: i64,
}

impl Estimate {
    /// Takes the echo that arrived at `now` in a heartbeat sent at `sent` by the peer's clocks.
    pub(super) fn add(&mut self, echo: &HeartbeatEcho, sent: HeartbeatStamp, now: Moment) {
        let out_and_back = now
            .monotonic
            .as_nanos()
            .checked_sub(echo.sent.monotonic_nanos);
        // From the future it is no echo of ours.
        let Some(out_and_back) = out_and_back.filter(|_| echo.sequence > self.sequence) else {
            return;
        };
        let round_trip = Duration::from_nanos(out_and_back.saturating_sub(echo.held_nanos));
        if round_trip > ROUND_TRIP_MAX {
            return;
        }
        let between = |from: u64, to: u64| i128::from(to) - i128::from(from);
        let there = between(echo.sent.wall_millis, echo.received_wall_millis);
        let back = between(now.wall.get(), sent.wall_millis);
        let offset = i128::midpoint(there, back);
        let bound = if offset < 0 { i64::MIN } else { i64::MAX };
        let offset_millis = i64::try_from(offset).unwrap_or(bound);
        self.sequence = echo.sequence;
        self.at = now.monotonic;
        self.smoothed = Some(match self.smoothed {
            None => round_trip,
            Some(smoothed) => (smoothed * (SMOOTHING - 1) + round_trip) / SMOOTHING,
        });
        self.samples[self.taken % SAMPLES] = Some(Sample {
            round_trip,
            offset_millis,
        });
        self.taken += 1;
    }

    /// The smoothed round trip, unless it is out of date.
    pub(super) fn round_trip(&self, now: Monotonic) -> Option<Duration> {
        self.smoothed.filter(|_| self.is_fresh(now))
    }

    /// By how much the peer's wall clock is ahead, unless that is out of date.
    pub(super) fn offset_millis(&self, now: Monotonic) -> Option<i64> {
        let samples = self.samples.iter().flatten();
        let best = samples.min_by_key(|sample| sample.round_trip)?;
        Some(best.offset_millis).filter(|_| self.is_fresh(now))
    }

    fn is_fresh(&self, now: Monotonic) -> bool {
        now.saturating_duration_since(self.at) < STALE_AFTER
    }
}

#[cfg(test)]
mod tests;
