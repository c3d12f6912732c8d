//! Clearing databases, piece by piece.
//!
//! One command of the log removes a bounded number of keys, so a large database takes several. All
//! keys that were there when the command came are gone at its end, unless they were written anew in
//! the meantime; other clients can see the pieces. Commands behind it on the same connection wait.

use bytes::Bytes;
use kelp_raft::{CommandReply, OperationRef, ReplyStatus};
use kelp_wire::RespArguments;

use super::greetings::DATABASE_COUNT;
use super::{Mark, Session, Wait};
use crate::proposer::outbox::WriteOutcome;
use crate::redis_port::answer::{SYNTAX, outcome_text, refusal_text};
use crate::redis_port::commands::Kind;

/// Bytes of the count in the answer to a removed range; the next key follows.
const COUNT_BYTES: usize = 4;

/// What is left to clear.
pub(super) struct Flush {
    database: u8,
    database_last: u8,
    /// Where the next piece begins; empty: with the database.
    next: Bytes,
}

impl Session {
    /// FLUSHDB [ASYNC | SYNC] and FLUSHALL alike; both are done when they are answered.
    pub(super) fn flush(&mut self, mut mark: Mark, kind: Kind, arguments: RespArguments<'_>) {
        let mode = arguments.get(1).unwrap_or(b"sync");
        let known = mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async");
        if !known || arguments.len() > 2 {
            return self.error(mark, SYNTAX);
        }
        let (database, database_last) = match kind {
            Kind::FlushAll => (0, DATABASE_COUNT - 1),
            _ => (self.database, self.database),
        };
        mark.wait = Wait::Flush;
        self.flush = Some(Flush {
            database,
            database_last,
            next: Bytes::new(),
        });
        self.clear_piece(mark);
    }

    /// Takes the outcome of one piece.
    pub(super) fn go_on_flushing(&mut self, mark: Mark, outcome: &WriteOutcome) {
        let reply = match outcome {
            WriteOutcome::Done { reply, .. } => reply,
            other => {
                let text = outcome_text(other, &self.context.port);
                return self.end_flush(mark, Some(&text));
            }
        };
        let Some(flush) = self.flush.as_mut() else {
            return self.end_flush(mark, Some("ERR the flush is gone"));
        };
        match next_key(reply) {
            // The entry was full: the same piece again.
            None if reply.status == ReplyStatus::TryAgain => {}
            None => {
                let text = refusal_text(reply).unwrap_or_default();
                return self.end_flush(mark, Some(&text));
            }
            Some(next) if !next.is_empty() => flush.next = next,
            Some(_) if flush.database < flush.database_last => {
                flush.database += 1;
                flush.next = Bytes::new();
            }
            Some(_) => return self.end_flush(mark, None),
        }
        self.clear_piece(mark);
    }

    fn clear_piece(&mut self, mark: Mark) {
        let Some(flush) = &self.flush else {
            return;
        };
        let (database, next) = (flush.database, flush.next.clone());
        let operation = OperationRef::DeleteRange {
            count_max: u32::MAX,
            first: &next,
            end: &[],
        };
        self.submit(mark, database, &operation);
    }

    fn end_flush(&mut self, mark: Mark, error: Option<&str>) {
        self.flush = None;
        match error {
            None => self.reply(mark, |encoder| encoder.simple("OK")),
            Some(text) => self.error(mark, text),
        }
    }
}

/// The key that a removed range goes on from, empty at its end; none when the range was refused.
fn next_key(reply: &CommandReply) -> Option<Bytes> {
    let removed = reply.status == ReplyStatus::Ok && reply.value.len() >= COUNT_BYTES;
    removed.then(|| reply.value.slice(COUNT_BYTES..))
}
