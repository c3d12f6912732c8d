//! The client against scripted nodes on an in-memory network, with paused time.
//!
//! A test owns the node's end of each connection and says what the node does, so every order of
//! events is chosen, not hoped for. `network` is the harness; the other modules are tests.

mod calls;
mod connection;
mod failover;
mod hello;
mod limits;
mod network;
mod scan;
mod silence;
mod sockets;
mod tls;
