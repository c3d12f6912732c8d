//! A manifest, as it is, with its checksums put right, and as one edit behind a small state.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    kelp_storage::fuzzing::manifest(bytes);
    kelp_storage::fuzzing::manifest_resealed(bytes);
    kelp_storage::fuzzing::manifest_edit(bytes);
});
