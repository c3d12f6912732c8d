//! What this node remembers of the heartbeats to and from one peer.

use std::time::Duration;

use kelp_raft::NodeId;
use kelp_seams::Monotonic;
use kelp_wire::{Heartbeat, HeartbeatEcho, HeartbeatStamp};

use super::estimate::Estimate;
use super::exchange::Moment;
use super::liveness::{HeartbeatState, Lost, PeerLiveness, Told};
use super::silence::{MISSING_AFTER, News, Silence};
use super::window::Window;

/// One peer. Of the datagrams only the newest leaves its content; of the older ones, counts.
#[derive(Debug, Default)]
pub(super) struct Track {
    sent: u64,
    received: u64,
    window: Window,
    newest: Option<Newest>,
    estimate: Estimate,
    silence: Silence,
}

#[derive(Debug)]
struct Newest {
    boot: u64,
    sequence: u64,
    /// By the peer's clocks.
    sent: HeartbeatStamp,
    /// By the clocks here.
    received: Moment,
    interval: Duration,
    lost_there: Option<Lost>,
    told: Told,
}

impl Track {
    /// The sequence of the next heartbeat to the peer.
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// What to echo to the peer in a heartbeat sent now.
    pub(super) fn echo(&self, now: Moment) -> Option<HeartbeatEcho> {
        let newest = self.newest.as_ref()?;
        let lost = self.lost(now.monotonic)?;
        let held = now
            .monotonic
            .saturating_duration_since(newest.received.monotonic);
        Some(HeartbeatEcho {
            boot: newest.boot,
            sequence: newest.sequence,
            sent: newest.sent,
            received_wall_millis: newest.received.wall.get(),
            held_nanos: u64::try_from(held.as_nanos()).unwrap_or(u64::MAX),
            received: lost.received,
            window: lost.window,
        })
    }

    /// Takes a heartbeat whose seal is right; `false` when it has come before or too late.
    /// `own_boot` is this node's, which an echo must be of.
    pub(super) fn accept(&mut self, heartbeat: &Heartbeat<'_>, own_boot: u64, now: Moment) -> bool {
        if !self.window.accept(heartbeat.boot, heartbeat.sequence) {
            return false;
        }
        self.received += 1;
        if !self.window.is_newest(heartbeat.boot, heartbeat.sequence) {
            return true;
        }
        let restarted = |newest: &Newest| newest.boot != heartbeat.boot;
        if self.newest.as_ref().is_some_and(restarted) {
            self.estimate = Estimate::default();
        }
        let echo = heartbeat.echo.filter(|echo| echo.boot == own_boot);
        if let Some(echo) = &echo {
            self.estimate.add(echo, heartbeat.sent, now);
        }
        self.newest = Some(Newest {
            boot: heartbeat.boot,
            sequence: heartbeat.sequence,
            sent: heartbeat.sent,
            received: now,
            interval: Duration::from_millis(heartbeat.interval_millis.max(1).into()),
            lost_there: echo.and_then(lost_there),
            told: told(heartbeat),
        });
        true
    }

    /// Compares with what TCP says of the peer.
    pub(super) fn look(&mut self, is_reachable: bool, now: Monotonic) -> Option<News> {
        self.silence.look(self.heard(), is_reachable, now)
    }

    pub(super) fn liveness(&self, node: NodeId, now: Monotonic) -> PeerLiveness {
        let newest = self.newest.as_ref();
        PeerLiveness {
            node,
            state: self.state(now),
            age: self
                .heard()
                .map(|heard| now.saturating_duration_since(heard)),
            round_trip: self.estimate.round_trip(now),
            clock_offset_millis: self.estimate.offset_millis(now),
            lost: self.lost(now),
            lost_there: newest.and_then(|newest| newest.lost_there),
            sent: self.sent,
            received: self.received,
            told: newest.map(|newest| newest.told.clone()),
        }
    }

    /// As of now, though the last look was some beats ago.
    fn state(&self, now: Monotonic) -> HeartbeatState {
        let age = |heard| now.saturating_duration_since(heard);
        match self.silence.state() {
            HeartbeatState::Arriving if self.heard().map(age) >= Some(MISSING_AFTER) => {
                HeartbeatState::Missing
            }
            state => state,
        }
    }

    fn heard(&self) -> Option<Monotonic> {
        Some(self.newest.as_ref()?.received.monotonic)
    }

    /// What did not arrive of the last heartbeats, those included that should have come by now. One
    /// that is late by less than an interval is not missed yet.
    fn lost(&self, now: Monotonic) -> Option<Lost> {
        let newest = self.newest.as_ref()?;
        let age = now.saturating_duration_since(newest.received.monotonic);
        let intervals = age.as_nanos() / newest.interval.as_nanos().max(1);
        let overdue = u64::try_from(intervals)
            .unwrap_or(u64::MAX)
            .saturating_sub(1);
        self.window.tally(overdue)
    }
}

fn lost_there(echo: HeartbeatEcho) -> Option<Lost> {
    (echo.window > 0).then_some(Lost {
        received: echo.received.min(echo.window),
        window: echo.window,
    })
}

fn told(heartbeat: &Heartbeat<'_>) -> Told {
    Told {
        role: heartbeat.role,
        term: heartbeat.term,
        committed: heartbeat.committed,
        applied: heartbeat.applied,
        sync_age_millis: heartbeat.sync_age_millis,
        sync_p99_micros: heartbeat.sync_p99_micros,
        disk_free_bytes: heartbeat.disk_free_bytes,
        memory_bytes: heartbeat.memory_bytes,
        software_version: heartbeat.software_version.to_owned(),
    }
}
