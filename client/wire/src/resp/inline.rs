//! Splitting a command that was typed as one line.
//!
//! Words are parted by white space. Double quotes take `\n`, `\r`, `\t`, `\b`, `\a`, `\xHH` and any
//! other byte behind a backslash; single quotes take only `\'`. A closing quote must be followed by
//! white space or by the end of the line.

use super::error::RespError;
use super::parser::Span;

/// Appends the words of `line`, unescaped, to `text`, and where each of them stands to `spans`.
pub(super) fn split(
    line: &[u8],
    text: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), RespError> {
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let start = text.len();
        rest = word(rest, text)?.trim_ascii_start();
        spans.push(Span::new(start, text.len() - start));
    }
    Ok(())
}

/// Appends the word at the start of `rest` and returns what stands behind it.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], RespError> {
    while let [byte, behind @ ..] = rest {
        match byte {
            b'"' => return closed(double_quoted(behind, text)?),
            b'\'' => return closed(single_quoted(behind, text)?),
            byte if byte.is_ascii_whitespace() => break,
            byte => text.push(*byte),
        }
        rest = behind;
    }
    Ok(rest)
}

fn closed(behind: &[u8]) -> Result<&[u8], RespError> {
    match behind.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(RespError::Quotes),
        _ => Ok(behind),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], RespError> {
    loop {
        rest = match rest {
            [b'"', behind @ ..] => return Ok(behind),
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                text.push(hexadecimal(*high) << 4 | hexadecimal(*low));
                behind
            }
            [b'\\', escaped, behind @ ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                behind
            }
            [byte, behind @ ..] => {
                text.push(*byte);
                behind
            }
            [] => return Err(RespError::Quotes),
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], RespError> {
    loop {
        rest = match rest {
            [b'\'', behind @ ..] => return Ok(behind),
            [b'\\', b'\'', behind @ ..] => {
                text.push(b'\'');
                behind
            }
            [byte, behind @ ..] => {
                text.push(*byte);
                behind
            }
            [] => return Err(RespError::Quotes),
        };
    }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}
