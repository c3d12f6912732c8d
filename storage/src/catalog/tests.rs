//! The catalog on a disk in memory: what is committed is there after any crash, and what is not
//! needed goes.

mod commit;
mod crash;
mod fault;
mod lifetime;
mod open;
pub(crate) mod shelf;
