//! The order of replies: a client of Redis takes the next reply for that to its oldest command.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::client_port::output::Output;

/// Replies in the order of their commands, of which some are not known yet.
///
/// Invariant: the front is never a reply that is known; it would have been sent.
#[derive(Default)]
pub(super) struct Slots {
    /// The number of the front.
    first: u64,
    waiting: VecDeque<Option<BytesMut>>,
    bytes: usize,
}

impl Slots {
    /// Opens the slot of the next command.
    pub(super) fn open(&mut self) -> u64 {
        let slot = self.first + u64::try_from(self.waiting.len()).expect("few commands wait");
        self.waiting.push_back(None);
        slot
    }

    /// Commands without a reply that was sent.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of replies that wait for those before them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts the reply that `encode` appends where it belongs: into the output, or into its slot
    /// until those before it have theirs. Without a result nothing was appended, and the slot
    /// waits.
    pub(super) fn answer<T>(
        &mut self,
        slot: u64,
        output: &mut Output,
        encode: impl FnOnce(&mut BytesMut) -> Option<T>,
    ) -> Option<T> {
        if slot == self.first {
            let result = encode(&mut output.bytes)?;
            self.pass(output);
            return Some(result);
        }
        let mut reply = BytesMut::new();
        let result = encode(&mut reply)?;
        self.keep(slot, reply);
        Some(result)
    }

    /// Like [`answer`](Self::answer), for a reply that was encoded elsewhere.
    pub(super) fn answer_with(&mut self, slot: u64, output: &mut Output, reply: BytesMut) {
        if slot == self.first {
            output.append(reply);
            self.pass(output);
        } else {
            self.keep(slot, reply);
        }
    }

    fn keep(&mut self, slot: u64, reply: BytesMut) {
        let position = usize::try_from(slot - self.first).expect("few commands wait");
        self.bytes += reply.len();
        self.waiting[position] = Some(reply);
    }

    /// The front has its reply: sends what waited behind it.
    fn pass(&mut self, output: &mut Output) {
        self.waiting.pop_front();
        self.first += 1;
        while let Some(Some(_)) = self.waiting.front() {
            let reply = self.waiting.pop_front().flatten().unwrap_or_default();
            self.bytes -= reply.len();
            self.first += 1;
            output.append(reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_leave_in_the_order_of_commands_whatever_the_order_of_answers() {
        let mut slots = Slots::default();
        let mut output = Output::default();
        let opened: Vec<u64> = (0..5).map(|_| slots.open()).collect();
        let mut answer = |slots: &mut Slots, number: usize| {
            let answered = slots.answer(opened[number], &mut output, |out| {
                out.extend_from_slice(number.to_string().as_bytes());
                Some(())
            });
            assert_eq!(answered, Some(()));
            String::from_utf8(output.bytes.to_vec()).unwrap()
        };
        assert_eq!(answer(&mut slots, 2), "");
        assert_eq!(answer(&mut slots, 1), "");
        assert_eq!((slots.len(), slots.bytes()), (5, 2));
        assert_eq!(answer(&mut slots, 0), "012");
        assert_eq!((slots.len(), slots.bytes()), (2, 0));
        assert_eq!(answer(&mut slots, 4), "012");
        assert_eq!(answer(&mut slots, 3), "01234");
        assert_eq!(slots.len(), 0);
        assert_eq!(slots.open(), 5);
    }
}
