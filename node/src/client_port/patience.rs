//! How long a connection waits for its client: for the rest of a frame, and for replies to be
//! taken.
//!
//! A clock runs only while it is the client's turn: not for input while the node itself does not
//! read, and not for output while there is none. With no clock running nobody looks at the time, so
//! an idle connection costs no processor.

use std::time::Duration;

use kelp_seams::Monotonic;

/// A frame that has begun must be complete within this time; so must the hello.
pub(crate) const FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// A client that takes no byte of its replies for this long is gone.
const WRITE_STALL_MAX: Duration = Duration::from_secs(30);

/// Whose time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The rest of a frame, or the hello, has not come.
    Frame,
    /// Nothing of the output was taken.
    Output,
}

/// Since when the client is awaited.
#[derive(Default)]
pub(crate) struct Patience {
    frame_since: Option<Monotonic>,
    unsent_since: Option<Monotonic>,
}

impl Patience {
    /// Frames came, or output was taken: what is awaited from now on is awaited anew.
    pub(crate) fn frame_came(&mut self) {
        self.frame_since = None;
    }

    /// See [`Patience::frame_came`].
    pub(crate) fn output_was_taken(&mut self) {
        self.unsent_since = None;
    }

    /// Notes what is awaited from the client now.
    pub(crate) fn watch(&mut self, frame: bool, output: bool, now: impl Fn() -> Monotonic) {
        let watch = |since: &mut Option<Monotonic>, awaited: bool| {
            if !awaited {
                *since = None;
            } else if since.is_none() {
                *since = Some(now());
            }
        };
        watch(&mut self.frame_since, frame);
        watch(&mut self.unsent_since, output);
    }

    /// True while anything is awaited.
    pub(crate) fn is_running(&self) -> bool {
        self.frame_since.is_some() || self.unsent_since.is_some()
    }

    /// What the client is late with.
    pub(crate) fn overdue(&self, now: Monotonic) -> Option<Overdue> {
        let over = |since: Option<Monotonic>, limit| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
        };
        if over(self.unsent_since, WRITE_STALL_MAX) {
            return Some(Overdue::Output);
        }
        over(self.frame_since, FRAME_TIME_MAX).then_some(Overdue::Frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_frame_that_stays_incomplete_is_overdue_after_ten_seconds() {
        let mut patience = Patience::default();
        patience.watch(true, false, || at(1));
        patience.watch(true, false, || at(9));
        assert_eq!(patience.overdue(at(10)), None);
        assert_eq!(patience.overdue(at(11)), Some(Overdue::Frame));
        patience.frame_came();
        patience.watch(true, false, || at(11));
        assert_eq!(patience.overdue(at(20)), None);
    }

    #[test]
    fn the_frame_clock_stands_still_while_the_node_does_not_read() {
        let mut patience = Patience::default();
        patience.watch(true, false, || at(0));
        patience.watch(false, false, || at(9));
        assert_eq!(patience.overdue(at(100)), None);
        patience.watch(true, false, || at(100));
        assert_eq!(patience.overdue(at(109)), None);
        assert_eq!(patience.overdue(at(110)), Some(Overdue::Frame));
    }

    #[test]
    fn output_that_nobody_takes_is_overdue_after_thirty_seconds() {
        let mut patience = Patience::default();
        patience.watch(false, true, || at(0));
        assert_eq!(patience.overdue(at(29)), None);
        assert_eq!(patience.overdue(at(30)), Some(Overdue::Output));
        patience.output_was_taken();
        patience.watch(false, true, || at(30));
        assert_eq!(patience.overdue(at(59)), None);
    }

    #[test]
    fn nothing_is_timed_on_an_idle_connection() {
        let mut patience = Patience::default();
        assert!(!patience.is_running());
        patience.watch(true, true, || at(0));
        assert!(patience.is_running());
        patience.watch(false, false, || at(0));
        assert!(!patience.is_running());
    }
}
