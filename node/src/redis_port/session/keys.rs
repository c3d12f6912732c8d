//! The commands that read and write keys.

use bytes::Bytes;
use kelp_raft::{
    Batch, BatchBuilder, COMMAND_BYTES_MAX, COMMAND_HEAD_BYTES_MAX, CommandHead, ConditionRef,
    KEY_BYTES_MAX, OperationRef, StateError, VALUE_BYTES_MAX,
};
use kelp_wire::{RespArguments, Status};

use super::{DEADLINE, Mark, Session, Wait, wrong_count};
use crate::client_port::mailbox::ServedRead;
use crate::redis_port::answer::{Answer, NOT_AN_INTEGER, SYNTAX, too_large_text};
use crate::redis_port::commands::Kind;
use crate::redis_port::cursors::{self, Cursor, Position};
use crate::redis_port::glob::{Glob, PATTERN_BYTES_MAX};
use crate::redis_port::read::{Read, ReadJob, ScanJob};

use std::sync::Arc;
use std::time::Duration;

use kelp_raft::{PeerBus, PeerClass};

/// Keys of a page of a scan that names no number.
const PAGE_KEYS: usize = 10;

/// The most keys of a page: it is served in one go.
const PAGE_KEYS_MAX: usize = 10_000;

/// Time for another node to say where a scan stands; then it begins again.
const CURSOR_DEADLINE: Duration = Duration::from_secs(1);

impl Session {
    pub(super) fn read_keys(&mut self, mark: Mark, kind: Kind, arguments: RespArguments<'_>) {
        let key = || Bytes::copy_from_slice(arguments.get(1).unwrap_or_default());
        let keys = || arguments.from(1).map(Bytes::copy_from_slice).collect();
        let read = match kind {
            Kind::StrLen => Read::Length { key: key() },
            Kind::Type => Read::Type { key: key() },
            Kind::MGet => Read::GetAll { keys: keys() },
            Kind::Exists => Read::CountExisting { keys: keys() },
            _ => Read::Get { key: key() },
        };
        self.read(mark, read);
    }

    pub(super) fn database_size(&mut self, mark: Mark) {
        let storage_bytes = self.context.storage_bytes();
        self.read(mark, Read::Size { storage_bytes });
    }

    /// SET key value [NX | XX].
    pub(super) fn set(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let mut condition = None;
        for option in arguments.from(3) {
            let wanted = if option.eq_ignore_ascii_case(b"nx") {
                ConditionRef::Absent
            } else if option.eq_ignore_ascii_case(b"xx") {
                ConditionRef::Exists
            } else {
                return self.error(mark, &set_option_text(option));
            };
            if condition
                .replace(wanted)
                .is_some_and(|other| other != wanted)
            {
                return self.error(mark, SYNTAX);
            }
        }
        let (key, value) = key_and_value(arguments);
        match condition {
            None => self.write(mark, Answer::Ok, &OperationRef::Put { key, value }),
            Some(condition) => {
                let operation = OperationRef::CompareAndSwap {
                    key,
                    condition,
                    value: Some(value),
                };
                self.write(mark, Answer::OkOrNull, &operation);
            }
        }
    }

    pub(super) fn set_if_absent(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let (key, value) = key_and_value(arguments);
        let operation = OperationRef::CompareAndSwap {
            key,
            condition: ConditionRef::Absent,
            value: Some(value),
        };
        self.write(mark, Answer::OneOrZero, &operation);
    }

