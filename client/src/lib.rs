//! What Rust programs call to reach a Kelp cluster.
