//! Exit codes are fixed for scripts; messages are one line.

use super::*;

#[test]
fn exit_codes_are_the_documented_numbers() {
    let documented = [
        (Exit::Done, 0),
        (Exit::Negative, 1),
        (Exit::Usage, 2),
        (Exit::Unavailable, 3),
        (Exit::Unknown, 4),
        (Exit::Refused, 5),
        (Exit::Interrupted, 130),
    ];
    for (exit, code) in documented {
        assert_eq!(exit.code(), code);
        assert_eq!(Exit::from_code(i32::from(code)), Some(exit));
    }
    assert_eq!(Exit::from_code(101), None);
}

#[test]
fn a_message_is_folded_into_one_line() {
    let failure = Failure::usage("first\n  second\r\nthird");
    assert_eq!(failure.message, "first second third");
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let gone = io::Error::from(io::ErrorKind::BrokenPipe);
    assert_eq!(Failure::output(&gone), Failure::silent(Exit::Done));
    let full = io::Error::from_raw_os_error(28);
    assert_eq!(
        Failure::output(&full).message,
        "cannot write to standard output: no space left on device"
    );
}

#[derive(Debug, thiserror::Error)]
#[error("cannot open {path}")]
struct Outer {
    path: &'static str,
    source: io::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("no way in: {source}")]
struct Repeating {
    source: io::Error,
}

#[test]
fn causes_follow_once_and_without_numbers() {
    let denied = || io::Error::from_raw_os_error(13);
    let outer = Outer {
        path: "x",
        source: denied(),
    };
    assert_eq!(
        Failure::caused(Exit::Refused, &outer).message,
        "cannot open x: permission denied"
    );
    let repeating = Repeating { source: denied() };
    assert_eq!(
        Failure::caused(Exit::Refused, &repeating).message,
        "no way in: Permission denied"
    );
    assert_eq!(lower_first("TLS failed"), "TLS failed");
}
