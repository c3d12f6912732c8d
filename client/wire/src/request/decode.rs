//! Bytes to requests, on the node.
//!
//! Two stages. The header decides whether the stream is sound and the frame whole; only then is the
//! body judged, and whatever is wrong with it concerns this request alone. Allocates nothing.

use super::check::check_parts;
use super::{Request, Scan, ScanBound};
use crate::options::{RawOptions, tag};
use crate::{
    FrameError, FrameFault, FrameLimits, HEADER_BYTES, Hello, MAGIC, Opcode, RequestError,
    RequestHeader, RequestId,
};

/// How far [`decode_request`] came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decode<'a> {
    /// The buffer ends inside a frame.
    Incomplete {
        /// Bytes that the buffer needs from its start before another call makes sense. Within the
        /// frame limit, but what was promised, not received: grow with what arrives.
        needed: usize,
    },
    /// One whole frame stands at the start of the buffer.
    Frame {
        /// Length of the frame, to be dropped from the buffer.
        consumed: usize,
        /// The id that the reply must carry.
        id: RequestId,
        /// The opcode byte of the frame, also when it is unknown.
        opcode: u8,
        /// The request, or what to answer instead.
        request: Result<Request<'a>, RequestError>,
    },
}

/// Reads one request from the start of `buffer`.
///
/// # Errors
/// The stream is unusable: send [`FrameError::encode`], then close.
#[inline]
pub fn decode_request<'a>(
    buffer: &'a [u8],
    limits: &FrameLimits,
) -> Result<Decode<'a>, FrameError> {
    if let Some(&got) = buffer.first()
        && got != MAGIC
    {
        return Err(FrameError::without_header(FrameFault::BadMagic { got }));
    }
    let Some((head, body)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(Decode::Incomplete {
            needed: HEADER_BYTES,
        });
    };
    let header = RequestHeader::decode(head);
    let frame_bytes = check_header(&header, limits)?;
    let Some(body) = body.get(..frame_bytes - HEADER_BYTES) else {
        return Ok(Decode::Incomplete {
            needed: frame_bytes,
        });
    };
    Ok(Decode::Frame {
        consumed: frame_bytes,
        id: header.id,
        opcode: header.opcode,
        request: decode_body(&header, body, limits),
    })
}

/// Judges the header and returns the length of the frame.
fn check_header(header: &RequestHeader, limits: &FrameLimits) -> Result<usize, FrameError> {
    let bytes = header.frame_bytes();
    let fault = if header.flags != 0 {
        FrameFault::UnknownFlags { got: header.flags }
    } else if header.opcode & Opcode::RESPONSE_BIT != 0 {
        FrameFault::WrongDirection { got: header.opcode }
    } else {
        match usize::try_from(bytes) {
            Ok(frame_bytes) if frame_bytes <= limits.frame_bytes_max => return Ok(frame_bytes),
            _ => FrameFault::FrameTooLong {
                bytes,
                bytes_max: limits.frame_bytes_max,
            },
        }
    };
    Err(FrameError {
        id: header.id,
        opcode: header.opcode,
        fault,
    })
}

fn decode_body<'a>(
    header: &RequestHeader,
    body: &'a [u8],
    limits: &FrameLimits,
) -> Result<Request<'a>, RequestError> {
    let opcode = Opcode::from_byte(header.opcode).ok_or(RequestError::UnsupportedOpcode {
        opcode: header.opcode,
    })?;
    let (extra, body) = body.split_at(usize::from(header.extra_bytes));
    let (key, value) = body.split_at(usize::from(header.key_bytes));
    if extra.len() > limits.extra_bytes_max {
        return Err(RequestError::OptionsTooLong {
            bytes: extra.len(),
            bytes_max: limits.extra_bytes_max,
        });
    }
    let options = if extra.is_empty() {
        RawOptions::default()
    } else {
        RawOptions::decode(opcode, extra)?
    };
    check_parts(opcode, &options, key, value, limits)?;
    Ok(match opcode {
        Opcode::Hello => Request::Hello(Hello::decode(value)?),
        Opcode::Echo => Request::Echo { value },
        Opcode::Put => Request::Put {
            database: options.database,
            key,
            value,
            options: options.write_options(),
        },
        Opcode::Get => Request::Get {
            database: options.database,
            key,
            options: options.read_options(),
        },
        Opcode::Delete => Request::Delete {
            database: options.database,
            key,
            options: options.write_options(),
        },
        Opcode::Scan => Request::Scan(scan_of(&options, key, value)),
        Opcode::Status => Request::Status,
    })
}

fn scan_of<'a>(options: &RawOptions, key: &'a [u8], value: &'a [u8]) -> Scan<'a> {
    let reverse = options.has(tag::REVERSE);
    // The cursor stands in for the end of the range from which the scan comes.
    let (cursor, start, end): (_, &[u8], &[u8]) = match (options.has(tag::CURSOR), reverse) {
        (false, _) => (None, key, value),
        (true, false) => (Some(key), &[], value),
        (true, true) => (Some(value), key, &[]),
    };
    Scan {
        database: options.database,
        start,
        bound: if options.has(tag::PREFIX) {
            ScanBound::Prefix(end)
        } else if end.is_empty() {
            ScanBound::Unbounded
        } else {
            ScanBound::Before(end)
        },
        cursor,
        limit: options.limit,
        bytes: options.bytes,
        reverse,
        keys_only: options.has(tag::KEYS_ONLY),
        options: options.read_options(),
    }
}
