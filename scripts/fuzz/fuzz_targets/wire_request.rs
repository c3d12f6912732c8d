//! Requests of clients, before and after hello.

#![no_main]

use bytes::BytesMut;
use kelp_wire::{Decode, FrameError, FrameLimits, decode_request, encode_request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for limits in [FrameLimits::BEFORE_HELLO, FrameLimits::FULL] {
        let mut rest = bytes;
        while let Some(consumed) = check_frame(rest, &limits) {
            rest = &rest[consumed..];
        }
    }
});

/// Checks the first frame of a stream and answers how long it is.
fn check_frame(stream: &[u8], limits: &FrameLimits) -> Option<usize> {
    match kelp_fuzz::unallocated(|| decode_request(stream, limits)) {
        Err(error) => {
            check_error_frame(&error);
            None
        }
        Ok(Decode::Incomplete { needed }) => {
            assert!(needed > stream.len(), "what is there is enough");
            assert!(needed <= limits.frame_bytes_max, "a limit was passed");
            None
        }
        Ok(Decode::Frame {
            consumed,
            id,
            opcode,
            request,
        }) => {
            assert!((1..=limits.frame_bytes_max).contains(&consumed));
            if let Ok(request) = request {
                assert_eq!(request.opcode().to_byte(), opcode);
                let mut frame = BytesMut::new();
                encode_request(&mut frame, id, &request).expect("it was within the limits");
                let again = Decode::Frame {
                    consumed: frame.len(),
                    id,
                    opcode,
                    request: Ok(request),
                };
                assert_eq!(decode_request(&frame, limits), Ok(again));
            }
            Some(consumed)
        }
    }
}

fn check_error_frame(error: &FrameError) {
    let mut frame = BytesMut::new();
    error.encode(&mut frame);
    assert!(frame.len() <= FrameLimits::BEFORE_HELLO.frame_bytes_max);
}
