//! The limits of keys, values and bounds, by what they mean for each opcode.
//!
//! Used in both directions, so that a client never sends what a node would refuse.

use crate::options::{RawOptions, tag};
use crate::{CURSOR_BYTES_MAX, FrameLimits, Opcode, OptionFault, RequestError};

/// Judges the lengths of key and value.
pub(super) fn check_parts(
    opcode: Opcode,
    options: &RawOptions,
    key: &[u8],
    value: &[u8],
    limits: &FrameLimits,
) -> Result<(), RequestError> {
    match opcode {
        Opcode::Put => {
            check_key(key, limits)?;
            check_value(value, limits)
        }
        Opcode::Get | Opcode::Delete => {
            check_key(key, limits)?;
            check_absent(opcode, "value", value)
        }
        Opcode::Scan => check_scan(options, key, value, limits),
        Opcode::Echo | Opcode::Hello => {
            check_absent(opcode, "key", key)?;
            check_value(value, limits)
        }
        Opcode::Status => {
            check_absent(opcode, "key", key)?;
            check_absent(opcode, "value", value)
        }
    }
}

fn check_scan(
    options: &RawOptions,
    key: &[u8],
    value: &[u8],
    limits: &FrameLimits,
) -> Result<(), RequestError> {
    let has_cursor = options.has(tag::CURSOR);
    let (coming_from, going_to) = if options.has(tag::REVERSE) {
        (value, key)
    } else {
        (key, value)
    };
    if has_cursor && options.has(tag::REVERSE) && options.has(tag::PREFIX) {
        let fault = OptionFault::Misplaced;
        return Err(RequestError::BadOption {
            tag: tag::PREFIX,
            fault,
        });
    }
    if (has_cursor && coming_from.is_empty()) || (options.has(tag::PREFIX) && value.is_empty()) {
        return Err(RequestError::EmptyKey);
    }
    let bytes_max = if has_cursor {
        CURSOR_BYTES_MAX
    } else {
        limits.key_bytes_max
    };
    check_key_length(coming_from, bytes_max)?;
    check_key_length(going_to, limits.key_bytes_max)
}

fn check_key(key: &[u8], limits: &FrameLimits) -> Result<(), RequestError> {
    if key.is_empty() {
        return Err(RequestError::EmptyKey);
    }
    check_key_length(key, limits.key_bytes_max)
}

fn check_key_length(key: &[u8], bytes_max: usize) -> Result<(), RequestError> {
    if key.len() > bytes_max {
        return Err(RequestError::KeyTooLong {
            bytes: key.len(),
            bytes_max,
        });
    }
    Ok(())
}

fn check_value(value: &[u8], limits: &FrameLimits) -> Result<(), RequestError> {
    if value.len() > limits.value_bytes_max {
        return Err(RequestError::ValueTooLong {
            bytes: value.len(),
            bytes_max: limits.value_bytes_max,
        });
    }
    Ok(())
}

fn check_absent(opcode: Opcode, part: &'static str, bytes: &[u8]) -> Result<(), RequestError> {
    if bytes.is_empty() {
        return Ok(());
    }
    Err(RequestError::UnexpectedPart { opcode, part })
}
