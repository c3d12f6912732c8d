//! Whole nodes in one process, on loopback sockets, with links that can be held and broken.

mod cluster;
mod frames;
mod links;
mod order;
mod resend;
mod serving;
