//! Doors for benchmarks of parts that are not public. Not part of the promised interface.

use kelp_wire::{HEARTBEAT_MAC_BYTES, HeartbeatKeyId};

use crate::peer::LinkSecret;

/// A secret as two nodes have it in common, made up.
pub struct BenchSecret(LinkSecret);

impl BenchSecret {
    /// The secret of these exported bytes.
    pub fn of(exported: &[u8; 40]) -> Self {
        Self(LinkSecret::of(exported))
    }

    /// Names the secret.
    pub fn id(&self) -> HeartbeatKeyId {
        self.0.id()
    }

    /// The MAC of `bytes`.
    pub fn sign(&self, bytes: &[u8]) -> [u8; HEARTBEAT_MAC_BYTES] {
        self.0.sign(bytes)
    }

    /// Whether `mac` is that of `bytes`.
    pub fn verify(&self, bytes: &[u8], mac: &[u8; HEARTBEAT_MAC_BYTES]) -> bool {
        self.0.verify(bytes, mac)
    }
}
