//! Streams that mean something, and properties of all streams.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn check(stream: &[u8], expected: &[Owned]) {
    let (commands, end) = parse_all(RespLimits::NODE, stream);
    assert_eq!(end, Ok(0), "{}", stream.escape_ascii());
    assert_eq!(commands, expected, "{}", stream.escape_ascii());
}

#[test]
fn arrays_and_lines_may_follow_each_other() {
    let stream = b"*1\r\n$4\r\nPING\r\nSET k v\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\n";
    check(
        stream,
        &[
            words("PING"),
            words("SET k v"),
            words("GET k"),
            words("PING"),
        ],
    );
}

#[test]
fn nothing_in_an_array_or_a_line_is_a_command_without_a_name() {
    check(b"*0\r\n*-1\r\n\r\n  \r\n\n", &vec![Owned::new(); 5]);
}

#[test]
fn arguments_may_hold_any_bytes() {
    let command = vec![b"SET".to_vec(), b"\r\n$*\0\xFF".to_vec(), Vec::new()];
    check(&encode(&command), &[command]);
}

#[test]
fn quoted_words_of_a_line_are_unescaped() {
    let line =
        b"SET \"a b\" 'it\\'s' \"\\x41\\xfF\\n\\r\\t\\b\\a\\\\\\\"\\q\\xg0\" '\\x41' a\"b\"\r\n";
    let expected = vec![
        b"SET".to_vec(),
        b"a b".to_vec(),
        b"it's".to_vec(),
        b"A\xFF\n\r\t\x08\x07\\\"qxg0".to_vec(),
        b"\\x41".to_vec(),
        b"ab".to_vec(),
    ];
    check(line, &[expected]);
    check(
        b"ECHO \"\" ''\r\n",
        &[vec![b"ECHO".to_vec(), vec![], vec![]]],
    );
}

#[test]
fn needed_bytes_cover_the_whole_argument_once_its_length_is_known() {
    let mut parser = RespParser::new(RespLimits::NODE);
    let step = parser.parse(b"*2\r\n$3\r\nGET\r\n$1000\r\nab");
    let expected = b"*2\r\n$3\r\nGET\r\n$1000\r\n".len() + 1_002;
    assert!(matches!(step, Ok(RespStep::Incomplete { needed }) if needed == expected));
}

#[test]
fn memory_follows_what_came_and_is_given_back() {
    let mut parser = RespParser::new(RespLimits::NODE);
    assert!(parser.parse(b"*65536\r\n").is_ok());
    assert_eq!(parser.allocated(), 0, "a promise takes no memory");
    let stream = encode(&vec![Vec::new(); 65_536]);
    let step = parser.parse(&stream).unwrap();
    assert!(matches!(step, RespStep::Command { arguments, .. } if arguments.len() == 65_536));
    assert!(parser.allocated() <= 2 * 65_536 * 8);
    assert!(parser.parse(b"").is_ok());
    assert!(parser.allocated() <= 8_192);
}

/// Streams of sound commands, of RESP's own marks, and of damaged commands.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let command = vec(vec(any::<u8>(), 0..12), 0..5).prop_map(|command| encode(&command));
    let line = "[ -~]{0,20}\r?\n".prop_map(String::into_bytes);
    let noise = vec(
        prop_oneof![
            Just(b'*'),
            Just(b'$'),
            Just(b'\r'),
            Just(b'\n'),
            Just(b'1'),
            any::<u8>()
        ],
        0..20,
    );
    let piece = prop_oneof![6 => command, 2 => line, 1 => noise];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn encoded_commands_come_back(commands in vec(vec(vec(any::<u8>(), 0..40), 1..6), 0..6)) {
        let stream: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        prop_assert_eq!(parse_all(RespLimits::NODE, &stream), (commands, Ok(0)));
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_means_the_same(
        stream in streams(),
        cuts in vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let whole = parse_all(RespLimits::NODE, &stream);
        for cut in 0..=stream.len() {
            let halves = parse_in_pieces(RespLimits::NODE, &stream, &[cut]);
            prop_assert_eq!(&halves, &whole, "cut at {}", cut);
        }
        let every: Vec<usize> = (0..stream.len()).collect();
        prop_assert_eq!(&parse_in_pieces(RespLimits::NODE, &stream, &every), &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(&parse_in_pieces(RespLimits::NODE, &stream, &cuts), &whole);
    }

    #[test]
    fn any_bytes_neither_panic_nor_take_memory_beyond_their_length(
        stream in vec(any::<u8>(), 0..300),
    ) {
        let mut parser = RespParser::new(RespLimits::NODE);
        let mut rest = &stream[..];
        while let Ok(RespStep::Command { consumed, .. }) = parser.parse(rest) {
            rest = &rest[consumed..];
        }
        prop_assert!(parser.allocated() <= 64 + 32 * stream.len());
    }
}
