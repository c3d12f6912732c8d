//! Heartbeats: what a node tells each peer ten times a second over UDP.
//!
//! ```text
//! bytes -> Datagram -> SealedHeartbeat --(the MAC is right)--> Heartbeat
//! ```
//!
//! Anybody can send a datagram, so a [`SealedHeartbeat`] tells only what is needed to find the key;
//! the rest comes out of [`SealedHeartbeat::open`], which demands a verdict about the MAC. This
//! module knows where the MAC stands and what it covers, and refuses to know how it is made.
//! Version 1 is big endian; the bytes are drawn in `docs/formats/heartbeat.md`. Fields may be added
//! before the MAC without a new version: a reader skips those that it does not know.

use bytes::{BufMut, BytesMut};

use crate::{
    ClusterId, DATAGRAM_BYTES_MAX, DATAGRAM_HEADER_BYTES, Datagram, DatagramFault, DatagramHeader,
    DatagramOpcode, MAGIC, NodeId,
};

mod fields;

use fields::Fields;

/// The version of the layout.
pub const HEARTBEAT_VERSION: u8 = 1;

/// Bytes of the message authentication code: HMAC-SHA-256, cut to its first half. RFC 2104 advises
/// no less; a forger has one try per datagram.
pub const HEARTBEAT_MAC_BYTES: usize = 16;

/// The longest name of a software version: a release, a pre-release and a short hash.
pub const SOFTWARE_VERSION_BYTES_MAX: usize = 32;

/// Bytes of the fields that every heartbeat of version 1 has, without header, name of the software
/// version and MAC.
const FIXED_BYTES: usize = 168;

/// The longest heartbeat that this version writes, header and MAC included.
pub const HEARTBEAT_BYTES_MAX: usize =
    DATAGRAM_HEADER_BYTES + FIXED_BYTES + SOFTWARE_VERSION_BYTES_MAX + HEARTBEAT_MAC_BYTES;

const _: () = assert!(HEARTBEAT_BYTES_MAX <= DATAGRAM_BYTES_MAX);

/// Names the key that a heartbeat is sealed with: eight bytes that both ends of a connection derive
/// from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatKeyId([u8; 8]);

impl HeartbeatKeyId {
    /// Wraps the bytes.
    pub const fn new(id: [u8; 8]) -> Self {
        Self(id)
    }

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

/// The part that the sender plays in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum HeartbeatRole {
    /// One that this version does not know.
    Other = 0,
    /// Leads.
    Leader = 1,
    /// Follows a leader, or waits for one.
    Follower = 2,
    /// Stands for election.
    Candidate = 3,
    /// Receives the log without a vote.
    Learner = 4,
}

impl HeartbeatRole {
    const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Leader,
            2 => Self::Follower,
            3 => Self::Candidate,
            4 => Self::Learner,
            _ => Self::Other,
        }
    }
}

/// A moment on the two clocks of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatStamp {
    /// Nanoseconds of the clock that never goes back; comparable only within one boot of one node.
    pub monotonic_nanos: u64,
    /// Unix time in milliseconds, which may jump.
    pub wall_millis: u64,
}

/// The newest heartbeat of the addressee that the sender has seen, so that the addressee can
/// measure round trip, clock offset and what of its own gets lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatEcho {
    /// The addressee's boot in which it was sent.
    pub boot: u64,
    /// Its sequence.
    pub sequence: u64,
    /// When it was sent, by the addressee's clocks: T1.
    pub sent: HeartbeatStamp,
    /// When it arrived, by the sender's wall clock in Unix milliseconds: T2.
    pub received_wall_millis: u64,
    /// Nanoseconds between its arrival and this heartbeat: T3 - T2 by the sender's clock.
    pub held_nanos: u64,
    /// How many of the last `window` heartbeats of the addressee have arrived.
    pub received: u16,
    /// How many of them the sender knows to have been sent, or should have seen by now.
    pub window: u16,
}

