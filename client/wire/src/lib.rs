//! What clients and nodes say to each other: the binary protocol of the client port, and RESP.
//!
//! Bytes in, borrowed values out, and the reverse; no sockets, no clock, no tokio. A node feeds its
//! read buffer to [`decode_request`] and answers with [`encode_response`]; a client does the
//! opposite with [`encode_request`] and [`decode_response`]. Redis clients are served through
//! [`RespParser`] and [`RespEncoder`]. Over UDP nodes exchange [`Heartbeat`]s and take
//! [`Telemetry`]. The byte tables are drawn once, in `docs/formats/wire.md`, `docs/formats/resp.md`
//! and `docs/formats/heartbeat.md`.
//!
//! What holds everywhere in this crate:
//! - Decoding a request or a datagram allocates nothing: every key and value borrows from the buffer.
//! - Lengths are checked against [`FrameLimits`] as soon as the 16-byte header is there, before a
//!   caller could reserve memory for the body.
//! - A [`FrameError`] means that the stream can no longer be trusted: send its one error frame,
//!   close. A [`RequestError`] concerns one well-framed request: answer it, go on.
//! - No input makes a decoder panic.

mod datagram;
mod error;
mod fields;
mod header;
mod heartbeat;
mod hello;
mod ids;
mod limits;
mod opcode;
mod options;
mod request;
mod resp;
mod response;
mod scan;
mod status;
mod telemetry;
mod tlv;

pub use datagram::{
    DATAGRAM_BYTES_MAX, DATAGRAM_HEADER_BYTES, Datagram, DatagramFault, DatagramHeader,
    DatagramOpcode,
};
pub use error::{FrameError, FrameFault, OptionFault, RequestError, ScanFault};
pub use fields::{LeaderHint, ResponseFields};
pub use header::{HEADER_BYTES, MAGIC, RequestHeader, ResponseHeader};
pub use heartbeat::{
    HEARTBEAT_BYTES_MAX, HEARTBEAT_MAC_BYTES, HEARTBEAT_VERSION, Heartbeat, HeartbeatEcho,
    HeartbeatKeyId, HeartbeatRole, HeartbeatStamp, SOFTWARE_VERSION_BYTES_MAX, SealedHeartbeat,
};
pub use hello::{HELLO_VERSION, Hello, HelloReply};
pub use ids::{ClientId, ClusterId, NodeId, RequestId, Revision, SessionToken};
pub use limits::{
    CURSOR_BYTES_MAX, ERROR_TEXT_BYTES_MAX, EXTRA_BYTES_MAX, FRAME_BYTES_MAX,
    FRAME_BYTES_MAX_BEFORE_HELLO, FrameLimits, KEY_BYTES_MAX, LEADER_ADDRESS_BYTES_MAX,
    RESPONSE_VALUE_BYTES_MAX, SCAN_PAGE_BYTES_DEFAULT, SCAN_PAGE_BYTES_MAX,
    SCAN_PAGE_ENTRIES_DEFAULT, SCAN_PAGE_ENTRIES_MAX, VALUE_BYTES_MAX,
};
pub use opcode::Opcode;
pub use options::{Consistency, ReadOptions, Session, WriteOptions};
pub use request::{Decode, Request, Scan, ScanBound, decode_request, encode_request};
pub use resp::{
    RespArguments, RespEncoder, RespError, RespLimits, RespParser, RespStep, RespVersion,
};
pub use response::{DecodeResponse, Response, decode_response, encode_error, encode_response};
pub use scan::{SCAN_ENTRY_HEADER_BYTES, ScanEntries, ScanEntry, key_after_prefix};
pub use status::{Executed, Status};
pub use telemetry::{
    Reading, ReadingFault, TELEMETRY_NAME_BYTES_MAX, TELEMETRY_VALUE_BYTES_MAX, Telemetry,
    encode_telemetry,
};
