//! The description of a shipped state, as it is and with its checksum put right.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_storage::fuzzing::description(bytes);
    kelp_storage::fuzzing::description_resealed(bytes);
});
