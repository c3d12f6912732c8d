//! RESP, the protocol of Redis clients, in its versions 2 and 3.
//!
//! ```text
//! bytes of a connection -> RespParser -> RespArguments (borrowed) -> a command
//! bytes of a connection <- RespEncoder <------------------------- its reply
//! ```
//!
//! A client sends each command as an array of bulk strings, or as one line of text; both versions
//! do so. A node answers in the version that the connection has agreed on. Layouts, limits and
//! faults are drawn in `docs/formats/resp.md`. What a command means is not known here.
//!
//! What holds: arguments borrow from the connection's buffer; a length is judged as soon as it is
//! read, before anybody could reserve memory for it; a command that comes in pieces is never looked
//! at twice from the start; no input makes the parser panic.

mod encoder;
mod error;
mod inline;
mod parser;

pub use encoder::{RespEncoder, RespVersion};
pub use error::RespError;
pub use parser::{RespArguments, RespLimits, RespParser, RespStep};

#[cfg(test)]
mod tests;
