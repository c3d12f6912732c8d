//! A process is known by number and start time together.

use super::*;

#[test]
fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
    let line = "17 (a) R (b) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 4096 10";
    assert_eq!(parse_stat(line), Some(('S', 98765)));
    assert_eq!(parse_cpu_ticks(line), Some(5.0 + 6.0));
    assert_eq!(parse_stat("17 (cut"), None);
    assert_eq!(parse_stat("17 (cut) S 1 2"), None);
}

#[test]
fn this_process_is_alive_and_another_start_time_is_not() {
    let own = ProcessIdentity::own().unwrap();
    assert!(own.is_alive());
    let stranger = ProcessIdentity {
        started: own.started + 1,
        ..own
    };
    assert!(!stranger.is_alive());
    assert!(!stranger.signal(Signal::KILL).unwrap());
}

#[test]
fn a_number_that_no_process_has_is_nobody() {
    assert_eq!(ProcessIdentity::of(u32::MAX).unwrap(), None);
}
