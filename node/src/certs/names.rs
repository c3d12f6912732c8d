//! The names that certificates carry, and who they stand for.

use std::net::IpAddr;
use std::str::FromStr;

use kelp_raft::{ClusterId, NodeId};
use rcgen::SanType;

use super::CertsError;

/// The domain of all internal names. `.internal` is reserved for private use, so no public
/// authority can issue it.
const DOMAIN: &str = "kelp.internal";

/// First word of the authority's common name; the cluster id follows.
const AUTHORITY_PREFIX: &str = "kelp ";

/// A DNS label has at most 63 characters (RFC 1035).
const LABEL_CHARACTERS_MAX: usize = 63;

/// Who a certificate stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// The authority of a cluster.
    Authority(ClusterId),
    /// A node of a cluster.
    Node(ClusterId, NodeId),
    /// A client of a cluster, by name.
    Client(ClusterId, String),
    /// None of the above: made by another authority for another purpose.
    Foreign,
}

/// The name that a node's certificate carries and that a dialling peer demands.
pub fn node_name(cluster: ClusterId, node: NodeId) -> String {
    format!("n{}.{cluster}.{DOMAIN}", node.get())
}

/// The name that a client's certificate carries.
pub fn client_name(cluster: ClusterId, name: &str) -> Result<String, CertsError> {
    let refuse = |reason| {
        Err(CertsError::BadName {
            name: name.to_owned(),
            reason,
        })
    };
    if name.is_empty() || name.len() > LABEL_CHARACTERS_MAX {
        return refuse("a client name has 1 to 63 characters");
    }
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.bytes().all(allowed) {
        return refuse("a client name is made of a-z, 0-9 and -");
    }
    if name.starts_with('-') || name.ends_with('-') {
        return refuse("a client name neither starts nor ends with -");
    }
    Ok(format!("u.{name}.{cluster}.{DOMAIN}"))
}

pub(super) fn authority_subject(cluster: ClusterId) -> String {
    format!("{AUTHORITY_PREFIX}{cluster}")
}

pub(super) fn parse_authority_subject(common_name: &str) -> Option<ClusterId> {
    let hex = common_name.strip_prefix(AUTHORITY_PREFIX)?;
    ClusterId::from_str(hex).ok()
}

/// Reads an internal name back; `None` for any other name.
pub(super) fn parse_name(name: &str) -> Option<Identity> {
    let rest = name.strip_suffix(DOMAIN)?.strip_suffix('.')?;
    let (owner, hex) = rest.rsplit_once('.')?;
    let cluster = ClusterId::from_str(hex).ok()?;
    if let Some(client) = owner.strip_prefix("u.") {
        let same = client_name(cluster, client).is_ok_and(|made| made == name);
        return same.then(|| Identity::Client(cluster, client.to_owned()));
    }
    let node = NodeId::new(u16::from_str(owner.strip_prefix('n')?).ok()?);
    // Only the one spelling counts: "n01" is nobody.
    (node_name(cluster, node) == name).then_some(Identity::Node(cluster, node))
}

pub(super) fn dns_san(name: &str) -> Result<SanType, CertsError> {
    let name = name.try_into().map_err(|_| CertsError::BadName {
        name: name.to_owned(),
        reason: "a DNS name is ASCII",
    })?;
    Ok(SanType::DnsName(name))
}

/// A further name of a node's host. Internal names are refused, else one node's bundle could hold
/// another's identity.
pub(super) fn host_san(host: &str) -> Result<SanType, CertsError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let refuse = |reason| {
        Err(CertsError::BadName {
            name: host.to_owned(),
            reason,
        })
    };
    let lower = host.to_ascii_lowercase();
    if lower.trim_end_matches('.').ends_with(DOMAIN) {
        return refuse("names below kelp.internal are given by the authority");
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > 253 || !host.bytes().all(allowed) {
        return refuse("a host is an IP address or a DNS name without wildcards");
    }
    dns_san(&lower)
}
