//! What one connection holds in memory, and when that is enough.

use super::PortContext;
use super::budget::Share;
use super::output::Output;

/// Requests in flight on one connection; far more than keeps two cores busy, and few enough that a
/// connection's bookkeeping stays under a megabyte.
const IN_FLIGHT_COUNT_MAX: usize = 4_096;

/// Bytes of requests in flight on one connection: a few of the largest values.
const IN_FLIGHT_BYTES_MAX: usize = 32 << 20;

/// With this much unsent output the connection produces no more until its client reads.
const OUTPUT_HIGH_WATER: usize = 1 << 20;

/// Requests, replies and half-read input of one connection.
pub(crate) struct Holdings {
    share: Share,
    /// What is to be sent next.
    pub(crate) output: Output,
    /// Bytes of requests that have not been answered.
    pub(crate) in_flight_bytes: usize,
    /// Bytes of replies that wait for those before them.
    pub(crate) waiting_bytes: usize,
    input_bytes: usize,
}

impl Holdings {
    pub(crate) fn new(port: &PortContext) -> Self {
        Self {
            share: port.budget.share(),
            output: Output::default(),
            in_flight_bytes: 0,
            waiting_bytes: 0,
            input_bytes: 0,
        }
    }

    /// False while the connection, with so many requests in flight, has enough to do and its client
    /// must wait.
    pub(crate) fn accepts_input(&self, in_flight_count: usize) -> bool {
        in_flight_count < IN_FLIGHT_COUNT_MAX
            && self.in_flight_bytes < IN_FLIGHT_BYTES_MAX
            && self.output.len() + self.waiting_bytes < OUTPUT_HIGH_WATER
    }

    /// A reply may be large. One at a time goes out in any case, so that a connection gets on
    /// although others hold all there is; more only while there is room for them.
    pub(crate) fn may_serve(&self) -> bool {
        let unsent = self.output.len() + self.waiting_bytes;
        unsent == 0 || (unsent < OUTPUT_HIGH_WATER && self.has_room())
    }

    /// Tells the budget what the connection holds, with an input buffer of this size.
    pub(crate) fn report(&mut self, input_bytes: usize) {
        self.input_bytes = input_bytes;
        self.share.set(self.bytes());
    }

    /// True while the connections of the node together may take more.
    pub(crate) fn has_room(&self) -> bool {
        self.share.has_room(self.bytes())
    }

    fn bytes(&self) -> usize {
        self.in_flight_bytes + self.waiting_bytes + self.output.allocated() + self.input_bytes
    }
}
