//! The first members of a cluster, as `--join` and `--member` name them: parsed, and checked
//! against each other and against the node's own listeners.
//!
//! Every member is told the whole list, so that any of them can found the cluster with it. What one
//! host says of itself must therefore be what all others are told.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The most first members: a larger quorum costs more than it protects.
const MEMBERS_MAX: usize = 9;
/// Names stand in tables and metric labels; a DNS label is as long.
const NAME_BYTES_MAX: usize = 63;

/// One member of the first configuration of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSettings {
    /// The node id, from 1.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Where other nodes reach it.
    pub peer: String,
    /// Where clients reach it.
    pub client: String,
    /// Where its metrics are.
    pub http: String,
}

impl MemberSettings {
    /// A member of `--join`: `[NAME=]HOST:PORT`, the peer address. The client port is one below,
    /// the HTTP port one above.
    pub(super) fn of_join(id: u16, text: &str) -> Result<Self, String> {
        let Some((name, peer)) = text.split_once('=') else {
            return Self::of_peer(id, text);
        };
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            ..Self::of_peer(id, peer)?
        })
    }

    fn of_peer(id: u16, peer: &str) -> Result<Self, String> {
        let (host, port) = host_and_port(peer)?;
        let neighbour = |port: Option<u16>| {
            port.map(|port| format!("{host}:{port}"))
                .ok_or_else(|| format!("{peer}: no port beside it for clients and HTTP"))
        };
        Ok(Self {
            id,
            name: format!("n{id}"),
            peer: peer.to_owned(),
            client: neighbour(port.checked_sub(1).filter(|port| *port != 0))?,
            http: neighbour(port.checked_add(1))?,
        })
    }

    /// A member of `--member`: `id=1,peer=HOST:PORT[,name=..][,client=..][,http=..]`.
    pub(super) fn of_text(text: &str) -> Result<Self, String> {
        let (mut id, mut peer, mut name, mut client, mut http) = (None, None, None, None, None);
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("'{part}' is not KEY=VALUE"))?;
            let slot = match key.trim() {
                "id" => &mut id,
                "peer" => &mut peer,
                "name" => &mut name,
                "client" => &mut client,
                "http" => &mut http,
                other => {
                    return Err(format!(
                        "'{other}' is not one of id, peer, name, client, http"
                    ));
                }
            };
            *slot = Some(value.trim());
        }
        let id = id
            .and_then(|id| id.parse::<u16>().ok())
            .filter(|id| *id != 0)
            .ok_or_else(|| format!("'{text}' needs id=N with N from 1 to 65535"))?;
        let peer = peer.ok_or_else(|| format!("'{text}' needs peer=HOST:PORT"))?;
        let mut member = Self::of_peer(id, peer)?;
        for (given, slot) in [(client, &mut member.client), (http, &mut member.http)] {
            if let Some(address) = given {
                host_and_port(address)?;
                address.clone_into(slot);
            }
        }
        if let Some(name) = name {
            check_name(name)?;
            name.clone_into(&mut member.name);
        }
        Ok(member)
    }

    fn addresses(&self) -> [&str; 3] {
        [&self.client, &self.peer, &self.http]
    }

    /// Where others are sent although this node does not listen there.
    pub(super) fn differences(
        &self,
        client: SocketAddr,
        peer: SocketAddr,
        http: SocketAddr,
    ) -> Vec<String> {
        let listeners = [("client", client), ("peer", peer), ("http", http)];
        listeners
            .into_iter()
            .zip(self.addresses())
            .filter(|((_, listener), told)| !reaches(told, *listener))
            .map(|((port, listener), told)| format!("{port} {told} but --{port} {listener}"))
            .collect()
    }
}

/// Whether a name may stand in tables and labels.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_fine) {
        return Ok(());
    }
    Err(format!(
        "'{name}' is no name: 1 to {NAME_BYTES_MAX} letters, digits, dashes, dots or underscores"
    ))
}

/// What is wrong with the members taken together.
pub(super) fn problems_between(members: &[MemberSettings]) -> Vec<String> {
    let mut problems = Vec::new();
    if members.len() > MEMBERS_MAX {
        let count = members.len();
        problems.push(format!("{count} members; at most {MEMBERS_MAX}"));
    }
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    for member in members {
        if !ids.insert(member.id) {
            problems.push(format!("id {} is given twice", member.id));
        }
        if !names.insert(&member.name) {
            problems.push(format!("name {} is given twice", member.name));
        }
    }
    // One clash is explained; the others mostly have the same cause.
    let clash = members.iter().enumerate().find_map(|(index, member)| {
        let before = members.iter().take(index);
        before
            .filter_map(|other| clash(other, member))
            .chain(clash_within(member))
            .next()
    });
    problems.extend(clash);
    problems
}

/// How two members are in each other's way.
fn clash(one: &MemberSettings, other: &MemberSettings) -> Option<String> {
    if one.peer == other.peer {
        return Some(format!("address {} is given twice", one.peer));
    }
    let taken = one.addresses();
    let shared = other
        .addresses()
        .into_iter()
        .find(|address| taken.contains(address))?;
    // Metrics that only the host itself reads lie on the same loopback port everywhere.
    if shared == one.http && shared == other.http && is_loopback(shared) {
        return None;
    }
    Some(format!(
        "{} and {} both take {shared}: unless --member names them, a node takes the port below its \
         peer port for clients and the one above for HTTP, so keep peer ports of one host 3 apart",
        one.peer, other.peer
    ))
}

fn clash_within(member: &MemberSettings) -> Option<String> {
    let [client, peer, http] = member.addresses();
    let twice = [(client, peer), (client, http), (peer, http)]
        .into_iter()
        .find(|(one, other)| one == other)?;
    Some(format!(
        "id {} has the address {} twice",
        member.id, twice.0
    ))
}

/// Whether a connection to `told` reaches the listener, as far as the texts say.
fn reaches(told: &str, listener: SocketAddr) -> bool {
    let Ok((host, port)) = host_and_port(told) else {
        return false;
    };
    let host_fits = match ip_of(host) {
        Some(ip) => listener.ip().is_unspecified() || ip == listener.ip(),
        None if host == "localhost" => {
            listener.ip().is_unspecified() || listener.ip().is_loopback()
        }
        // What other hosts call this one is no name of its loopback.
        None => !listener.ip().is_loopback(),
    };
    host_fits && (listener.port() == 0 || listener.port() == port)
}

fn is_loopback(address: &str) -> bool {
    host_and_port(address).is_ok_and(|(host, _)| {
        host == "localhost" || ip_of(host).is_some_and(|ip| ip.is_loopback())
    })
}

fn ip_of(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

fn host_and_port(text: &str) -> Result<(&str, u16), String> {
    text.rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)))
        .filter(|(host, port)| !host.is_empty() && *port != 0)
        .ok_or_else(|| format!("'{text}' is not HOST:PORT"))
}

#[cfg(test)]
mod tests;
