//! Telemetry that programs beside this node hand over, kept as bounded gauges.
//!
//! Telemetry has no seal: whoever can send a datagram from an allowed place can set a gauge, which
//! shows in the metrics and decides nothing. So it is kept only when the operator asks for it, from
//! this machine unless the operator says otherwise, and no more than [`NAMES_MAX`] names.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelp_seams::Monotonic;
use kelp_wire::{Reading, Telemetry};

use crate::peer::lock;

/// Names that are kept at once: each is a time series in Prometheus.
const NAMES_MAX: usize = 256;

/// A value that was not sent again for this long is forgotten, and its place is free. Prometheus
/// itself takes a series that is not renewed for stale after as long.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(5);

/// From where telemetry is taken. Datagrams are counted in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TelemetryMode {
    /// From nowhere.
    #[default]
    Off,
    /// From this machine: loopback, and the address that the peer port is bound to. Linux drops
    /// packets from outside that bear either.
    Local,
    /// From anybody who reaches the peer port.
    Any,
}

/// The gauges and what was counted about them.
pub(crate) struct Gauges {
    mode: TelemetryMode,
    own: IpAddr,
    values: Mutex<BTreeMap<String, Value>>,
    datagrams: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Clone, Copy)]
struct Value {
    value: f64,
    at: Monotonic,
}

impl Value {
    fn is_fresh(&self, now: Monotonic) -> bool {
        now.saturating_duration_since(self.at) < FORGOTTEN_AFTER
    }
}

impl Gauges {
    pub(super) fn new(mode: TelemetryMode, own: IpAddr) -> Self {
        Self {
            mode,
            own,
            values: Mutex::default(),
            datagrams: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Takes the pairs of a datagram that came from `from`.
    pub(super) fn take(&self, telemetry: &Telemetry<'_>, from: IpAddr, now: Monotonic) {
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        match self.mode {
            TelemetryMode::Off => return,
            TelemetryMode::Local if !self.is_local(from) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            TelemetryMode::Local | TelemetryMode::Any => {}
        }
        let mut values = lock(&self.values);
        for reading in telemetry.readings() {
            let kept = reading.is_ok_and(|reading| keep(&mut values, reading, now));
            if !kept {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The values that still count, by name.
    pub(super) fn values(&self, now: Monotonic) -> Vec<(String, f64)> {
        let values = lock(&self.values);
        let fresh = values.iter().filter(|(_, value)| value.is_fresh(now));
        fresh
            .map(|(name, value)| (name.clone(), value.value))
            .collect()
    }

    /// Telemetry datagrams that have arrived, whatever became of them.
    pub(crate) fn datagrams(&self) -> u64 {
        self.datagrams.load(Ordering::Relaxed)
    }

    /// Datagrams from elsewhere, and pairs that break a rule or found no place.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn is_local(&self, from: IpAddr) -> bool {
        let from = from.to_canonical();
        from.is_loopback() || (from == self.own.to_canonical() && !from.is_unspecified())
    }
}

/// Keeps a reading; `false` when there is no place for another name.
fn keep(values: &mut BTreeMap<String, Value>, reading: Reading<'_>, now: Monotonic) -> bool {
    let value = Value {
        value: reading.value,
        at: now,
    };
    if let Some(kept) = values.get_mut(reading.name) {
        *kept = value;
        return true;
    }
    if values.len() >= NAMES_MAX {
        values.retain(|_, value| value.is_fresh(now));
    }
    if values.len() >= NAMES_MAX {
        return false;
    }
    values.insert(reading.name.to_owned(), value);
    true
}

#[cfg(test)]
mod tests;
