//! The exact bytes of RESP, kept for ever in `testdata/v1/resp.txt`.
//!
//! Each line of the file is a name and the bytes in hexadecimal. Commands are as clients send them;
//! replies are as a node sends them, in both versions of the protocol.

use std::fmt::Write;

use bytes::BytesMut;
use kelp_wire::{RespEncoder, RespLimits, RespParser, RespStep, RespVersion};

const GOLDEN: &str = include_str!("../testdata/v1/resp.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings take all writes");
        text
    })
}

/// The streams of the file and the commands that they stand for, with `|` between the arguments.
const COMMANDS: [(&str, &[u8], &[&str]); 4] = [
    (
        "command_array",
        b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n",
        &["SET|key|value"],
    ),
    (
        "command_inline",
        b"SET \"a b\" '\\'' \"\\x41\"\r\n",
        &["SET|a b|'|A"],
    ),
    (
        "command_pipeline",
        b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$0\r\n\r\nQUIT\n",
        &["PING", "ECHO|", "QUIT"],
    ),
    ("command_nothing", b"*0\r\n\r\n", &["", ""]),
];

type WriteReply = fn(&mut RespEncoder<'_>);

const REPLIES: [(&str, WriteReply); 11] = [
    ("simple", |out| out.simple("OK")),
    ("error", |out| out.error("ERR syntax error")),
    ("integer", |out| out.integer(1_000)),
    ("integer_negative", |out| out.integer(-1)),
    ("bulk", |out| out.bulk(b"a\r\n\0")),
    ("bulk_empty", |out| out.bulk(b"")),
    ("null", |out| out.null()),
    ("array", |out| {
        out.array(2);
        out.bulk(b"a");
        out.null();
    }),
    ("map", |out| {
        out.map(1);
        out.bulk(b"proto");
        out.integer(3);
    }),
    ("set", |out| {
        out.set(1);
        out.simple("fast");
    }),
    ("verbatim", |out| out.verbatim("# Server\r\n")),
];

#[test]
fn commands_and_replies_have_their_golden_bytes() {
    let mut text = String::new();
    for (name, stream, _) in COMMANDS {
        writeln!(text, "{name} {}", hex(stream)).unwrap();
    }
    for version in [RespVersion::V2, RespVersion::V3] {
        for (name, write) in REPLIES {
            let mut out = BytesMut::new();
            write(&mut RespEncoder::new(&mut out, version));
            writeln!(text, "reply{}_{name} {}", version.number(), hex(&out)).unwrap();
        }
    }
    assert_eq!(text, GOLDEN, "the encoders now give:\n{text}");
}

#[test]
fn commands_of_the_file_are_understood() {
    for (name, stream, expected) in COMMANDS {
        let mut parser = RespParser::new(RespLimits::NODE);
        let mut rest = stream;
        let mut found = Vec::new();
        while let Ok(RespStep::Command {
            consumed,
            arguments,
        }) = parser.parse(rest)
        {
            let words: Vec<_> = arguments.from(0).map(String::from_utf8_lossy).collect();
            found.push(words.join("|"));
            rest = &rest[consumed..];
        }
        assert!(rest.is_empty(), "{name}");
        assert_eq!(found, expected, "{name}");
    }
}
