//! Whole groups: elections, replication, power cuts, reads.

mod chaos;
mod crashes;
mod leader_restore;
mod proposals;
mod reads;
mod replication;
mod snapshots;
mod start;

use super::*;
