//! How many bytes all connections of a port may hold together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::observe::ConnectionMetrics;

/// Bytes held by the connections of a node. Cheap to clone.
///
/// It is a gauge, not a lock: a connection reports what it holds and looks before it takes more, so
/// the sum overshoots by at most one frame in and one reply out per connection.
#[derive(Clone)]
pub(crate) struct Budget {
    metrics: Arc<ConnectionMetrics>,
    bytes_max: usize,
}

/// What one connection holds; given back when it is dropped.
pub(crate) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize, metrics: Arc<ConnectionMetrics>) -> Self {
        Self { metrics, bytes_max }
    }

    pub(crate) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    /// Reports what the connection holds now.
    pub(crate) fn set(&mut self, bytes: usize) {
        let held = self.budget.metrics.held_bytes();
        if bytes > self.bytes {
            held.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            held.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// True while the connection may take more; it holds `bytes` now, reported or not.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let held = self.budget.metrics.held_bytes().load(Ordering::Relaxed);
        held.saturating_add(bytes) < self.budget.bytes_max.saturating_add(self.bytes)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_connection_holds_another_cannot_take() {
        let metrics = Arc::new(ConnectionMetrics::default());
        let budget = Budget::new(100, Arc::clone(&metrics));
        let (mut one, other) = (budget.share(), budget.share());
        one.set(60);
        assert!(other.has_room(39));
        assert!(!other.has_room(40));
        assert!(one.has_room(99), "its own bytes count once");
        assert!(!one.has_room(100));
        one.set(20);
        assert!(other.has_room(79));
        drop(one);
        assert_eq!(metrics.held_bytes().load(Ordering::Relaxed), 0);
    }
}
