//! Whole groups of replicas in one process, in virtual time, on disks in memory.
//!
//! [`Cluster`] runs its nodes on stepped executors under tokio's paused clock, so nothing depends
//! on how fast the machine is: time moves only when every node has done all it could. Nodes talk
//! over a [`LocalBus`] whose links can be cut, slowed and made to lose messages, and lose power
//! with whatever their disk had not synced.

mod cluster;
mod local_bus;
mod virtual_time;

pub(crate) use cluster::{
    Cluster, ClusterOptions, Part, Rafts, Recorder, attempt, entry, put, sub_batch,
};
pub(crate) use local_bus::{LocalNetwork, Verdict};
pub(crate) use virtual_time::{VirtualClock, eventually, within_patience};
