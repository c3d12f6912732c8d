//! HARDSTATE, as it is and with the checksums of its slots put right.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_storage::fuzzing::hard_state(bytes);
    kelp_storage::fuzzing::hard_state_resealed(bytes);
});
