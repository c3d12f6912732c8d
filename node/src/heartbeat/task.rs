//! The socket and the timer: sends on the beat, and takes what arrives.

use std::convert::Infallible;
use std::time::Duration;

use bytes::BytesMut;
use kelp_client::Datagrams;
use kelp_raft::NodeId;
use kelp_wire::{DATAGRAM_BYTES_MAX, HEARTBEAT_BYTES_MAX};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::intake::{Intake, Verdict};
use super::silence::News;
use super::surroundings::Look;
use super::targets::Targets;
use super::{HEARTBEAT_INTERVAL, Heartbeats};
use crate::peer::lock;

/// Pause before the socket is bound again: what holds the port may go away.
const BIND_PAUSE: Duration = Duration::from_secs(5);

/// Pause after receiving fails, as a shortage of memory makes it.
const RECEIVE_PAUSE: Duration = Duration::from_millis(50);

/// Time between two looks at what TCP says of the peers.
const LOOK_INTERVAL: Duration = HEARTBEAT_INTERVAL.saturating_mul(5);

/// Time between two samples of what does not change from beat to beat: free disk and memory.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);

impl Heartbeats {
    /// Sends, receives and samples until it is dropped.
    pub(crate) async fn run(&self) -> Infallible {
        let (never, _): (Infallible, Infallible) = tokio::join!(self.exchange(), self.sample());
        never
    }

    /// Sends and receives. A port that cannot be had is tried again; the node works without.
    async fn exchange(&self) -> Infallible {
        let mut told = false;
        loop {
            let error = match self.transport.bind_datagrams(self.address).await {
                Ok(socket) => {
                    let socket = socket.as_ref();
                    let (never, _): (Infallible, Infallible) =
                        tokio::join!(self.send(socket), self.receive(socket));
                    return never;
                }
                Err(error) => error,
            };
            if !told {
                told = true;
                let address = self.address;
                tracing::warn!(
                    %address,
                    %error,
                    "no udp port for heartbeats; the node works without them"
                );
            }
            self.go_without().await;
        }
    }

    /// Watches the peers for as long as a pause between two attempts to bind.
    async fn go_without(&self) {
        let mut looks = interval(LOOK_INTERVAL);
        let until = Instant::now() + BIND_PAUSE;
        while looks.tick().await < until {
            let look = self.surroundings.look();
            lock(&self.exchange).set_peers(&look.peers);
            self.compare_with_tcp();
        }
    }

    async fn send(&self, socket: &dyn Datagrams) -> Infallible {
        let mut targets = Targets::new(self.transport.clone(), self.address);
        let mut beats = interval(HEARTBEAT_INTERVAL);
        // After a stall one heartbeat is enough: the others would only say the same.
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_look = Instant::now() + LOOK_INTERVAL;
        let mut buffer = BytesMut::with_capacity(HEARTBEAT_BYTES_MAX);
        loop {
            tokio::select! {
                _ = beats.tick() => {}
                () = targets.next() => continue,
            }
            let look = self.surroundings.look();
            lock(&self.exchange).set_peers(&look.peers);
            targets.retain(&look.peers);
            for peer in &look.peers {
                self.send_to(*peer, &look, socket, &mut targets, &mut buffer);
            }
            if Instant::now() >= next_look {
                next_look = Instant::now() + LOOK_INTERVAL;
                self.compare_with_tcp();
            }
        }
    }

    fn send_to(
        &self,
        peer: NodeId,
        look: &Look,
        socket: &dyn Datagrams,
        targets: &mut Targets,
        buffer: &mut BytesMut,
    ) {
        let Some(text) = self.surroundings.address(peer) else {
            return;
        };
        let Some(address) = targets.address(peer, &text, Instant::now()) else {
            return;
        };
        let Some(secret) = self.surroundings.dialled_secret(peer) else {
            return;
        };
        buffer.clear();
        let now = self.now();
        lock(&self.exchange).beat(peer, &look.vitals, &secret, now, buffer);
        if !buffer.is_empty() && socket.try_send_to(buffer, address).is_err() {
            self.count_dropped();
        }
    }

    fn compare_with_tcp(&self) {
        let reachable = self.surroundings.reachable();
        let now = self.clock.monotonic();
        let news = lock(&self.exchange).look(&reachable, now);
        for (peer, news) in news {
            let (peer, port) = (peer.get(), self.address.port());
            match news {
                News::Blocked => tracing::warn!(
                    peer,
                    port,
                    "udp heartbeats of a peer do not arrive; the cluster works without them"
                ),
                News::Unblocked => tracing::info!(peer, "udp heartbeats of a peer arrive again"),
            }
        }
    }

    async fn receive(&self, socket: &dyn Datagrams) -> Infallible {
        // One byte more than the longest, so that a longer one is not taken for it.
        let mut buffer = [0; DATAGRAM_BYTES_MAX + 1];
        let mut intake = Intake::new(Instant::now());
        loop {
            let received = socket.receive_from(&mut buffer).await;
            let Ok((length, from)) = received else {
                sleep(RECEIVE_PAUSE).await;
                continue;
            };
            match intake.judge(Instant::now()) {
                Verdict::Look => self.take(buffer.get(..length).unwrap_or_default(), from),
                Verdict::Drop => self.count_dropped(),
                Verdict::DropAndPause(until) => {
                    self.count_dropped();
                    sleep_until(until).await;
                }
            }
        }
    }

    async fn sample(&self) -> Infallible {
        loop {
            self.surroundings.sample().await;
            sleep(SAMPLE_INTERVAL).await;
        }
    }
}
