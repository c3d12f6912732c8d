//! One record of the write-ahead log.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_fuzz::bounded(bytes, || kelp_storage::fuzzing::wal_record(bytes));
});
