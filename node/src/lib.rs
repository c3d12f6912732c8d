//! The Kelp process: listeners, forwarding, peers, metrics and the command line.

mod accept;
#[doc(hidden)]
pub mod benching;
pub mod certs;
pub mod cli;
mod client_port;
pub mod config;
mod descriptors;
mod heartbeat;
pub mod http;
mod leadership;
pub mod node;
pub mod observe;
pub mod peer;
pub mod process;
mod proposer;
mod redis_port;
pub mod status_report;
pub mod tls;
