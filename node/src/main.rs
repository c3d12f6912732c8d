//! The `kelp` program.
fn main() {}
