//! Responses of nodes, the entries of scan pages in them, and replies to hello.

#![no_main]

use bytes::BytesMut;
use kelp_wire::{
    DecodeResponse, FrameLimits, HelloReply, Opcode, Response, ScanEntries, ScanEntry,
    decode_response, encode_response,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = FrameLimits::FULL;
    check_scan_page(bytes);
    check_hello_reply(bytes);
    match kelp_fuzz::bounded(bytes, || decode_response(bytes, &limits)) {
        Err(_) => {}
        Ok(DecodeResponse::Incomplete { needed }) => {
            assert!(needed > bytes.len(), "what is there is enough");
            assert!(needed <= limits.frame_bytes_max, "a limit was passed");
        }
        Ok(DecodeResponse::Frame { consumed, response }) => {
            assert!((1..=bytes.len()).contains(&consumed));
            check_scan_page(response.value);
            check_hello_reply(response.value);
            let mut frame = BytesMut::new();
            encode_response(&mut frame, &response);
            let again = DecodeResponse::Frame {
                consumed: frame.len(),
                response: Response {
                    // A node names only opcodes that it knows itself.
                    opcode: Opcode::response_byte(response.opcode) & !Opcode::RESPONSE_BIT,
                    ..response
                },
            };
            assert_eq!(decode_response(&frame, &limits), Ok(again));
        }
    }
});

fn check_scan_page(page: &[u8]) {
    let entries: Result<Vec<ScanEntry<'_>>, _> = ScanEntries::new(page).collect();
    if let Ok(entries) = entries {
        let mut again = BytesMut::new();
        for entry in &entries {
            entry.encode(&mut again);
        }
        assert_eq!(again, page);
    }
}

fn check_hello_reply(value: &[u8]) {
    if let Ok(reply) = HelloReply::decode(value) {
        let again = reply.encode();
        assert!(value.starts_with(&again));
    }
}
