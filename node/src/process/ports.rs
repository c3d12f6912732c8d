//! Which ports the nodes of a development cluster use: fixed steps from a base port and from a first
//! Redis port, or any free ones.
#![expect(
    clippy::disallowed_methods,
    reason = "ports are tried before a child process, not this one, listens on them"
)]

use std::collections::BTreeSet;
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

/// The ports of one node on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePorts {
    /// The binary protocol.
    pub(crate) client: u16,
    /// Other nodes: TCP and UDP.
    pub(crate) peer: u16,
    /// Metrics and health.
    pub(crate) http: u16,
    /// Redis clients.
    pub(crate) resp: Option<u16>,
}

impl NodePorts {
    /// All ports of the node.
    fn all(&self) -> impl Iterator<Item = u16> + use<> {
        [self.client, self.peer, self.http]
            .into_iter()
            .chain(self.resp)
    }
}

/// Why ports could not be planned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortError {
    /// Another program listens there.
    #[error(
        "port {0} is taken: stop what uses it, or choose others with --base-port and --resp-port \
         (0 takes any free ones)"
    )]
    Taken(u16),
    /// The steps from the base port run over 65535.
    #[error("--{option} {base} leaves no room for all nodes below port 65536")]
    BeyondLast {
        /// The flag that named the first port.
        option: &'static str,
        /// The first port.
        base: u16,
    },
    /// The Redis ports run into the others.
    #[error("--resp-port {base} makes a Redis port fall together with another port")]
    Overlap {
        /// The first Redis port.
        base: u16,
    },
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
                resp: None,
            })
        })
        .collect::<Option<_>>()
        .ok_or(PortError::BeyondLast {
            option: "base-port",
            base,
        })
}

/// Gives the nodes Redis ports: `base + i`, or any free ones for 0.
pub(crate) fn add_resp(ports: &mut [NodePorts], base: u16, rng: &dyn Rng) -> Result<(), PortError> {
    if base != 0 {
        return set_resp(ports, base);
    }
    for _ in 0..FREE_TRIES_MAX {
        set_resp(ports, any_port(rng))?;
        if are_distinct(ports) && check_free(ports).is_ok() {
            return Ok(());
        }
    }
    Err(PortError::NoneFree)
}

fn set_resp(ports: &mut [NodePorts], base: u16) -> Result<(), PortError> {
    for (node, index) in ports.iter_mut().zip(0..) {
        let port = base.checked_add(index).ok_or(PortError::BeyondLast {
            option: "resp-port",
            base,
        })?;
        node.resp = Some(port);
    }
    if are_distinct(ports) {
        Ok(())
    } else {
        Err(PortError::Overlap { base })
    }
}

/// Whether free ports are to be looked for.
pub(crate) fn are_any(base: Option<u16>, resp: Option<u16>) -> bool {
    base == Some(0) || resp == Some(0)
}

/// Whether `ports` are those that begin at the wanted ones; 0 and none want any.
pub(crate) fn are_as_wanted(ports: &[NodePorts], base: Option<u16>, resp: Option<u16>) -> bool {
    let is = |wanted: Option<u16>, port: u16| wanted.is_none_or(|base| base == 0 || base == port);
    ports
        .first()
        .is_some_and(|first| is(base, first.client) && first.resp.is_none_or(|port| is(resp, port)))
}

/// Whether no port is used twice.
fn are_distinct(ports: &[NodePorts]) -> bool {
    let all: Vec<u16> = ports.iter().flat_map(NodePorts::all).collect();
    let distinct: BTreeSet<&u16> = all.iter().collect();
    distinct.len() == all.len()
}

/// Any base from which all ports are free now.
pub(crate) fn any_free(count: u16, rng: &dyn Rng) -> Result<Vec<NodePorts>, PortError> {
    for _ in 0..FREE_TRIES_MAX {
        let ports = from_base(any_port(rng), count)?;
        if check_free(&ports).is_ok() {
            return Ok(ports);
        }
    }
    Err(PortError::NoneFree)
}

fn any_port(rng: &dyn Rng) -> u16 {
    let range = u64::from(FREE_PORT_MAX - FREE_PORT_MIN);
    let offset = u16::try_from(rng.next_u64() % range).expect("a remainder below 22000 fits");
    FREE_PORT_MIN + offset
}

/// Names the first port that another program holds.
pub(crate) fn check_free(ports: &[NodePorts]) -> Result<(), PortError> {
    for node in ports {
        for port in node.all() {
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
