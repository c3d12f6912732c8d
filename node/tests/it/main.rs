//! Whole nodes in one process, on loopback sockets, with links that can be held and broken.

mod cluster;
mod disk;
mod door;
mod emptied;
mod frames;
mod heartbeats;
mod links;
mod order;
mod raw;
mod redis;
mod resend;
mod serving;
mod withdrawn;
