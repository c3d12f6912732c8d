//! Telemetry datagrams: measured values that a program beside a node hands over without waiting.
//!
//! ```text
//! name=value [\n name=value] ...
//! ```
//!
//! A name is a letter or `_`, then letters, digits, `_` and `.`, up to [`TELEMETRY_NAME_BYTES_MAX`]
//! bytes; a value is a finite decimal number. A pair that is neither is told as such, and the
//! others still count: who measures does not wait for an answer that would say which one was wrong.

use std::fmt::Write;

use bytes::{BufMut, BytesMut};
use thiserror::Error;

use crate::{
    DATAGRAM_BYTES_MAX, DATAGRAM_HEADER_BYTES, Datagram, DatagramHeader, DatagramOpcode, MAGIC,
};

/// The longest name: it becomes a label, and labels are read by people.
pub const TELEMETRY_NAME_BYTES_MAX: usize = 64;

/// The longest text of a value: every double has a shorter one.
pub const TELEMETRY_VALUE_BYTES_MAX: usize = 32;

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading<'a> {
    /// What was measured.
    pub name: &'a str,
    /// The value; finite.
    pub value: f64,
}

/// The body of a telemetry datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Telemetry<'a> {
    body: &'a [u8],
}

impl<'a> Telemetry<'a> {
    /// Takes the body of a datagram whose opcode is [`DatagramOpcode::Telemetry`].
    #[inline]
    pub fn decode(datagram: &Datagram<'a>) -> Self {
        Self {
            body: datagram.body(),
        }
    }

    /// The pairs, one by one, as they are read. Allocates nothing.
    pub fn readings(&self) -> impl Iterator<Item = Result<Reading<'a>, ReadingFault>> + use<'a> {
        let lines = self.body.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(decode_reading)
    }
}

/// Why a pair is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadingFault {
    /// There is no `=`, or the name before it does not follow the syntax.
    #[error("is not a name and a value")]
    BadName,
    /// The value is not a finite decimal number.
    #[error("has no finite value")]
    BadValue,
    /// The datagram would be too long.
    #[error("does not fit the datagram")]
    NoRoom,
}

/// Appends one datagram with all `readings`.
///
/// # Errors
/// A reading breaks the syntax, or they do not fit one datagram; nothing is appended then.
pub fn encode_telemetry(out: &mut BytesMut, readings: &[Reading<'_>]) -> Result<(), ReadingFault> {
    let start = out.len();
    let encoded = put_readings(out, readings);
    if encoded.is_err() {
        out.truncate(start);
    }
    encoded
}

fn put_readings(out: &mut BytesMut, readings: &[Reading<'_>]) -> Result<(), ReadingFault> {
    let start = out.len();
    out.put_bytes(0, DATAGRAM_HEADER_BYTES);
    for (place, reading) in readings.iter().enumerate() {
        if !is_name(reading.name.as_bytes()) {
            return Err(ReadingFault::BadName);
        }
        if !reading.value.is_finite() {
            return Err(ReadingFault::BadValue);
        }
        if place > 0 {
            out.put_u8(b'\n');
        }
        write!(out, "{}={:e}", reading.name, reading.value).map_err(|_| ReadingFault::NoRoom)?;
    }
    let length = out.len() - start;
    if length > DATAGRAM_BYTES_MAX {
        return Err(ReadingFault::NoRoom);
    }
    let body_bytes = u16::try_from(length - DATAGRAM_HEADER_BYTES);
    let header = DatagramHeader {
        magic: MAGIC,
        opcode: DatagramOpcode::Telemetry as u8,
        body_bytes: body_bytes.map_err(|_| ReadingFault::NoRoom)?,
    };
    out[start..start + DATAGRAM_HEADER_BYTES].copy_from_slice(&header.encode());
    Ok(())
}

fn decode_reading(line: &[u8]) -> Result<Reading<'_>, ReadingFault> {
    let equals = line.iter().position(|byte| *byte == b'=');
    let (name, value) = equals
        .and_then(|at| line.split_at_checked(at))
        .ok_or(ReadingFault::BadName)?;
    if !is_name(name) {
        return Err(ReadingFault::BadName);
    }
    let name = std::str::from_utf8(name).map_err(|_| ReadingFault::BadName)?;
    let value = value.get(1..).unwrap_or_default();
    let value = decode_value(value).ok_or(ReadingFault::BadValue)?;
    Ok(Reading { name, value })
}

fn is_name(name: &[u8]) -> bool {
    let starts = name
        .first()
        .is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    starts && name.len() <= TELEMETRY_NAME_BYTES_MAX && name.iter().all(goes_on)
}

/// Words like `inf` are numbers to the standard library and none here.
fn decode_value(value: &[u8]) -> Option<f64> {
    let plain =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
    if value.len() > TELEMETRY_VALUE_BYTES_MAX || !value.iter().all(plain) {
        return None;
    }
    let value: f64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}
