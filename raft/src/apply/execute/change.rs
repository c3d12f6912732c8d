//! Commands that depend on what one key holds.

use std::fmt::Write;

use super::Execution;
use crate::model::{CommandReply, ConditionRef, ReplyStatus, Revision};
use crate::state::{RECORD_HEAD_BYTES, StateError, put_record_head};

impl Execution<'_> {
    /// Writes or deletes if the condition holds; otherwise answers with the revision of the key.
    pub(super) fn compare_and_swap(
        &mut self,
        database: u8,
        key: &[u8],
        condition: ConditionRef<'_>,
        value: Option<&[u8]>,
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let engine_key = self.record_key(database, key);
        let found = self.read_live(&engine_key)?;
        let found = found
            .as_ref()
            .map(|record| (record.revision, &record.value[..]));
        if !condition.holds(found) {
            return Ok(CommandReply {
                revision: found.map_or(Revision::ABSENT, |(revision, _)| revision),
                ..CommandReply::of(ReplyStatus::ConditionFalse)
            });
        }
        let Some(value) = value else {
            return self.delete(database, key, revision);
        };
        self.put(database, key, value, revision);
        Ok(CommandReply::done(revision))
    }

    /// Adds to a decimal integer and answers with the sum; the deadline of the key stays.
    pub(super) fn increment(
        &mut self,
        database: u8,
        key: &[u8],
        delta: i64,
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let key = self.record_key(database, key);
        let found = self.read_live(&key)?;
        let number = found
            .as_ref()
            .map_or(Some(0), |record| decimal(&record.value));
        let Some(number) = number else {
            return Ok(CommandReply::of(ReplyStatus::NotANumber));
        };
        let Some(sum) = number.checked_add(delta) else {
            return Ok(CommandReply::of(ReplyStatus::OutOfRange));
        };
        let expire_at = found.and_then(|record| record.expire_at);
        put_record_head(revision, expire_at, &mut self.arena);
        write!(self.arena, "{sum}").expect("a buffer takes all writes");
        let record = self.cut();
        let value = record.slice(RECORD_HEAD_BYTES..);
        self.batch.put(key, record);
        Ok(CommandReply {
            value,
            ..CommandReply::done(revision)
        })
    }

    /// Appends to a value and answers with its new length in decimal digits; the deadline of the
    /// key stays.
    pub(super) fn append(
        &mut self,
        database: u8,
        key: &[u8],
        value: &[u8],
        revision: Revision,
    ) -> Result<CommandReply, StateError> {
        let engine_key = self.record_key(database, key);
        let found = self.read_live(&engine_key)?;
        let (before, expire_at) = found.as_ref().map_or((&[][..], None), |record| {
            (&record.value[..], record.expire_at)
        });
        let bytes = before.len() + value.len();
        if let Some(status) = self.check_record(key, bytes) {
            return Ok(CommandReply::of(status));
        }
        if !self.may_work(before.len()) {
            return Ok(CommandReply::of(ReplyStatus::TryAgain));
        }
        put_record_head(revision, expire_at, &mut self.arena);
        self.arena.extend_from_slice(before);
        self.arena.extend_from_slice(value);
        let record = self.cut();
        self.batch.put(engine_key, record);
        write!(self.arena, "{bytes}").expect("a buffer takes all writes");
        Ok(CommandReply {
            value: self.cut(),
            ..CommandReply::done(revision)
        })
    }
}

/// A whole number as Redis stores one: no sign but minus, no leading zero, nothing around it.
fn decimal(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(text).ok()?;
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_decimal_integers_are_numbers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1.0", None),
        ] {
            assert_eq!(decimal(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(decimal(b"1\xFF"), None);
    }
}
