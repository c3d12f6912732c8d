//! Requests to bytes, in the client.

use bytes::{BufMut, BytesMut};

use super::check::check_parts;
use super::{Request, Scan, ScanBound};
use crate::options::{RawOptions, ReadOptions, WriteOptions, tag};
use crate::{FrameLimits, HEADER_BYTES, MAGIC, RequestError, RequestHeader, RequestId};

/// The parts of a request as they go into a frame.
struct Parts<'a> {
    options: RawOptions,
    key: &'a [u8],
    value: &'a [u8],
}

fn parts_of<'a>(request: &Request<'a>) -> Parts<'a> {
    match *request {
        Request::Hello(_) | Request::Status => Parts {
            options: RawOptions::default(),
            key: &[],
            value: &[],
        },
        Request::Echo { value } => Parts {
            options: RawOptions::default(),
            key: &[],
            value,
        },
        Request::Put {
            database,
            key,
            value,
            options,
        } => Parts {
            options: raw_write(database, options),
            key,
            value,
        },
        Request::Get {
            database,
            key,
            options,
        } => Parts {
            options: raw_read(database, options),
            key,
            value: &[],
        },
        Request::Delete {
            database,
            key,
            options,
        } => Parts {
            options: raw_write(database, options),
            key,
            value: &[],
        },
        Request::Scan(scan) => scan_parts(&scan),
    }
}

fn raw_write(database: u8, options: WriteOptions) -> RawOptions {
    RawOptions {
        database,
        deadline: options.deadline,
        session: options.session,
        ..RawOptions::default()
    }
}

fn raw_read(database: u8, options: ReadOptions) -> RawOptions {
    RawOptions {
        database,
        deadline: options.deadline,
        consistency: options.consistency,
        token: options.token,
        ..RawOptions::default()
    }
}

fn scan_parts<'a>(scan: &Scan<'a>) -> Parts<'a> {
    let (end, prefix): (&[u8], bool) = match scan.bound {
        ScanBound::Unbounded => (&[], false),
        ScanBound::Before(end) => (end, false),
        ScanBound::Prefix(prefix) => (prefix, true),
    };
    let (key, value) = match (scan.cursor, scan.reverse) {
        (None, _) => (scan.start, end),
        (Some(cursor), false) => (cursor, end),
        (Some(cursor), true) => (scan.start, cursor),
    };
    let mut options = RawOptions {
        limit: scan.limit,
        bytes: scan.bytes,
        ..raw_read(scan.database, scan.options)
    };
    options.switch(tag::REVERSE, scan.reverse);
    options.switch(tag::KEYS_ONLY, scan.keys_only);
    options.switch(tag::CURSOR, scan.cursor.is_some());
    options.switch(tag::PREFIX, prefix);
    Parts {
        options,
        key,
        value,
    }
}

/// Appends the frame of `request` to `out`.
///
/// # Errors
/// The request breaks a limit of the protocol; `out` is as it was.
pub fn encode_request(
    out: &mut BytesMut,
    id: RequestId,
    request: &Request<'_>,
) -> Result<(), RequestError> {
    if let Request::Scan(Scan {
        bound: ScanBound::Before([]),
        ..
    }) = request
    {
        // On the wire an empty end means no end: the opposite of what was asked.
        return Err(RequestError::EmptyKey);
    }
    let opcode = request.opcode();
    let parts = parts_of(request);
    check_parts(
        opcode,
        &parts.options,
        parts.key,
        parts.value,
        &FrameLimits::FULL,
    )?;
    let start = out.len();
    out.reserve(HEADER_BYTES + 64 + parts.key.len() + parts.value.len());
    out.put_bytes(0, HEADER_BYTES);
    parts.options.encode(out);
    let extra_bytes = out.len() - start - HEADER_BYTES;
    out.put_slice(parts.key);
    let value_start = out.len();
    match request {
        Request::Hello(hello) => {
            if let Err(error) = hello.encode(out) {
                out.truncate(start);
                return Err(error);
            }
        }
        _ => out.put_slice(parts.value),
    }
    let header = RequestHeader {
        magic: MAGIC,
        opcode: opcode.to_byte(),
        flags: 0,
        id,
        key_bytes: u16::try_from(parts.key.len()).expect("keys and cursors fit a u16"),
        extra_bytes: u16::try_from(extra_bytes).expect("known options need under 200 bytes"),
        value_bytes: u32::try_from(out.len() - value_start).expect("values are at most 8 MiB"),
    };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    Ok(())
}
