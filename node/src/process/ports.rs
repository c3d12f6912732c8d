//! Which ports the nodes of a development cluster use: fixed steps from a base port, or any free
//! ones.
#![expect(
    clippy::disallowed_methods,
    reason = "ports are tried before a child process, not this one, listens on them"
)]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};

use kelp_seams::Rng;

/// Distance between the ports of two nodes.
const NODE_STEP: u16 = 10;
/// Ports below belong to well-known programs.
const FREE_PORT_MIN: u16 = 10_000;
/// Linux hands out ports from 32768 for outgoing connections; below, nobody takes a port between
/// trying and use except by name.
const FREE_PORT_MAX: u16 = 32_000;
/// How many places to try before saying that there are no free ports.
const FREE_TRIES_MAX: u32 = 200;

/// The three ports of one node on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// The binary protocol.
    pub(crate) client: u16,
    /// Other nodes: TCP and UDP.
    pub(crate) peer: u16,
    /// Metrics and health.
    pub(crate) http: u16,
}

/// Why ports could not be planned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortError {
    /// Another program listens there.
    #[error(
        "port {0} is taken: stop what uses it, or choose others with --base-port \
         (0 takes any free ones)"
    )]
    Taken(u16),
    /// The steps from the base port run over 65535.
    #[error("--base-port {0} leaves no room for all nodes below port 65536")]
    BeyondLast(u16),
    /// Nothing free was found.
    #[error("found no free ports between {FREE_PORT_MIN} and {FREE_PORT_MAX}")]
    NoneFree,
}

/// Client `base + 10 i`, peer one above, HTTP two above, for i = 0, 1, ...
pub(crate) fn from_base(base: u16, count: u16) -> Result<Vec<NodePorts>, PortError> {
    (0..count)
        .map(|index| {
            let client = index
                .checked_mul(NODE_STEP)
                .and_then(|step| base.checked_add(step))?;
            Some(NodePorts {
                client,
                peer: client.checked_add(1)?,
                http: client.checked_add(2)?,
            })
        })
        .collect::<Option<_>>()
        .ok_or(PortError::BeyondLast(base))
}

/// Any base from which all ports are free now.
pub(crate) fn any_free(count: u16, rng: &dyn Rng) -> Result<Vec<NodePorts>, PortError> {
    let range = u64::from(FREE_PORT_MAX - FREE_PORT_MIN);
    for _ in 0..FREE_TRIES_MAX {
        let offset = u16::try_from(rng.next_u64() % range).expect("a remainder below 22000 fits");
        let ports = from_base(FREE_PORT_MIN + offset, count)?;
        if check_free(&ports).is_ok() {
            return Ok(ports);
        }
    }
    Err(PortError::NoneFree)
}

/// Names the first port that another program holds.
pub(crate) fn check_free(ports: &[NodePorts]) -> Result<(), PortError> {
    for node in ports {
        for port in [node.client, node.peer, node.http] {
            if is_taken(port, TcpListener::bind) {
                return Err(PortError::Taken(port));
            }
        }
        if is_taken(node.peer, UdpSocket::bind) {
            return Err(PortError::Taken(node.peer));
        }
    }
    Ok(())
}

fn is_taken<S>(port: u16, bind: fn(SocketAddrV4) -> io::Result<S>) -> bool {
    bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
        .is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests;