    /// MSET key value [key value ...]: one command of the log.
    pub(super) fn set_all(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        if arguments.len().is_multiple_of(2) {
            return self.error(mark, &wrong_count("mset"));
        }
        let mut batch = BatchBuilder::new();
        let mut pairs = arguments.from(1);
        while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
            let put = OperationRef::Put { key, value };
            if let Some(text) = fault(&put) {
                return self.error(mark, &text);
            }
            if batch.put(key, value).is_err() {
                return self.error(mark, "ERR too many keys for one command");
            }
        }
        self.write_batch(mark, Answer::Ok, batch.finish());
    }

    /// DEL key [key ...]: one command of the log.
    pub(super) fn delete(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let keys = arguments.len() - 1;
        if keys == 1 {
            let key = arguments.get(1).unwrap_or_default();
            let answer = Answer::Deleted { keys };
            return self.write(mark, answer, &OperationRef::Delete { key });
        }
        let mut batch = BatchBuilder::new();
        for key in arguments.from(1) {
            if let Some(text) = fault(&OperationRef::Delete { key }) {
                return self.error(mark, &text);
            }
            if batch.delete(key).is_err() {
                return self.error(mark, "ERR too many keys for one command");
            }
        }
        self.write_batch(mark, Answer::Deleted { keys }, batch.finish());
    }

    pub(super) fn append(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let (key, value) = key_and_value(arguments);
        self.write(mark, Answer::Number, &OperationRef::Append { key, value });
    }

    pub(super) fn add(&mut self, mark: Mark, kind: Kind, arguments: RespArguments<'_>) {
        let key = arguments.get(1).unwrap_or_default();
        let given = arguments.get(2).map(integer);
        let delta = match (kind, given) {
            (Kind::Incr, _) => 1,
            (Kind::Decr, _) => -1,
            (Kind::IncrBy, Some(Some(number))) => number,
            (_, Some(Some(number))) => match number.checked_neg() {
                Some(delta) => delta,
                None => return self.error(mark, "ERR decrement would overflow"),
            },
            _ => return self.error(mark, NOT_AN_INTEGER),
        };
        self.write(
            mark,
            Answer::Number,
            &OperationRef::Increment { key, delta },
        );
    }

    /// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
    pub(super) fn scan(&mut self, mut mark: Mark, arguments: RespArguments<'_>) {
        let Some(cursor) = arguments.get(1).and_then(cursor) else {
            return self.error(mark, "ERR invalid cursor");
        };
        let mut job = ScanJob {
            cursors: Arc::clone(&self.context.peers.cursors),
            after: None,
            pattern: None,
            count: PAGE_KEYS,
            strings: true,
        };
        let mut rest = arguments.from(2);
        while let Some(option) = rest.next() {
            let Some(value) = rest.next() else {
                return self.error(mark, SYNTAX);
            };
            if option.eq_ignore_ascii_case(b"match") {
                if value.len() > PATTERN_BYTES_MAX {
                    let text = format!("ERR a pattern has at most {PATTERN_BYTES_MAX} bytes");
                    return self.error(mark, &text);
                }
                job.pattern = Some(Glob::new(value));
            } else if option.eq_ignore_ascii_case(b"type") {
                job.strings = value.eq_ignore_ascii_case(b"string");
            } else if option.eq_ignore_ascii_case(b"count") {
                match integer(value).map(usize::try_from) {
                    None => return self.error(mark, NOT_AN_INTEGER),
                    Some(Ok(count)) if count > 0 => job.count = count.min(PAGE_KEYS_MAX),
                    Some(_) => return self.error(mark, SYNTAX),
                }
            } else {
                return self.error(mark, SYNTAX);
            }
        }
        if cursor == 0 {
            return self.read(mark, Read::Scan(job));
        }
        let cursor = Cursor::from_number(cursor);
        if cursor.node == self.context.node() {
            let position = self.context.peers.cursors.find(cursor.entry);
            return self.scan_from(mark, job, position);
        }
        mark.wait = Wait::Cursor;
        self.scan = Some(job);
        self.ask_for_cursor(mark, cursor);
    }

    /// Takes another node's answer to where the scan stands.
    pub(super) fn go_on_scanning(&mut self, mut mark: Mark, found: Result<ServedRead, StateError>) {
        mark.wait = Wait::Read;
        let Some(job) = self.scan.take() else {
            return self.error(mark, "ERR the scan is gone");
        };
        let found = found.ok().filter(|found| found.status == Status::Ok);
        let position = found.and_then(|found| Position::decode(found.reply.freeze()));
        self.scan_from(mark, job, position);
    }

    /// A place that nobody knows any more is the beginning.
    fn scan_from(&mut self, mark: Mark, mut job: ScanJob, position: Option<Position>) {
        let here = position.filter(|position| position.database == self.database);
        job.after = here.map(|position| position.key);
        self.read(mark, Read::Scan(job));
    }

    fn ask_for_cursor(&mut self, mark: Mark, cursor: Cursor) {
        let errand = self.lane.errand(mark);
        let context = Arc::clone(&self.context);
        // It ends by itself in about a second, and nobody waits for it but this session.
        tokio::spawn(async move {
            let request = cursors::encode_request(context.peers.group, cursor.entry);
            let links = &context.peers.links;
            let asked = links.call(cursor.node, PeerClass::Control, request, CURSOR_DEADLINE);
            let reply = asked.await.ok();
            let position = reply.and_then(|reply| cursors::decode_reply(reply).ok().flatten());
            errand.finish(Ok(match position {
                Some(position) => ServedRead {
                    status: Status::Ok,
                    reply: position.encode(),
                },
                None => ServedRead {
                    status: Status::NotFound,
                    reply: bytes::BytesMut::new(),
                },
            }));
        });
    }

    fn read(&mut self, mark: Mark, read: Read) {
        let job = ReadJob {
            database: self.database,
            version: mark.version,
            read,
        };
        self.lane.read(mark, mark.started + DEADLINE, job);
    }

    fn write(&mut self, mut mark: Mark, answer: Answer, operation: &OperationRef<'_>) {
        if let Some(text) = fault(operation) {
            return self.error(mark, &text);
        }
        mark.wait = Wait::Write(answer);
        self.submit(mark, self.database, operation);
    }

    /// Hands a checked operation to the proposer.
    pub(super) fn submit(&mut self, mark: Mark, database: u8, operation: &OperationRef<'_>) {
        let head = CommandHead::new(operation.opcode(), database);
        let deadline = self.context.port.clock.monotonic() + DEADLINE;
        self.lane.write(mark, deadline, |buffer| {
            head.encode_into(operation.body_bytes(), buffer);
            operation.encode_body_into(buffer);
        });
    }

    fn write_batch(&mut self, mut mark: Mark, answer: Answer, batch: Option<Batch>) {
        let Some(batch) = batch else {
            return self.error(mark, SYNTAX);
        };
        let operation = OperationRef::Batch(batch.borrow());
        let bytes_max = COMMAND_BYTES_MAX - COMMAND_HEAD_BYTES_MAX;
        if operation.body_bytes() > bytes_max {
            let text = format!("ERR the keys and values are over {bytes_max} bytes together");
            return self.error(mark, &text);
        }
        mark.wait = Wait::Write(answer);
        self.submit(mark, self.database, &operation);
    }
}

