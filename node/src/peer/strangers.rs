//! Accepted connections of which it is not known yet who they are.
//!
//! Anybody can open connections, so they are counted apart from those of peers, which they could
//! otherwise keep out. When there is no room the newcomer gets the place of the oldest: a peer is
//! through its handshake in milliseconds, and whoever waits for longer is hardly one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::PeerLimits;
use super::book::lock;

/// The strangers of a port, at most as many as the limits say.
pub(super) struct Strangers {
    count_max: usize,
    per_source_max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By number, which is the order of arrival.
    waiting: BTreeMap<u64, Stranger>,
    next: u64,
}

struct Stranger {
    source: IpAddr,
    /// Told to leave when it is dropped.
    _stay: oneshot::Sender<()>,
}

/// The place of one stranger; given up when it is dropped.
pub(super) struct Place {
    strangers: Arc<Strangers>,
    number: u64,
    stay: oneshot::Receiver<()>,
}

impl Strangers {
    pub(super) fn new(limits: &PeerLimits) -> Arc<Self> {
        Arc::new(Self {
            count_max: limits.strangers,
            per_source_max: limits.strangers_per_source,
            table: Mutex::default(),
        })
    }

    /// Takes a place for a connection from `address`, from the oldest of the same source or of all
    /// if there is none left.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Place {
        let source = source_of(address);
        let (sender, stay) = oneshot::channel();
        let mut table = lock(&self.table);
        let of_source = table
            .waiting
            .iter()
            .filter(|(_, stranger)| stranger.source == source);
        let oldest = of_source.clone().next().map(|(number, _)| *number);
        if of_source.count() >= self.per_source_max {
            oldest.and_then(|number| table.waiting.remove(&number));
        } else if table.waiting.len() >= self.count_max {
            table.waiting.pop_first();
        }
        let number = table.next;
        table.next += 1;
        let stranger = Stranger {
            source,
            _stay: sender,
        };
        table.waiting.insert(number, stranger);
        Place {
            strangers: Arc::clone(self),
            number,
            stay,
        }
    }
}

impl Place {
    /// Resolves when a newcomer has taken the place.
    pub(super) async fn lost(&mut self) {
        // The sender is never used, only dropped.
        drop((&mut self.stay).await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.strangers.table).waiting.remove(&self.number);
    }
}

/// What counts as one source: an address, or the smallest network that a host is given in IPv6.
fn source_of(address: IpAddr) -> IpAddr {
    const HOST_BITS: u32 = 64;
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> HOST_BITS << HOST_BITS).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn strangers(count_max: usize, per_source_max: usize) -> Arc<Strangers> {
        Strangers::new(&PeerLimits {
            strangers: count_max,
            strangers_per_source: per_source_max,
            ..PeerLimits::default()
        })
    }

    fn lost(places: &mut [Place]) -> Vec<bool> {
        places
            .iter_mut()
            .map(|place| place.stay.try_recv() == Err(TryRecvError::Closed))
            .collect()
    }

    #[test]
    fn newcomer_takes_the_place_of_the_oldest() {
        let strangers = strangers(2, 2);
        let mut places: Vec<_> = (0..3)
            .map(|host| strangers.enter([10, 0, 0, host].into()))
            .collect();
        assert_eq!(lost(&mut places), [true, false, false]);
        drop(places.remove(1));
        let mut newcomer = [strangers.enter([10, 0, 0, 9].into())];
        assert_eq!(
            lost(&mut places),
            [true, false],
            "a free place is taken first"
        );
        assert_eq!(lost(&mut newcomer), [false]);
    }

    #[test]
    fn one_source_cannot_take_all_places() {
        let strangers = strangers(4, 2);
        let greedy = [10, 0, 0, 1].into();
        let mut places: Vec<_> = [[10, 0, 0, 2].into(), greedy, greedy, greedy, greedy]
            .map(|address| strangers.enter(address))
            .into();
        assert_eq!(lost(&mut places), [false, true, true, false, false]);
    }

    #[test]
    fn addresses_of_one_host_are_one_source() {
        let same = |one: &str, other: &str| {
            source_of(one.parse().unwrap()) == source_of(other.parse().unwrap())
        };
        assert!(same("2001:db8::1", "2001:db8::ffff:2"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(!same("10.0.0.1", "10.0.0.2"));
    }
}