/// What a node tells a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// The cluster that the sender belongs to.
    pub cluster: ClusterId,
    /// The Raft group that role, term and indexes are about.
    pub group: u32,
    /// The sender.
    pub node: NodeId,
    /// The part that it plays.
    pub role: HeartbeatRole,
    /// The key that the heartbeat is sealed with.
    pub key: HeartbeatKeyId,
    /// Counts the starts of the sender.
    pub boot: u64,
    /// Counts the heartbeats to this peer from 1 in each boot.
    pub sequence: u64,
    /// Milliseconds until the next one.
    pub interval_millis: u16,
    /// When it was sent, by the sender's clocks: T3.
    pub sent: HeartbeatStamp,
    /// The term that the sender is in.
    pub term: u64,
    /// The last entry that it knows to be committed.
    pub committed: Option<u64>,
    /// The last entry that it has applied.
    pub applied: Option<u64>,
    /// Milliseconds since its last sync of the disk ended, or since the running one began.
    pub sync_age_millis: Option<u32>,
    /// Microseconds within which 99 of 100 of its recent syncs ended.
    pub sync_p99_micros: Option<u32>,
    /// Bytes free on the disk of its data directory.
    pub disk_free_bytes: Option<u64>,
    /// Resident memory of its process.
    pub memory_bytes: Option<u64>,
    /// The newest heartbeat that it had from the addressee.
    pub echo: Option<HeartbeatEcho>,
    /// The version of its software; UTF-8, at most [`SOFTWARE_VERSION_BYTES_MAX`] bytes.
    pub software_version: &'a str,
}

/// A heartbeat as it arrived: nothing in it may be believed until its MAC has been checked.
#[derive(Clone, Copy, Debug)]
pub struct SealedHeartbeat<'a> {
    heartbeat: Heartbeat<'a>,
    signed: &'a [u8],
    mac: &'a [u8; HEARTBEAT_MAC_BYTES],
}

impl<'a> SealedHeartbeat<'a> {
    /// Reads a datagram whose opcode is [`DatagramOpcode::Heartbeat`]. Allocates nothing.
    ///
    /// # Errors
    /// It is no heartbeat of a known version.
    pub fn decode(datagram: &Datagram<'a>) -> Result<Self, DatagramFault> {
        let signed = datagram.bytes.split_last_chunk();
        let (signed, mac) = signed.ok_or(DatagramFault::BadBody)?;
        let body = signed.get(DATAGRAM_HEADER_BYTES..);
        let (version, fields) = body
            .and_then(<[u8]>::split_first)
            .ok_or(DatagramFault::BadBody)?;
        if *version != HEARTBEAT_VERSION {
            return Err(DatagramFault::UnknownVersion { got: *version });
        }
        let heartbeat = Fields::new(fields).heartbeat();
        Ok(Self {
            heartbeat: heartbeat.ok_or(DatagramFault::BadBody)?,
            signed,
            mac,
        })
    }

    /// Who claims to have sent it.
    pub fn node(&self) -> NodeId {
        self.heartbeat.node
    }

    /// The cluster that it claims to come from.
    pub fn cluster(&self) -> ClusterId {
        self.heartbeat.cluster
    }

    /// The key that it claims to be sealed with.
    pub fn key(&self) -> HeartbeatKeyId {
        self.heartbeat.key
    }

    /// The heartbeat, if `is_genuine` says so of what is signed and of the MAC.
    pub fn open(
        self,
        is_genuine: impl FnOnce(&[u8], &[u8; HEARTBEAT_MAC_BYTES]) -> bool,
    ) -> Option<Heartbeat<'a>> {
        is_genuine(self.signed, self.mac).then_some(self.heartbeat)
    }
}

impl Heartbeat<'_> {
    /// Appends the datagram, sealed with the MAC that `sign` makes of all bytes before it. A
    /// software version over its limit is cut.
    pub fn encode(
        &self,
        out: &mut BytesMut,
        sign: impl FnOnce(&[u8]) -> [u8; HEARTBEAT_MAC_BYTES],
    ) {
        let start = out.len();
        let version = self.cut_version();
        let body_bytes = FIXED_BYTES + version.len() + HEARTBEAT_MAC_BYTES;
        let header = DatagramHeader {
            magic: MAGIC,
            opcode: DatagramOpcode::Heartbeat as u8,
            body_bytes: u16::try_from(body_bytes).expect("the longest heartbeat fits 16 bits"),
        };
        out.reserve(DATAGRAM_HEADER_BYTES + body_bytes);
        out.put_slice(&header.encode());
        out.put_u8(HEARTBEAT_VERSION);
        fields::put(out, self);
        out.put_u8(u8::try_from(version.len()).expect("the longest version fits 8 bits"));
        out.put_slice(version.as_bytes());
        let mac = sign(out.get(start..).unwrap_or_default());
        out.put_slice(&mac);
    }

    fn cut_version(&self) -> &str {
        let version = self.software_version;
        let mut end = version.len().min(SOFTWARE_VERSION_BYTES_MAX);
        while !version.is_char_boundary(end) {
            end -= 1;
        }
        version.get(..end).unwrap_or_default()
    }
}
