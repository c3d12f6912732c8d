//! What the parser makes of sound, split, broken and hostile streams, and what the encoder writes.

mod encoding;
mod faults;
mod streams;

use super::*;

/// A command with its own bytes.
type Owned = Vec<Vec<u8>>;

/// All commands of a stream, and how it ends.
fn parse_all(limits: RespLimits, stream: &[u8]) -> (Vec<Owned>, Result<usize, RespError>) {
    parse_in_pieces(limits, stream, &[])
}

/// Like [`parse_all`], with the stream arriving in pieces that end at `cuts`.
fn parse_in_pieces(
    limits: RespLimits,
    stream: &[u8],
    cuts: &[usize],
) -> (Vec<Owned>, Result<usize, RespError>) {
    let mut parser = RespParser::new(limits);
    let mut commands = Vec::new();
    let mut start = 0;
    let mut rest = 0;
    for end in cuts.iter().copied().chain([stream.len()]) {
        loop {
            let input = &stream[start..end.max(start)];
            match parser.parse(input) {
                Ok(RespStep::Command {
                    consumed,
                    arguments,
                }) => {
                    assert!((1..=input.len()).contains(&consumed));
                    commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
                Ok(RespStep::Incomplete { needed }) => {
                    assert!(needed > input.len(), "what is there is enough");
                    rest = input.len();
                    break;
                }
                Err(error) => return (commands, Err(error)),
            }
        }
    }
    (commands, Ok(rest))
}

fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn words(line: &str) -> Owned {
    line.split_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect()
}
