//! How many bytes all connections of a port may hold together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes held by the connections of a node. Cheap to clone.
///
/// It is a gauge, not a lock: a connection reports what it holds and looks before it takes more, so
/// the sum overshoots by at most one frame per connection.
#[derive(Clone)]
pub(crate) struct Budget {
    held_bytes: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// What one connection holds; given back when it is dropped.
pub(super) struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            held_bytes: Arc::default(),
            bytes_max,
        }
    }

    pub(super) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            bytes: 0,
        }
    }

    /// True when no connection may take more.
    pub(super) fn is_exhausted(&self) -> bool {
        self.held_bytes.load(Ordering::Relaxed) >= self.bytes_max
    }
}

impl Share {
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.budget
                .held_bytes
                .fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.budget
                .held_bytes
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
