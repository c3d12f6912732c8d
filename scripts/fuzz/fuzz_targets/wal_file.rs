//! Recovery of a write-ahead log of one file, as it is and with its checksums put right.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_storage::fuzzing::wal_file(bytes);
    kelp_storage::fuzzing::wal_file_resealed(bytes);
});
