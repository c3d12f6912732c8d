//! What people write is read exactly, and nothing is guessed.

use super::*;

#[test]
fn durations_need_a_unit() {
    assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
    assert_eq!(parse_duration(" 5s "), Ok(Duration::from_secs(5)));
    assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
    assert_eq!(parse_duration("1h"), Ok(Duration::from_hours(1)));
    assert_eq!(parse_duration("20us"), Ok(Duration::from_micros(20)));
    assert!(matches!(
        parse_duration("5"),
        Err(QuantityError::Unit { .. })
    ));
    assert!(matches!(
        parse_duration("5 days"),
        Err(QuantityError::Unit { .. })
    ));
    assert!(matches!(
        parse_duration("-5s"),
        Err(QuantityError::Number(_))
    ));
    assert!(matches!(parse_duration(""), Err(QuantityError::Number(_))));
}

#[test]
fn sizes_are_binary() {
    assert_eq!(parse_bytes("512"), Ok(512));
    assert_eq!(parse_bytes("64KiB"), Ok(65_536));
    assert_eq!(parse_bytes("8 MiB"), Ok(8 << 20));
    assert!(matches!(
        parse_bytes("8MB"),
        Err(QuantityError::Unit { .. })
    ));
}

#[test]
fn what_does_not_fit_is_too_large() {
    assert!(matches!(
        parse_duration("99999999999999999999s"),
        Err(QuantityError::TooLarge(_))
    ));
    assert!(matches!(
        parse_bytes("18446744073709551615GiB"),
        Err(QuantityError::TooLarge(_))
    ));
}
