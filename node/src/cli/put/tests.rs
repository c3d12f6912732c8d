//! A value from standard input is taken as it is, within bounds.

use super::*;

#[test]
fn a_value_keeps_its_line_feed() {
    assert_eq!(read_value(&b"two\nlines\n"[..]).unwrap(), b"two\nlines\n");
}

#[test]
fn an_endless_value_is_cut_one_byte_over_the_limit() {
    let endless = std::io::repeat(b'x');
    assert_eq!(read_value(endless).unwrap().len(), VALUE_BYTES_MAX + 1);
}
