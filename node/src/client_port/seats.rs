//! How many connections a client port has, told apart by whether the client has said hello.
//!
//! A client takes a seat with its hello. Whoever has not said hello is a stranger, and strangers
//! have places of their own: connections that say nothing cannot keep clients out, and clients
//! cannot keep out the one that wants to ask why it gets no seat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::observe::{ConnectionMetrics, DoorReason};

/// How long a new connection waits for the place of a stranger. Clients that come back all at once
/// pass through within it; where nothing moves for so long, further ones are told at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// The seats of a port.
pub(crate) struct Seats {
    client_count_max: usize,
    strangers: Arc<Semaphore>,
    /// Nobody left within [`PATIENCE`]; the next ones need not wait.
    crowded: AtomicBool,
    metrics: Arc<ConnectionMetrics>,
}

/// A free place for a connection that has not said hello.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// A connection before its hello, in its place.
pub(crate) struct Stranger {
    _place: Place,
    _counted: Counted,
}

/// The place of a client.
pub(crate) struct Seat {
    _counted: Counted,
}

/// One connection in a gauge, until it is dropped.
struct Counted {
    metrics: Arc<ConnectionMetrics>,
    gauge: fn(&ConnectionMetrics) -> &AtomicUsize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

impl Seats {
    /// Seats for so many clients, and places for so many strangers.
    pub(crate) fn new(
        client_count_max: usize,
        stranger_count_max: usize,
        metrics: Arc<ConnectionMetrics>,
    ) -> Self {
        Self {
            client_count_max,
            strangers: Arc::new(Semaphore::new(stranger_count_max)),
            crowded: AtomicBool::new(false),
            metrics,
        }
    }

    /// How many clients there are seats for.
    pub(crate) fn client_count_max(&self) -> usize {
        self.client_count_max
    }

    /// Counts a connection that was turned away.
    pub(crate) fn refused(&self, reason: DoorReason) {
        self.metrics.refused(reason);
    }

    /// A place for a stranger, waiting for one if that makes sense. Cancel-safe.
    pub(crate) async fn wait_for_place(&self) -> Option<Place> {
        let place = self.place();
        if place.is_some() || self.crowded.load(Ordering::Relaxed) {
            return place;
        }
        let permit = Arc::clone(&self.strangers).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(PATIENCE, permit).await else {
            self.crowded.store(true, Ordering::Relaxed);
            return None;
        };
        Some(Place { _permit: permit })
    }

    /// A place for a stranger, if there is one now.
    pub(crate) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.strangers).try_acquire_owned().ok()?;
        self.crowded.store(false, Ordering::Relaxed);
        Some(Place { _permit: permit })
    }

    /// A seat for a client; `None` when all are taken, which is counted.
    pub(crate) fn seat(&self) -> Option<Seat> {
        let seat = Seat {
            _counted: self.counted(ConnectionMetrics::greeted),
        };
        let taken = self.metrics.greeted().load(Ordering::Relaxed);
        if taken <= self.client_count_max {
            return Some(seat);
        }
        self.refused(DoorReason::Full);
        None
    }

    /// Puts a new connection into a place.
    pub(crate) fn stranger(&self, place: Place) -> Stranger {
        Stranger {
            _place: place,
            _counted: self.counted(ConnectionMetrics::strangers),
        }
    }

    fn counted(&self, gauge: fn(&ConnectionMetrics) -> &AtomicUsize) -> Counted {
        gauge(&self.metrics).fetch_add(1, Ordering::Relaxed);
        Counted {
            metrics: Arc::clone(&self.metrics),
            gauge,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn seats(clients: usize, strangers: usize) -> (Seats, Arc<ConnectionMetrics>) {
        let metrics = Arc::new(ConnectionMetrics::default());
        (
            Seats::new(clients, strangers, Arc::clone(&metrics)),
            metrics,
        )
    }

    #[test]
    fn a_client_without_a_seat_is_refused_and_counted_until_one_leaves() {
        let (seats, metrics) = seats(2, 1);
        let (first, _second) = (seats.seat().unwrap(), seats.seat().unwrap());
        assert!(seats.seat().is_none());
        assert_eq!(metrics.refused_count(DoorReason::Full), 1);
        assert_eq!(metrics.greeted().load(Ordering::Relaxed), 2);
        drop(first);
        assert!(seats.seat().is_some());
    }

    #[test]
    fn a_stranger_counts_from_its_arrival_until_it_has_a_seat() {
        let (seats, metrics) = seats(1, 1);
        let place = seats.place().unwrap();
        assert_eq!(metrics.strangers().load(Ordering::Relaxed), 0);
        let stranger = seats.stranger(place);
        assert_eq!(metrics.strangers().load(Ordering::Relaxed), 1);
        drop(stranger);
        assert_eq!(metrics.strangers().load(Ordering::Relaxed), 0);
        assert!(seats.place().is_some());
    }

    #[tokio::test]
    async fn silent_strangers_take_no_seat_and_make_the_next_wait_only_once() {
        let (seats, _) = seats(1, 2);
        let silent = (seats.place().unwrap(), seats.place().unwrap());
        assert!(seats.seat().is_some());
        assert!(seats.wait_for_place().await.is_none());
        let again = seats.wait_for_place();
        assert!(matches!(again.now_or_never(), Some(None)));
        drop(silent);
        assert!(seats.wait_for_place().await.is_some());
    }
}
