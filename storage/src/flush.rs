//! Makes tables of memtables, in the background.
//!
//! One job serves all keyspaces of a database, one piece of work at a time, so flushes and installs
//! of a keyspace have an order. A flush takes the oldest frozen memtables of a keyspace and writes
//! the newest version of every key to tables of level 0. The tables join the keyspace only when the
//! write-ahead log is durable up to where it ended when the memtables were frozen: what is flushed
//! must never be ahead of the log that it was applied from.
//!
//! ```text
//!   idle --> writing, 1 MiB a step --> waiting for the log --> committed, published, listener told
//!    ^          | any failure              | log failed
//!    |          v                          v
//!    '---- back-off, files discarded    no flush any more
//! ```
//!
//! Nothing that fails loses anything: the memtables stay until the catalog has taken their tables.

mod control;
mod install;
mod job;
mod log_wait;
mod merge;
mod output;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use control::FlushControl;
pub(crate) use job::{FlushJob, FlushParts};
