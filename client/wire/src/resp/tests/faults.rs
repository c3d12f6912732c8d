//! Streams that are refused, and in which words.

use super::*;

const SMALL: RespLimits = RespLimits {
    argument_count_max: 3,
    bulk_bytes_max: 10,
    command_bytes_max: 30,
    inline_bytes_max: 12,
};

fn check(stream: &[u8], expected: &str) {
    let (_, end) = parse_all(SMALL, stream);
    let error = end.expect_err("it is refused").to_string();
    assert_eq!(error, expected, "{}", stream.escape_ascii());
    for cut in 0..stream.len() {
        let (_, end) = parse_in_pieces(SMALL, stream, &[cut]);
        assert_eq!(end.map_err(|error| error.to_string()), Err(error.clone()));
    }
}

#[test]
fn counts_that_are_no_numbers_or_too_large_are_refused() {
    for stream in [
        "*x\r\n", "*\r\n", "*01\r\n", "*+1\r\n", "*1\n", "*-0\r\n", "*4\r\n",
    ] {
        check(
            stream.as_bytes(),
            "Protocol error: invalid multibulk length",
        );
    }
    check(
        b"*99999999999999999999\r\n",
        "Protocol error: invalid multibulk length",
    );
    check(&[b'*'; 40], "Protocol error: too big mbulk count string");
}

#[test]
fn lengths_that_are_no_numbers_or_too_large_are_refused() {
    for stream in [
        "*1\r\n$x\r\n",
        "*1\r\n$-1\r\n",
        "*1\r\n$11\r\n",
        "*1\r\n$1\n",
    ] {
        check(stream.as_bytes(), "Protocol error: invalid bulk length");
    }
    let endless = [b"*1\r\n$".to_vec(), vec![b'1'; 40]].concat();
    check(&endless, "Protocol error: too big bulk count string");
}

#[test]
fn what_stands_where_an_argument_should_is_named() {
    check(b"*1\r\n:1\r\n", "Protocol error: expected '$', got ':'");
    check(b"*1\r\n\n", "Protocol error: expected '$', got '\\n'");
    check(
        b"*1\r\n$1\r\nabc\r\n",
        "Protocol error: expected CRLF after a bulk string",
    );
}

#[test]
fn a_command_over_the_limit_is_refused_at_the_length_that_passes_it() {
    let stream = b"*2\r\n$9\r\n123456789\r\n$9\r\n";
    check(stream, "Protocol error: command over 30 bytes");
}

#[test]
fn lines_without_end_or_with_open_quotes_are_refused() {
    check(&[b'a'; 12], "Protocol error: too big inline request");
    for stream in ["\"a\r\n", "'a\r\n", "\"a\"b\r\n", "'a'b\r\n", "\"\\\r\n"] {
        check(
            stream.as_bytes(),
            "Protocol error: unbalanced quotes in request",
        );
    }
}

#[test]
fn the_longest_of_everything_is_taken() {
    let command = vec![b"0123456789".to_vec(), b"a".to_vec()];
    let stream = encode(&command);
    assert_eq!(parse_all(SMALL, &stream), (vec![command], Ok(0)));
    assert_eq!(
        parse_all(SMALL, b"0123456789a\n"),
        (vec![words("0123456789a")], Ok(0))
    );
}
