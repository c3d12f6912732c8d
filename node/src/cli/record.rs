//! Records as text: what `kelp import` reads and `kelp export` writes, one record per line.
//!
//! `tsv` is key, tab, value; inside both, tab, line feed, carriage return and backslash are written
//! `\t`, `\n`, `\r` and `\\`, and other control bytes and bytes that are not UTF-8 as `\xHH`.
//! `jsonl` is an object with `key` and `value`, each a string, or `{"b64": "..."}` for bytes that
//! are not UTF-8. Encoding is canonical: equal records give equal lines, so two exports can be
//! compared byte by byte.

use std::fmt::Write as _;
use std::str;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

mod reader;

pub(crate) use reader::{ReadError, RecordReader};

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// KEY TAB VALUE, with \t \n \r \\ \xHH escapes
    Tsv,
    /// {"key":"..","value":".."}, with {"b64":".."} for bytes that are not UTF-8
    Jsonl,
}

impl RecordFormat {
    /// The format that a file's name suggests.
    pub(crate) fn of_name(name: &str) -> Self {
        let json = [".jsonl", ".ndjson", ".json"];
        if json.iter().any(|ending| name.ends_with(ending)) {
            Self::Jsonl
        } else {
            Self::Tsv
        }
    }
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Why a line is no record.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// No tab.
    #[error("no tab between key and value")]
    NoTab,
    /// A tab or carriage return inside a value.
    #[error("a bare {0}: write it as an escape")]
    Bare(&'static str),
    /// A backslash followed by something that means nothing.
    #[error("unknown escape '{0}': \\t, \\n, \\r, \\\\ and \\xHH are known")]
    Escape(String),
    /// Not the JSON that is wanted.
    #[error("not a record: {0}")]
    Json(String),
    /// Base64 that does not decode.
    #[error("not base64: {0}")]
    Base64(String),
}

/// Appends the line of a record, with its line feed.
pub(crate) fn encode(format: RecordFormat, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match format {
        RecordFormat::Tsv => {
            out.extend_from_slice(escape(key).as_bytes());
            out.push(b'\t');
            out.extend_from_slice(escape(value).as_bytes());
        }
        RecordFormat::Jsonl => {
            let record = JsonRecord {
                key: JsonBytes::of(key),
                value: JsonBytes::of(value),
            };
            serde_json::to_writer(&mut *out, &record)
                .expect("two texts always encode, and a vector takes every byte");
        }
    }
    out.push(b'\n');
}

/// Reads one line, given without its line feed.
pub(crate) fn decode(format: RecordFormat, line: &[u8]) -> Result<Record, RecordError> {
    match format {
        RecordFormat::Tsv => {
            let tab = line.iter().position(|byte| *byte == b'\t');
            let (key, rest) = line.split_at(tab.ok_or(RecordError::NoTab)?);
            let value = rest.get(1..).unwrap_or_default();
            Ok(Record {
                key: unescape(key)?,
                value: unescape(value)?,
            })
        }
        RecordFormat::Jsonl => {
            let record: JsonRecord = serde_json::from_slice(line)
                .map_err(|error| RecordError::Json(error.to_string()))?;
            Ok(Record {
                key: record.key.into_bytes()?,
                value: record.value.into_bytes()?,
            })
        }
    }
}

/// Bytes as tsv writes them.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                '\0'..'\u{20}' | '\u{7f}' => escape_byte(u32::from(letter), &mut text),
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            escape_byte(u32::from(*byte), &mut text);
        }
    }
    text
}

fn escape_byte(byte: u32, text: &mut String) {
    write!(text, "\\x{byte:02x}").expect("a string takes every text");
}

/// The bytes that tsv wrote.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, RecordError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'\t' => return Err(RecordError::Bare("tab")),
            b'\r' => return Err(RecordError::Bare("carriage return")),
            b'\n' => return Err(RecordError::Bare("line feed")),
            b'\\' => {
                let (byte, length) = escaped(rest)?;
                bytes.push(byte);
                rest = rest.get(length..).unwrap_or_default();
            }
            byte => bytes.push(*byte),
        }
    }
    Ok(bytes)
}

/// The byte that stands behind a backslash, and how long its name is.
fn escaped(rest: &[u8]) -> Result<(u8, usize), RecordError> {
    match rest.first() {
        Some(b't') => Ok((b'\t', 1)),
        Some(b'n') => Ok((b'\n', 1)),
        Some(b'r') => Ok((b'\r', 1)),
        Some(b'\\') => Ok((b'\\', 1)),
        Some(b'x') => rest
            .get(1..3)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .map(|byte| (byte, 3))
            .ok_or_else(|| unknown_escape(rest.get(..3).unwrap_or(rest))),
        Some(_) => Err(unknown_escape(rest.get(..1).unwrap_or(rest))),
        None => Err(unknown_escape(b"")),
    }
}

fn unknown_escape(name: &[u8]) -> RecordError {
    RecordError::Escape(format!("\\{}", String::from_utf8_lossy(name)))
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRecord {
    key: JsonBytes,
    value: JsonBytes,
}

/// Bytes in JSON: a string where they are UTF-8, `{"b64": ".."}` where not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum JsonBytes {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Binary {
        /// Standard base64 with padding.
        b64: String,
    },
}

impl JsonBytes {
    /// The canonical form of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Binary {
                b64: BASE64.encode(bytes),
            },
        }
    }

    fn into_bytes(self) -> Result<Vec<u8>, RecordError> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Binary { b64 } => BASE64
                .decode(b64)
                .map_err(|error| RecordError::Base64(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
