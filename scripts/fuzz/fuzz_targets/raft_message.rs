//! Messages between replicas, and what the log holds besides entries.

#![no_main]

use bytes::Bytes;
use kelp_raft::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let input = Bytes::copy_from_slice(bytes);
    kelp_fuzz::bounded(bytes, || fuzzing::peer_request(&input));
    kelp_fuzz::bounded(bytes, || fuzzing::peer_reply(&input));
    kelp_fuzz::bounded(bytes, || fuzzing::log_payload(&input));
    kelp_fuzz::bounded(bytes, || fuzzing::vote_record(&input));
});
