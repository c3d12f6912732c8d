//! What makes a RESP stream unreadable.

/// A connection that sent this cannot be read on: send the text as an error reply, then close.
///
/// The texts are those of Redis where Redis has one, because clients and their tests compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RespError {
    /// The number of arguments is no number, or over the limit.
    #[error("Protocol error: invalid multibulk length")]
    ArgumentCount,
    /// The line with the number of arguments does not end.
    #[error("Protocol error: too big mbulk count string")]
    ArgumentCountLine,
    /// An argument does not begin like one.
    #[error("Protocol error: expected '$', got '{}'", .found.escape_ascii())]
    NoBulk {
        /// The byte in its place.
        found: u8,
    },
    /// The length of an argument is no number, or over the limit.
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    /// The line with the length of an argument does not end.
    #[error("Protocol error: too big bulk count string")]
    BulkLengthLine,
    /// An argument is not followed by the end of a line.
    #[error("Protocol error: expected CRLF after a bulk string")]
    BulkEnd,
    /// A command in one line does not end.
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// A command in one line has a quote without its partner.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    /// The arguments of one command are too long together.
    #[error("Protocol error: command over {bytes_max} bytes")]
    CommandTooLong {
        /// The limit.
        bytes_max: usize,
    },
}
