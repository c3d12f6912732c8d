//! Secrets that both ends of a connection derive from it, to seal what travels beside it.
//!
//! TLS 1.3 lets both sides export the same bytes from a connection that nobody else can know (RFC
//! 8446 section 7.5). A node seals its heartbeats to a peer with the secret of the connection that
//! it dialled itself: the acceptor of that connection has checked its certificate, so the seal is
//! as good as the certificate. Every connection has a secret of its own, and so a datagram that was
//! recorded is worth nothing after the next one. Label, context and sizes stand in
//! `docs/formats/heartbeat.md`.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hmac::{Hmac, Mac};
use kelp_raft::{ClusterId, NodeId};
use kelp_seams::{Clock, Monotonic};
use kelp_wire::{HEARTBEAT_MAC_BYTES, HeartbeatKeyId};
use rustls::ConnectionCommon;
use sha2::Sha256;

use super::book::lock;

/// What the exported bytes are for; another use of the same connection would have another label.
const LABEL: &[u8] = b"EXPORTER-kelp-heartbeat-v1";

/// Bytes of the key: as many as the hash gives.
const KEY_BYTES: usize = 32;

/// Bytes of the name of the key.
const ID_BYTES: usize = 8;

/// A secret outlives its connection, or its place as the newest one, by this much: longer than any
/// datagram is under way, short enough that a stolen old one is soon worth nothing.
pub(crate) const SECRET_AFTERLIFE: Duration = Duration::from_secs(10);

/// The secret of one connection in one direction.
pub(crate) struct LinkSecret {
    id: HeartbeatKeyId,
    /// Keyed and not fed yet.
    hmac: Hmac<Sha256>,
}

impl LinkSecret {
    /// Derives the secret of a connection from `dialler` to `acceptor`, the same on both ends.
    ///
    /// # Errors
    /// The handshake is not complete, which callers exclude.
    pub(crate) fn export<Side>(
        connection: &ConnectionCommon<Side>,
        cluster: ClusterId,
        dialler: NodeId,
        acceptor: NodeId,
    ) -> Result<Self, rustls::Error> {
        let mut context = [0; 20];
        context[..16].copy_from_slice(&cluster.get());
        context[16..18].copy_from_slice(&dialler.get().to_be_bytes());
        context[18..].copy_from_slice(&acceptor.get().to_be_bytes());
        let exported = [0; KEY_BYTES + ID_BYTES];
        let exported = connection.export_keying_material(exported, LABEL, Some(&context))?;
        Ok(Self::of(&exported))
    }

    /// The secret of these exported bytes.
    pub(crate) fn of(exported: &[u8; KEY_BYTES + ID_BYTES]) -> Self {
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&exported[KEY_BYTES..]);
        let hmac = Hmac::new_from_slice(&exported[..KEY_BYTES]);
        Self {
            id: HeartbeatKeyId::new(id),
            hmac: hmac.expect("keys of every length are taken"),
        }
    }

    /// A secret that a test makes up.
    #[cfg(test)]
    pub(crate) fn of_seed(seed: u8) -> Self {
        Self::of(&[seed; KEY_BYTES + ID_BYTES])
    }

    /// Names the secret without telling anything about it.
    pub(crate) fn id(&self) -> HeartbeatKeyId {
        self.id
    }

    /// The MAC of `bytes`.
    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; HEARTBEAT_MAC_BYTES] {
        let whole = self.hmac.clone().chain_update(bytes).finalize();
        let mut mac = [0; HEARTBEAT_MAC_BYTES];
        mac.copy_from_slice(&whole.into_bytes()[..HEARTBEAT_MAC_BYTES]);
        mac
    }

    /// Whether `mac` is that of `bytes`; takes the same time wherever they differ.
    pub(crate) fn verify(&self, bytes: &[u8], mac: &[u8; HEARTBEAT_MAC_BYTES]) -> bool {
        let hmac = self.hmac.clone().chain_update(bytes);
        hmac.verify_truncated_left(mac).is_ok()
    }
}

impl fmt::Debug for LinkSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("LinkSecret");
        debug.field("id", &self.id).finish_non_exhaustive()
    }
}

/// The secrets of one peer in one direction: that of the newest connection and the one before.
#[derive(Debug, Default)]
pub(super) struct SecretSlot {
    kept: Mutex<[Option<Kept>; 2]>,
}

#[derive(Clone, Debug)]
struct Kept {
    secret: Arc<LinkSecret>,
    /// When it stops to count; `None` while its connection is open and the newest.
    until: Option<Monotonic>,
}

impl Kept {
    fn retire(&mut self, now: Monotonic) {
        self.until.get_or_insert(now + SECRET_AFTERLIFE);
    }

    fn is_valid(&self, now: Monotonic) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

impl SecretSlot {
    /// The newest secret, if it still counts.
    pub(super) fn newest(&self, now: Monotonic) -> Option<Arc<LinkSecret>> {
        let kept = lock(&self.kept);
        let newest = kept[0].as_ref().filter(|kept| kept.is_valid(now))?;
        Some(Arc::clone(&newest.secret))
    }

    /// Whether the connection of the newest secret is open.
    pub(super) fn is_open(&self) -> bool {
        let kept = lock(&self.kept);
        kept[0].as_ref().is_some_and(|kept| kept.until.is_none())
    }

    /// The secret of this name, if it still counts.
    pub(super) fn find(&self, id: HeartbeatKeyId, now: Monotonic) -> Option<Arc<LinkSecret>> {
        let kept = lock(&self.kept);
        let mut valid = kept.iter().flatten().filter(|kept| kept.is_valid(now));
        let found = valid.find(|kept| kept.secret.id == id)?;
        Some(Arc::clone(&found.secret))
    }

    fn add(&self, secret: Arc<LinkSecret>, now: Monotonic) {
        let mut kept = lock(&self.kept);
        let mut previous = kept[0].take();
        if let Some(previous) = &mut previous {
            previous.retire(now);
        }
        let newest = Kept {
            secret,
            until: None,
        };
        *kept = [Some(newest), previous];
    }

    fn retire(&self, id: HeartbeatKeyId, now: Monotonic) {
        let mut kept = lock(&self.kept);
        for kept in kept.iter_mut().flatten() {
            if kept.secret.id == id {
                kept.retire(now);
            }
        }
    }
}

/// Keeps a secret as the newest of its slot for as long as its connection is open.
pub(super) struct HeldSecret {
    slot: Arc<SecretSlot>,
    id: HeartbeatKeyId,
    clock: Arc<dyn Clock>,
}

impl HeldSecret {
    pub(super) fn new(slot: &Arc<SecretSlot>, secret: LinkSecret, clock: &Arc<dyn Clock>) -> Self {
        let id = secret.id;
        slot.add(Arc::new(secret), clock.monotonic());
        Self {
            slot: Arc::clone(slot),
            id,
            clock: Arc::clone(clock),
        }
    }
}

impl Drop for HeldSecret {
    fn drop(&mut self) {
        self.slot.retire(self.id, self.clock.monotonic());
    }
}

#[cfg(test)]
mod tests;
