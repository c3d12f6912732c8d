//! Processes: one node (`kelp start`) and a supervisor of several on one machine (`kelp dev`).
//!
//! ```text
//! kelp dev ──┬─ pipe ─> kelp start (node 1)      cluster.json: who runs where
//!            ├─ pipe ─> kelp start (node 2)      supervisor.json: who supervises
//!            └─ pipe ─> kelp start (node 3)      control/: requests and replies
//! ```
//!
//! A child ends when its end of the pipe closes, so that no way of ending the parent leaves an
//! orphan; the parent waits for every child, so that none stays a zombie. Processes are signalled
//! only by who started them, or by number and start time together. Nothing here knows Raft or
//! storage: a node is `crate::node::Node`, and whether it is well is asked over its ports like
//! anyone else would.

mod child;
mod cluster_file;
mod control;
mod dev;
pub(crate) mod files;
mod health;
mod identity;
mod layout;
mod ports;
mod readiness;
mod start;
mod supervisor;

pub use cluster_file::{CLUSTER_FILE, ClusterFile, ClusterNode};
pub use control::{Action, request};
pub(crate) use dev::NODES_MAX;
pub use dev::{DevOptions, run as run_dev};
pub(crate) use health::ask as ask_health;
pub use identity::ProcessIdentity;
pub(crate) use identity::cpu_seconds;
pub use start::run as run_start;
