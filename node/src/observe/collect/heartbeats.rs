//! The families of heartbeats and telemetry.

use super::super::HeartbeatCounts;
use super::super::metrics;
use super::super::samples::{Samples, flag, number};
use crate::heartbeat::{HeartbeatState, PeerLiveness};

pub(super) fn samples(counts: &HeartbeatCounts) -> Vec<Samples> {
    let mut refused = Samples::new(metrics::HEARTBEAT_REFUSED);
    for (reason, count) in &counts.refused {
        refused.add(&[reason.label()], number(*count));
    }
    let mut telemetry = Samples::new(metrics::TELEMETRY_VALUE);
    for (name, value) in &counts.telemetry {
        telemetry.add(&[name], *value);
    }
    let mut samples = peers(&counts.peers);
    samples.extend([
        refused,
        Samples::single(metrics::HEARTBEAT_DROPPED, number(counts.dropped)),
        Samples::single(
            metrics::TELEMETRY_DATAGRAMS,
            number(counts.telemetry_datagrams),
        ),
        Samples::single(metrics::TELEMETRY_DROPPED, number(counts.telemetry_dropped)),
        telemetry,
    ]);
    samples
}

fn peers(peers: &[PeerLiveness]) -> Vec<Samples> {
    let mut sent = Samples::new(metrics::HEARTBEAT_SENT);
    let mut received = Samples::new(metrics::HEARTBEAT_RECEIVED);
    let mut lost = Samples::new(metrics::HEARTBEAT_LOST);
    let mut ages = Samples::new(metrics::HEARTBEAT_AGE);
    let mut round_trips = Samples::new(metrics::HEARTBEAT_ROUND_TRIP);
    let mut offsets = Samples::new(metrics::HEARTBEAT_OFFSET);
    let mut blocked = Samples::new(metrics::HEARTBEAT_BLOCKED);
    for liveness in peers.iter().take(metrics::PEERS_MAX) {
        let peer = liveness.node.to_string();
        sent.add(&[&peer], number(liveness.sent));
        received.add(&[&peer], number(liveness.received));
        if let Some(ratio) = liveness.lost {
            lost.add(&[&peer], ratio.ratio());
        }
        if let Some(age) = liveness.age {
            ages.add(&[&peer], age.as_secs_f64());
        }
        if let Some(time) = liveness.round_trip {
            round_trips.add(&[&peer], time.as_secs_f64());
        }
        if let Some(millis) = liveness.clock_offset_millis {
            offsets.add(&[&peer], seconds(millis));
        }
        let is_blocked = liveness.state == HeartbeatState::Blocked;
        blocked.add(&[&peer], flag(is_blocked));
    }
    vec![sent, received, lost, ages, round_trips, offsets, blocked]
}

/// Milliseconds as seconds, with their sign.
fn seconds(millis: i64) -> f64 {
    let seconds = number(millis.unsigned_abs()) / 1_000.0;
    if millis < 0 { -seconds } else { seconds }
}
