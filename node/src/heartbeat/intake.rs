//! How many datagrams are looked at: enough for every peer, and no more than a flood may cost.

use std::time::Duration;

use tokio::time::Instant;

/// What one span of time may cost.
const SPAN: Duration = Duration::from_millis(100);

/// Datagrams per span that are looked at: four times what 128 peers send, and what a core does in
/// a hundredth of the span.
const LOOKED_AT_MAX: u32 = 512;

/// Datagrams per span that are taken from the socket at all. What comes beyond that is left to the
/// system, whose buffer drops it without costing this process anything.
const TAKEN_MAX: u32 = 2_048;

/// What to do with a datagram that was taken from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look at it.
    Look,
    /// Drop it unseen.
    Drop,
    /// Drop it unseen, and take no further one before this time.
    DropAndPause(Instant),
}

/// Counts the datagrams of the span that runs.
pub(super) struct Intake {
    ends: Instant,
    taken: u32,
}

impl Intake {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            ends: now + SPAN,
            taken: 0,
        }
    }

    /// Judges a datagram that arrived now.
    pub(super) fn judge(&mut self, now: Instant) -> Verdict {
        if now >= self.ends {
            *self = Self::new(now);
        }
        self.taken += 1;
        if self.taken <= LOOKED_AT_MAX {
            Verdict::Look
        } else if self.taken < TAKEN_MAX {
            Verdict::Drop
        } else {
            Verdict::DropAndPause(self.ends)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_share_and_the_next_one_begins_anew() {
        let start = Instant::now();
        let mut intake = Intake::new(start);
        let verdicts: Vec<_> = (0..TAKEN_MAX).map(|_| intake.judge(start)).collect();
        let count = |wanted| {
            verdicts
                .iter()
                .filter(|verdict| **verdict == wanted)
                .count()
        };
        assert_eq!(count(Verdict::Look), 512);
        assert_eq!(count(Verdict::Drop), 2_048 - 512 - 1);
        let pause = Verdict::DropAndPause(start + SPAN);
        assert_eq!(verdicts.last(), Some(&pause));
        assert_eq!(intake.judge(start + SPAN), Verdict::Look);
    }
}
