//! Clusters of real processes, and what checks them.
//!
//! [`DevCluster`] starts `kelp dev` and kills and restarts its nodes; [`Ledger`] remembers what was
//! acknowledged and judges what is found later; [`chaos`] puts the two together. Tests in `tests/`
//! and the program `chaos` use the same parts.

#![expect(
    clippy::disallowed_methods,
    reason = "a harness starts processes, damages files and waits for other programs in real time"
)]

pub mod chaos;
mod dev_cluster;
mod ledger;
mod program;

pub use dev_cluster::{ClusterNode, DevCluster};
pub use ledger::{Effect, Ledger, Outcome, Violation};
pub use program::kelp_program;
