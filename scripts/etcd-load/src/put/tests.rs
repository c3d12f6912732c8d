use super::encode;

#[test]
fn put_is_a_grpc_frame_around_two_fields() {
    let expected = b"\x00\x00\x00\x00\x06\x0a\x01k\x12\x01v";
    assert_eq!(encode(b"k", b"v").as_ref(), expected);
}

#[test]
fn length_over_127_takes_two_bytes() {
    let message = encode(b"k", &[b'v'; 300]);
    assert_eq!(message[5..11], *b"\x0a\x01k\x12\xac\x02");
    assert_eq!(message.len(), 11 + 300);
}
