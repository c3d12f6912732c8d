//! How long things may be, each with its reason.
//!
//! The data limits are those of the data model; the frame limits follow from them. A node hands a
//! [`FrameLimits`] to the decoder: the narrow one until the connection has said hello, then the
//! full one.

/// The longest user key. Longer keys would not fit an engine key once escaped inside a collection.
pub const KEY_BYTES_MAX: usize = 32 * 1024;

/// The longest value. A command must fit a log entry of its own (9 MiB) with key and header.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most bytes of typed options in a frame: all options known today need under 200.
pub const EXTRA_BYTES_MAX: usize = 4 * 1024;

/// The longest scan cursor: a key, with room for its position, group and epoch. It travels in the
/// key field, whose length is a u16.
pub const CURSOR_BYTES_MAX: usize = KEY_BYTES_MAX + 64;

/// The longest frame in either direction. One MiB above the longest value, so that a value which
/// is slightly too long is refused by a reply instead of by a closed connection, and so that a
/// scan reply can hold one entry of the greatest key and value.
pub const FRAME_BYTES_MAX: usize = VALUE_BYTES_MAX + 1024 * 1024;

/// The longest frame before hello: whoever has not said who they are gets no large buffers.
pub const FRAME_BYTES_MAX_BEFORE_HELLO: usize = 64 * 1024;

/// The longest value of a response; the rest of the frame is for header, extra and key.
pub const RESPONSE_VALUE_BYTES_MAX: usize = FRAME_BYTES_MAX - 256 * 1024;

/// The longest text in an error frame; more would be a log, not a message.
pub const ERROR_TEXT_BYTES_MAX: usize = 1024;

/// The longest leader address: a DNS name of 253 bytes, a colon, and a port of 5 digits.
pub const LEADER_ADDRESS_BYTES_MAX: usize = 259;

/// Entries in a scan page when the request does not say.
pub const SCAN_PAGE_ENTRIES_DEFAULT: u32 = 1_000;

/// The most entries in a scan page, whatever the request says: bounds the work for tiny entries.
pub const SCAN_PAGE_ENTRIES_MAX: u32 = 10_000;

/// Bytes of a scan page when the request does not say.
pub const SCAN_PAGE_BYTES_DEFAULT: u32 = 1024 * 1024;

/// The most bytes of a scan page, whatever the request says: bounds what one reply holds in
/// memory. A single larger entry is still returned, alone.
pub const SCAN_PAGE_BYTES_MAX: u32 = 4 * 1024 * 1024;

const _: () = assert!(
    CURSOR_BYTES_MAX <= 0xFFFF,
    "cursors travel in the key field"
);
const _: () = assert!(
    RESPONSE_VALUE_BYTES_MAX >= VALUE_BYTES_MAX + KEY_BYTES_MAX + 1024,
    "a scan reply must hold the largest entry"
);
const _: () = assert!(
    FRAME_BYTES_MAX >= RESPONSE_VALUE_BYTES_MAX + CURSOR_BYTES_MAX + EXTRA_BYTES_MAX + 1024,
    "the largest response must fit a frame"
);

/// What a decoder accepts.
///
/// A frame over `frame_bytes_max` breaks the connection; a part over its own limit, inside an
/// acceptable frame, is refused by a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The longest frame, header included.
    pub frame_bytes_max: usize,
    /// The longest key.
    pub key_bytes_max: usize,
    /// The most bytes of options.
    pub extra_bytes_max: usize,
    /// The longest value of a request.
    pub value_bytes_max: usize,
}

impl FrameLimits {
    /// The limits of a connection that has said hello.
    pub const FULL: Self = Self {
        frame_bytes_max: FRAME_BYTES_MAX,
        key_bytes_max: KEY_BYTES_MAX,
        extra_bytes_max: EXTRA_BYTES_MAX,
        value_bytes_max: VALUE_BYTES_MAX,
    };

    /// The limits of a connection that has not yet said hello.
    pub const BEFORE_HELLO: Self = Self {
        frame_bytes_max: FRAME_BYTES_MAX_BEFORE_HELLO,
        ..Self::FULL
    };
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self::FULL
    }
}
