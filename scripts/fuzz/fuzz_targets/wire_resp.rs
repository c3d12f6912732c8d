//! Streams of Redis clients, whole and cut in two.

#![no_main]

use kelp_wire::{RespError, RespLimits, RespParser, RespStep};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first bytes say where the rest of the stream is cut.
    let Some((cut, stream)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let cut = usize::from(u16::from_le_bytes(*cut)) % (stream.len() + 1);
    let whole = kelp_fuzz::bounded(stream, || parse(stream, &[stream.len()]));
    let halves = kelp_fuzz::bounded(stream, || parse(stream, &[cut, stream.len()]));
    assert_eq!(whole, halves, "cut at {cut}");
});

/// What a stream means that arrives up to one end after the other: how many commands of how many
/// bytes and arguments each, and why it cannot be read on.
fn parse(stream: &[u8], ends: &[usize]) -> (Vec<(usize, usize)>, Option<RespError>) {
    let mut parser = RespParser::new(RespLimits::NODE);
    let mut commands = Vec::new();
    let mut start = 0;
    for end in ends {
        loop {
            let input = &stream[start..*end.max(&start)];
            match parser.parse(input) {
                Ok(RespStep::Command {
                    consumed,
                    arguments,
                }) => {
                    assert!((1..=input.len()).contains(&consumed));
                    assert!(arguments.from(0).map(<[u8]>::len).sum::<usize>() <= consumed);
                    commands.push((consumed, arguments.len()));
                    start += consumed;
                }
                Ok(RespStep::Incomplete { needed }) => {
                    assert!(needed > input.len(), "what is there is enough");
                    break;
                }
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}
