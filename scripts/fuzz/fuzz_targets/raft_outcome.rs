//! Outcomes of entries and sub-batches, and lists of replies.

#![no_main]

use bytes::{Bytes, BytesMut};
use kelp_raft::{EntryOutcome, SubBatchOutcome, decode_replies, encode_replies};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let input = Bytes::copy_from_slice(bytes);
    if let Ok(outcome) = kelp_fuzz::bounded(bytes, || EntryOutcome::decode(&input)) {
        let again = EntryOutcome::decode(&outcome.encode());
        assert_eq!(again.as_ref(), Ok(&outcome));
    }
    if let Ok(outcome) = kelp_fuzz::bounded(bytes, || SubBatchOutcome::decode(&input)) {
        let again = SubBatchOutcome::decode(&outcome.encode());
        assert_eq!(again.as_ref(), Ok(&outcome));
    }
    if let Ok(replies) = kelp_fuzz::bounded(bytes, || decode_replies(&input)) {
        let mut encoded = BytesMut::new();
        encode_replies(&replies, &mut encoded);
        let again = decode_replies(&encoded.freeze());
        assert_eq!(again.as_ref(), Ok(&replies));
    }
});
