//! IDENTITY, as it is and with its checksum put right.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_fuzz::bounded(bytes, || kelp_storage::fuzzing::identity(bytes));
    kelp_fuzz::bounded(bytes, || kelp_storage::fuzzing::identity_resealed(bytes));
});
