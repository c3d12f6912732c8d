//! Responses: values to bytes on the node, bytes to borrowed values in the client.
//!
//! A client trusts a node less than a node's own code does: encoding asserts its limits, decoding
//! checks them and calls whatever breaks them a [`FrameError`].

#[cfg(test)]
mod tests;

use bytes::{BufMut, BytesMut};

use crate::{
    CURSOR_BYTES_MAX, ERROR_TEXT_BYTES_MAX, EXTRA_BYTES_MAX, FrameError, FrameFault, FrameLimits,
    HEADER_BYTES, MAGIC, Opcode, RESPONSE_VALUE_BYTES_MAX, RequestId, ResponseFields,
    ResponseHeader, Status,
};

/// One frame of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Id of the request that this answers.
    pub id: RequestId,
    /// Opcode byte of that request, without the response bit; [`Opcode::UNKNOWN`] when the node
    /// did not know it.
    pub opcode: u8,
    /// What happened.
    pub status: Status,
    /// More frames follow for the same request.
    pub more: bool,
    /// Typed fields.
    pub fields: ResponseFields<'a>,
    /// In a scan: the cursor of the next page, empty when the scan is complete. Otherwise empty.
    pub key: &'a [u8],
    /// The result, or the text of the error when [`Status::is_error`].
    pub value: &'a [u8],
}

impl Response<'_> {
    /// An answer of `status` without key, fields or value, to build on.
    pub fn new(id: RequestId, opcode: Opcode, status: Status) -> Self {
        Self {
            id,
            opcode: opcode.to_byte(),
            status,
            more: false,
            fields: ResponseFields::default(),
            key: &[],
            value: &[],
        }
    }
}

/// Appends the frame of `response` to `out`.
///
/// # Panics
/// When key, value or leader address are over their limits, which the data model rules out.
pub fn encode_response(out: &mut BytesMut, response: &Response<'_>) {
    let (key, value) = (response.key, response.value);
    assert!(
        key.len() <= CURSOR_BYTES_MAX,
        "response key of {} bytes is over the limit",
        key.len()
    );
    assert!(
        value.len() <= RESPONSE_VALUE_BYTES_MAX,
        "response value of {} bytes is over the limit",
        value.len()
    );
    let start = out.len();
    out.reserve(HEADER_BYTES + 64 + key.len() + value.len());
    out.put_bytes(0, HEADER_BYTES);
    response.fields.encode(out);
    let extra_bytes = out.len() - start - HEADER_BYTES;
    let header = ResponseHeader {
        magic: MAGIC,
        opcode: Opcode::response_byte(response.opcode),
        status: response.status.to_byte(),
        flags: if response.more {
            ResponseHeader::FLAG_MORE
        } else {
            0
        },
        id: response.id,
        key_bytes: u16::try_from(key.len()).expect("asserted above"),
        extra_bytes: u16::try_from(extra_bytes).expect("known fields need under 400 bytes"),
        value_bytes: u32::try_from(value.len()).expect("asserted above"),
    };
    out.put_slice(key);
    out.put_slice(value);
    out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
}

/// Appends an error frame: `text`, cut to its limit at a character boundary, is its value.
pub fn encode_error(
    out: &mut BytesMut,
    id: RequestId,
    opcode: u8,
    status: Status,
    fields: &ResponseFields<'_>,
    text: &str,
) {
    let end = text.floor_char_boundary(ERROR_TEXT_BYTES_MAX);
    let response = Response {
        id,
        opcode,
        status,
        more: false,
        fields: *fields,
        key: &[],
        value: &text.as_bytes()[..end],
    };
    encode_response(out, &response);
}

/// How far [`decode_response`] came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeResponse<'a> {
    /// The buffer ends inside a frame.
    Incomplete {
        /// Bytes that the buffer needs from its start before another call makes sense.
        needed: usize,
    },
    /// One whole frame stands at the start of the buffer.
    Frame {
        /// Length of the frame, to be dropped from the buffer.
        consumed: usize,
        /// The answer.
        response: Response<'a>,
    },
}

/// Reads one response from the start of `buffer`.
///
/// # Errors
/// The stream is unusable: close it.
pub fn decode_response<'a>(
    buffer: &'a [u8],
    limits: &FrameLimits,
) -> Result<DecodeResponse<'a>, FrameError> {
    if let Some(&got) = buffer.first()
        && got != MAGIC
    {
        return Err(FrameError::without_header(FrameFault::BadMagic { got }));
    }
    let Some((head, body)) = buffer.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(DecodeResponse::Incomplete {
            needed: HEADER_BYTES,
        });
    };
    let header = ResponseHeader::decode(head);
    let broken = |fault| FrameError {
        id: header.id,
        opcode: header.opcode & !Opcode::RESPONSE_BIT,
        fault,
    };
    let (status, frame_bytes) = check_header(&header, limits).map_err(broken)?;
    let Some(body) = body.get(..frame_bytes - HEADER_BYTES) else {
        return Ok(DecodeResponse::Incomplete {
            needed: frame_bytes,
        });
    };
    let (extra, body) = body.split_at(usize::from(header.extra_bytes));
    let (key, value) = body.split_at(usize::from(header.key_bytes));
    Ok(DecodeResponse::Frame {
        consumed: frame_bytes,
        response: Response {
            id: header.id,
            opcode: header.opcode & !Opcode::RESPONSE_BIT,
            status,
            more: header.flags & ResponseHeader::FLAG_MORE != 0,
            fields: ResponseFields::decode(extra).map_err(broken)?,
            key,
            value,
        },
    })
}

/// Judges the header before its body arrives; returns the status and the length of the frame.
fn check_header(
    header: &ResponseHeader,
    limits: &FrameLimits,
) -> Result<(Status, usize), FrameFault> {
    if header.opcode & Opcode::RESPONSE_BIT == 0 {
        return Err(FrameFault::WrongDirection { got: header.opcode });
    }
    if header.flags & !ResponseHeader::FLAG_MORE != 0 {
        return Err(FrameFault::UnknownFlags {
            got: u16::from(header.flags),
        });
    }
    let bytes = header.frame_bytes();
    let frame_bytes = match usize::try_from(bytes) {
        Ok(frame_bytes) if frame_bytes <= limits.frame_bytes_max => frame_bytes,
        _ => {
            return Err(FrameFault::FrameTooLong {
                bytes,
                bytes_max: limits.frame_bytes_max,
            });
        }
    };
    if usize::from(header.extra_bytes) > EXTRA_BYTES_MAX
        || usize::from(header.key_bytes) > CURSOR_BYTES_MAX
    {
        return Err(FrameFault::BadBody);
    }
    let status =
        Status::from_byte(header.status).ok_or(FrameFault::UnknownStatus { got: header.status })?;
    Ok((status, frame_bytes))
}