/// Why a write is refused at the door.
fn fault(operation: &OperationRef<'_>) -> Option<String> {
    let (key, value_bytes) = match operation {
        OperationRef::Put { key, value } | OperationRef::Append { key, value } => {
            (key, value.len())
        }
        OperationRef::CompareAndSwap { key, value, .. } => (key, value.map_or(0, <[u8]>::len)),
        OperationRef::Delete { key } | OperationRef::Increment { key, .. } => (key, 0),
        _ => return None,
    };
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Some(format!("ERR a key has 1 to {KEY_BYTES_MAX} bytes"));
    }
    (value_bytes > VALUE_BYTES_MAX).then(too_large_text)
}

fn key_and_value(arguments: RespArguments<'_>) -> (&[u8], &[u8]) {
    let argument = |index| arguments.get(index).unwrap_or_default();
    (argument(1), argument(2))
}

fn set_option_text(option: &[u8]) -> String {
    const KNOWN: [&str; 6] = ["EX", "PX", "EXAT", "PXAT", "KEEPTTL", "GET"];
    let known = KNOWN
        .iter()
        .find(|known| option.eq_ignore_ascii_case(known.as_bytes()));
    known.map_or(SYNTAX.to_owned(), |known| {
        format!("ERR the option {known} of SET is not supported")
    })
}

/// An integer as Redis reads one in an argument.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn cursor(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("+1", None),
            ("01", None),
            ("-0", None),
            (" 1", None),
            ("1.5", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn writes_over_the_limits_are_refused_at_the_door() {
        let key = vec![b'k'; KEY_BYTES_MAX + 1];
        let value = vec![b'v'; VALUE_BYTES_MAX + 1];
        let put = |key, value| fault(&OperationRef::Put { key, value });
        assert_eq!(put(&key[1..], &value[1..]), None);
        assert!(put(&key, b"").is_some());
        assert!(put(b"", b"").is_some());
        assert!(put(b"k", &value).is_some_and(|text| text.contains("maximum allowed size")));
    }
}
