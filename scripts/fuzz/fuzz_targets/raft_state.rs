//! Keys and records of the `state` keyspace. The input is cut as the golden files are.

#![no_main]

use bytes::Bytes;
use kelp_raft::{
    AppliedRecord, ChainRecord, Limits, MembershipRecord, NodeProgress, Record, StateKey, fuzzing,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for part in kelp_fuzz::parts(bytes) {
        let part = Bytes::copy_from_slice(part);
        kelp_fuzz::bounded(&part, || check(&part));
    }
});

fn check(part: &Bytes) {
    if let Ok(key) = StateKey::decode(part) {
        assert_eq!(key.encode(), part);
    }
    if let Ok(record) = Record::decode(part) {
        assert_eq!(record.encode(), part);
    }
    if let Ok(record) = AppliedRecord::decode(part) {
        assert_eq!(record.encode(), part);
    }
    if let Ok(record) = ChainRecord::decode(part) {
        assert_eq!(record.encode(), part);
    }
    if let Ok(record) = MembershipRecord::decode(part) {
        assert_eq!(record.encode(), part);
    }
    if let Ok(limits) = Limits::decode(part) {
        assert_eq!(limits.encode(), part);
    }
    if let Ok(progress) = NodeProgress::decode(part) {
        assert_eq!(progress.encode(), part);
    }
    fuzzing::state_records(part);
}
