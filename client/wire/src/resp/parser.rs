//! From bytes to the arguments of one command.
//!
//! ```text
//!            '*'             n > 0             '$' length
//! Start ------------> Count -------> Argument ----------> Bulk --+-> command
//!   |                   | n <= 0        ^                  |     |
//!   | else              '-> nothing     '-- more arguments '     |
//!   '-------------> Inline --------------------------------------'
//! ```

use super::error::RespError;
use super::inline;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The longest line that holds a number: its mark, its digits and the end of the line, with room.
const NUMBER_LINE_BYTES_MAX: usize = 32;

/// Spans kept for the next command; a larger list is given back.
const SPANS_KEPT: usize = 1_024;

/// What a parser accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RespLimits {
    /// The most arguments of a command, its name included.
    pub argument_count_max: usize,
    /// The longest argument.
    pub bulk_bytes_max: usize,
    /// The longest command as it is sent, marks and lengths included: all that a connection has to
    /// buffer.
    pub command_bytes_max: usize,
    /// The longest command in one line.
    pub inline_bytes_max: usize,
}

impl RespLimits {
    /// The limits of a node. An argument may be a little longer than a value, so that a value which
    /// is slightly too long is refused by a reply instead of by a closed connection; a command may
    /// be longer than what one log entry takes, for the same reason.
    pub const NODE: Self = Self {
        argument_count_max: 65_536,
        bulk_bytes_max: VALUE_BYTES_MAX + (1 << 20),
        command_bytes_max: 16 << 20,
        inline_bytes_max: 64 << 10,
    };
}

const _: () = assert!(
    RespLimits::NODE.command_bytes_max >= RespLimits::NODE.bulk_bytes_max + KEY_BYTES_MAX + 1_024,
    "the longest argument fits a command with a key beside it"
);
const _: () = assert!(
    RespLimits::NODE.command_bytes_max <= u32::MAX as usize,
    "spans are numbers of 32 bits"
);

/// Where an argument stands, in the input or in the unescaped text of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) bytes: u32,
}

impl Span {
    pub(super) fn new(start: usize, bytes: usize) -> Self {
        let number = |value| u32::try_from(value).expect("the limits of a command fit 32 bits");
        Self {
            start: number(start),
            bytes: number(bytes),
        }
    }

    fn of(self, source: &[u8]) -> &[u8] {
        let start = usize_of(self.start);
        &source[start..start + usize_of(self.bytes)]
    }
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).expect("a u32 fits into usize on every supported target")
}

#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    Count,
    Argument { left: usize },
    Bulk { left: usize, bytes: usize },
    Inline,
}

/// What a parser has made of the input.
#[derive(Debug)]
pub enum RespStep<'a> {
    /// One command, which took up the first `consumed` bytes of the input.
    Command {
        /// Bytes to take away before the next call.
        consumed: usize,
        /// The name and the arguments; empty for an empty line and for an array of nothing, which
        /// are to be passed over.
        arguments: RespArguments<'a>,
    },
    /// The command is not there yet.
    Incomplete {
        /// Bytes that the input must have before it can be; more than it has.
        needed: usize,
    },
}

/// The arguments of one command, its name first.
#[derive(Clone, Copy, Debug)]
pub struct RespArguments<'a> {
    source: &'a [u8],
    spans: &'a [Span],
}

impl<'a> RespArguments<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True when there is nothing, not even a name.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`; 0 is the name of the command.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.source))
    }

    /// The arguments from `first` on.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let source = self.source;
        let spans = self.spans.get(first..).unwrap_or_default();
        spans.iter().map(move |span| span.of(source))
    }
}

/// Takes commands off a stream of bytes, in however many pieces they come.
///
/// Invariants: `position` bytes of the current command have been understood, and are not looked at
/// again; `spans` lie within them, or within `text` for a command in one line.
#[derive(Debug)]
pub struct RespParser {
    limits: RespLimits,
    state: State,
    position: usize,
    spans: Vec<Span>,
    text: Vec<u8>,
}

