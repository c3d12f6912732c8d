//! Where the heartbeats to each peer go: the address of its peer port, looked up when it is a name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kelp_client::Transport;
use kelp_raft::NodeId;
use tokio::time::{Instant, timeout};

/// A name is looked up again after this long: hosts move, and a heartbeat to the old address is
/// only lost.
const LOOKED_UP_EVERY: Duration = Duration::from_secs(30);

/// Time for one look-up.
const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(5);

/// A look-up that has ended.
type LookedUp = (NodeId, String, Option<SocketAddr>);

/// The addresses of all peers, and the look-ups under way: at most one per peer.
pub(super) struct Targets {
    transport: Arc<dyn Transport>,
    /// Whether this node's socket is one of IPv4.
    is_ipv4: bool,
    known: BTreeMap<NodeId, Target>,
    under_way: FuturesUnordered<BoxFuture<'static, LookedUp>>,
}

struct Target {
    /// "host:port" as the membership has it.
    text: String,
    address: Option<SocketAddr>,
    /// When to look the name up again; `None` while that is under way or not needed.
    due: Option<Instant>,
}

impl Targets {
    pub(super) fn new(transport: Arc<dyn Transport>, own: SocketAddr) -> Self {
        Self {
            transport,
            is_ipv4: own.is_ipv4(),
            known: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
        }
    }

    /// Forgets all but these peers.
    pub(super) fn retain(&mut self, peers: &BTreeSet<NodeId>) {
        self.known.retain(|node, _| peers.contains(node));
    }

    /// Where to send to `peer`, whose address is `text`; `None` while that is not known.
    pub(super) fn address(&mut self, peer: NodeId, text: &str, now: Instant) -> Option<SocketAddr> {
        let is_new = self.known.get(&peer).is_none_or(|known| known.text != text);
        if is_new {
            let literal: Option<SocketAddr> = text.parse().ok();
            let target = Target {
                text: text.to_owned(),
                address: literal.and_then(|address| reachable(address, self.is_ipv4)),
                due: literal.is_none().then_some(now),
            };
            self.known.insert(peer, target);
        }
        let target = self.known.get_mut(&peer)?;
        if target.due.is_some_and(|due| due <= now) {
            target.due = None;
            let transport = Arc::clone(&self.transport);
            let (text, is_ipv4) = (target.text.clone(), self.is_ipv4);
            let look_up = async move {
                let address = look_up(transport.as_ref(), &text, is_ipv4).await;
                (peer, text, address)
            };
            self.under_way.push(look_up.boxed());
        }
        target.address
    }

    /// Waits for a look-up to end and takes note of it; for ever when none is under way.
    /// Cancel-safe.
    pub(super) async fn next(&mut self) {
        let Some((peer, text, address)) = self.under_way.next().await else {
            return std::future::pending().await;
        };
        let target = self.known.get_mut(&peer).filter(|known| known.text == text);
        if let Some(target) = target {
            // A name that cannot be looked up now keeps the address that it had.
            target.address = address.or(target.address);
            target.due = Some(Instant::now() + LOOKED_UP_EVERY);
        }
    }
}

async fn look_up(transport: &dyn Transport, text: &str, is_ipv4: bool) -> Option<SocketAddr> {
    let resolved = timeout(LOOK_UP_TIME_MAX, transport.resolve(text)).await;
    let addresses = resolved.ok()?.ok()?;
    let same_family = addresses.iter().find(|found| found.is_ipv4() == is_ipv4);
    let address = same_family.or(addresses.first()).copied()?;
    reachable(address, is_ipv4)
}

/// The address as a socket of one family can send to it: one of IPv6 reaches both, one of IPv4 only
/// its own.
fn reachable(address: SocketAddr, is_ipv4: bool) -> Option<SocketAddr> {
    match address.ip() {
        IpAddr::V4(ip) if !is_ipv4 => {
            let mapped = IpAddr::V6(ip.to_ipv6_mapped());
            Some(SocketAddr::new(mapped, address.port()))
        }
        IpAddr::V6(_) if is_ipv4 => None,
        IpAddr::V4(_) | IpAddr::V6(_) => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_ipv6_sends_to_both_families() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (four, six) = (address("10.0.0.2:4801"), address("[fd00::2]:4801"));
        assert_eq!(reachable(four, true), Some(four));
        assert_eq!(reachable(six, true), None);
        assert_eq!(reachable(six, false), Some(six));
        let mapped = address("[::ffff:10.0.0.2]:4801");
        assert_eq!(reachable(four, false), Some(mapped));
    }
}
