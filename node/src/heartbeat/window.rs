//! Which heartbeats of a peer have arrived: no one twice, and how many of the last ones.

use super::liveness::Lost;

/// Sequences that the window remembers; the bits of its map.
const REMEMBERED: u64 = 128;

/// Sequences that loss is counted over: ten seconds of heartbeats, so that one lost shows as one in
/// a hundred. Fewer than are remembered.
const LOSS_WINDOW: u64 = 100;

const _: () = assert!(LOSS_WINDOW <= REMEMBERED);

/// The arrivals of one sender.
///
/// Invariants: `boot` never goes back; within a boot `highest` never goes back; bit `n` of `seen`
/// tells whether sequence `highest - n` has arrived, so bit 0 is set once anything has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    boot: u64,
    highest: u64,
    /// The lowest sequence that has arrived: what was sent before is not known to be lost.
    lowest: u64,
    seen: u128,
}

impl Window {
    /// Takes note of an arrival; `false` when it is a repetition or too old to tell.
    pub(super) fn accept(&mut self, boot: u64, sequence: u64) -> bool {
        if sequence == 0 || boot < self.boot {
            return false;
        }
        if boot > self.boot || self.seen == 0 {
            *self = Self {
                boot,
                highest: sequence,
                lowest: sequence,
                seen: 1,
            };
            return true;
        }
        if sequence > self.highest {
            self.seen = shifted(self.seen, sequence - self.highest) | 1;
            self.highest = sequence;
            return true;
        }
        let bit = shifted(1, self.highest - sequence);
        if bit == 0 || self.seen & bit != 0 {
            return false;
        }
        self.seen |= bit;
        self.lowest = self.lowest.min(sequence);
        true
    }

    /// Whether `sequence` of `boot` is the newest that has arrived.
    pub(super) fn is_newest(&self, boot: u64, sequence: u64) -> bool {
        boot == self.boot && sequence == self.highest
    }

    /// How many of the last sequences arrived, when `overdue` more should have by now. `None`
    /// before the first.
    pub(super) fn tally(&self, overdue: u64) -> Option<Lost> {
        if self.seen == 0 {
            return None;
        }
        let overdue = overdue.min(LOSS_WINDOW);
        let known = (self.highest - self.lowest).saturating_add(1);
        let window = known.saturating_add(overdue).min(LOSS_WINDOW);
        let looked_at = window - overdue.min(window);
        let mask = shifted(1, looked_at).wrapping_sub(1);
        let received = (self.seen & mask).count_ones();
        Some(Lost {
            received: u16::try_from(received).unwrap_or(u16::MAX),
            window: u16::try_from(window).unwrap_or(u16::MAX),
        })
    }
}

/// `bits` moved up by `places`, out at the top.
fn shifted(bits: u128, places: u64) -> u128 {
    let places = u32::try_from(places).unwrap_or(u32::MAX);
    bits.checked_shl(places).unwrap_or(0)
}

#[cfg(test)]
mod tests;
