//! Entry points for checks.
fn main() {}
