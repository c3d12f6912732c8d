//! Measures how long the decoder takes per frame: `cargo run --release --example header_parse`.
//!
//! Prints one line per kind of frame: the best of many batches, because other work on the machine
//! can only add. Nothing is asserted.

use std::hint::black_box;

use bytes::BytesMut;
use kelp_wire::{
    FrameLimits, HEADER_BYTES, ReadOptions, Request, RequestHeader, RequestId, WriteOptions,
    decode_request, encode_request,
};

const BATCHES: u32 = 100;
const ROUNDS_PER_BATCH: u32 = 200_000;

fn main() {
    let mut put = BytesMut::new();
    let request = Request::Put {
        database: 0,
        key: b"user/000042",
        value: &[7; 100],
        options: WriteOptions::default(),
    };
    encode_request(&mut put, RequestId::new(1), &request).expect("the request is within limits");
    let header: [u8; HEADER_BYTES] = *put.first_chunk().expect("a frame begins with its header");
    report("header", || {
        black_box(RequestHeader::decode(black_box(&header)));
    });
    report("put", || {
        let _ = black_box(decode_request(black_box(&put), &FrameLimits::FULL));
    });
    let mut get = BytesMut::new();
    let request = Request::Get {
        database: 0,
        key: b"user/000042",
        options: ReadOptions::default(),
    }
    .with_deadline(std::time::Duration::from_secs(5));
    encode_request(&mut get, RequestId::new(2), &request).expect("the request is within limits");
    report("get with deadline", || {
        let _ = black_box(decode_request(black_box(&get), &FrameLimits::FULL));
    });
}

#[expect(clippy::print_stdout, reason = "the result of the program")]
#[expect(clippy::disallowed_methods, reason = "measures real time")]
fn report(name: &str, mut step: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = std::time::Instant::now();
        for _ in 0..ROUNDS_PER_BATCH {
            step();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS_PER_BATCH));
    }
    println!("{name}: {best:.2} ns");
}