impl RespParser {
    /// A parser at the start of a stream.
    pub fn new(limits: RespLimits) -> Self {
        Self {
            limits,
            state: State::Start,
            position: 0,
            spans: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Bytes of memory beside the input.
    pub fn allocated(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.text.capacity()
    }

    /// Looks for one command at the start of `input`.
    ///
    /// After [`RespStep::Incomplete`] the next call must be given the same bytes and more behind
    /// them; after a command, what stood behind that.
    ///
    /// # Errors
    /// The stream is of no use any more, and nor is the parser.
    pub fn parse<'a>(&'a mut self, input: &'a [u8]) -> Result<RespStep<'a>, RespError> {
        loop {
            let needed = match self.state {
                State::Start => self.begin(input),
                State::Count => self.count(input)?,
                State::Argument { left: 0 } => return Ok(self.finish(input)),
                State::Argument { left } => self.argument(left, input)?,
                State::Bulk { left, bytes } => self.bulk(left, bytes, input)?,
                State::Inline => match self.line(input)? {
                    None => return Ok(self.finish(input)),
                    needed => needed,
                },
            };
            if let Some(needed) = needed {
                return Ok(RespStep::Incomplete { needed });
            }
        }
    }

    /// Each of these takes one step, or says how many bytes it would need.
    fn begin(&mut self, input: &[u8]) -> Option<usize> {
        self.position = 0;
        self.spans.clear();
        self.spans.shrink_to(SPANS_KEPT);
        self.text.clear();
        self.text.shrink_to(SPANS_KEPT);
        self.state = match input.first() {
            None => return Some(1),
            Some(b'*') => State::Count,
            Some(_) => State::Inline,
        };
        None
    }

    fn count(&mut self, input: &[u8]) -> Result<Option<usize>, RespError> {
        let Some((line, end)) = number_line(input, 0, RespError::ArgumentCountLine)? else {
            return Ok(Some(input.len() + 1));
        };
        let count = decimal(line).ok_or(RespError::ArgumentCount)?;
        let left = usize::try_from(count.max(0)).map_err(|_| RespError::ArgumentCount)?;
        if left > self.limits.argument_count_max {
            return Err(RespError::ArgumentCount);
        }
        self.position = end;
        self.state = State::Argument { left };
        Ok(None)
    }

    fn argument(&mut self, left: usize, input: &[u8]) -> Result<Option<usize>, RespError> {
        match input.get(self.position) {
            None => return Ok(Some(self.position + 1)),
            Some(b'$') => {}
            Some(found) => return Err(RespError::NoBulk { found: *found }),
        }
        let line = number_line(input, self.position, RespError::BulkLengthLine)?;
        let Some((line, end)) = line else {
            return Ok(Some(input.len() + 1));
        };
        let bytes = decimal(line)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .filter(|bytes| *bytes <= self.limits.bulk_bytes_max)
            .ok_or(RespError::BulkLength)?;
        let bytes_max = self.limits.command_bytes_max;
        if end + bytes + 2 > bytes_max {
            return Err(RespError::CommandTooLong { bytes_max });
        }
        self.position = end;
        self.state = State::Bulk { left, bytes };
        Ok(None)
    }

    fn bulk(
        &mut self,
        left: usize,
        bytes: usize,
        input: &[u8],
    ) -> Result<Option<usize>, RespError> {
        let end = self.position + bytes;
        let Some(line_end) = input.get(end..end + 2) else {
            return Ok(Some(end + 2));
        };
        if line_end != b"\r\n" {
            return Err(RespError::BulkEnd);
        }
        self.spans.push(Span::new(self.position, bytes));
        self.position = end + 2;
        self.state = State::Argument { left: left - 1 };
        Ok(None)
    }

    /// Splits a command in one line; `position` is where its end is looked for.
    fn line(&mut self, input: &[u8]) -> Result<Option<usize>, RespError> {
        let searched = &input[self.position..input.len().min(self.limits.inline_bytes_max)];
        let Some(at) = searched.iter().position(|byte| *byte == b'\n') else {
            self.position += searched.len();
            if self.position >= self.limits.inline_bytes_max {
                return Err(RespError::InlineTooLong);
            }
            return Ok(Some(self.position + 1));
        };
        let line = &input[..self.position + at];
        self.position = line.len() + 1;
        inline::split(line, &mut self.text, &mut self.spans)?;
        Ok(None)
    }

    fn finish<'a>(&'a mut self, input: &'a [u8]) -> RespStep<'a> {
        let source = match std::mem::replace(&mut self.state, State::Start) {
            State::Inline => &self.text,
            _ => input,
        };
        RespStep::Command {
            consumed: self.position,
            arguments: RespArguments {
                source,
                spans: &self.spans,
            },
        }
    }
}

/// The number behind the mark at `start`, and where its line ends; `None` while that is not there.
fn number_line(
    input: &[u8],
    start: usize,
    endless: RespError,
) -> Result<Option<(&[u8], usize)>, RespError> {
    let rest = &input[start..];
    let searched = &rest[..rest.len().min(NUMBER_LINE_BYTES_MAX)];
    match searched.iter().position(|byte| *byte == b'\n') {
        Some(at) => Ok(Some((
            rest[1..at].strip_suffix(b"\r").unwrap_or_default(),
            start + at + 1,
        ))),
        None if searched.len() == NUMBER_LINE_BYTES_MAX => Err(endless),
        None => Ok(None),
    }
}

/// A number as Redis reads one: no sign but minus, no leading zero.
fn decimal(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = std::str::from_utf8(text).ok()?;
    plain.then(|| text.parse().ok()).flatten()
}
