//! The fields of a heartbeat behind its version byte, in the order in which they travel.

use bytes::{BufMut, BytesMut};

use super::{
    Heartbeat, HeartbeatEcho, HeartbeatKeyId, HeartbeatRole, HeartbeatStamp,
    SOFTWARE_VERSION_BYTES_MAX,
};
use crate::{ClusterId, NodeId};

/// Bits of the byte that tells which optional fields have a value. The fields of the others are
/// zeros; bits without a name are a later version's and are skipped.
const COMMITTED: u8 = 0x01;
const APPLIED: u8 = 0x02;
const SYNC_AGE: u8 = 0x04;
const SYNC_P99: u8 = 0x08;
const DISK_FREE: u8 = 0x10;
const MEMORY: u8 = 0x20;
const ECHO: u8 = 0x40;

/// Reads fields from the front of what is left.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// All fields; `None` when the bytes end before them or the name of the version is not text.
    pub(super) fn heartbeat(mut self) -> Option<Heartbeat<'a>> {
        let present = self.byte()?;
        let has = |bit| present & bit != 0;
        Some(Heartbeat {
            interval_millis: self.half()?,
            cluster: ClusterId::new(self.take()?),
            group: self.word()?,
            node: NodeId::new(self.half()?),
            role: HeartbeatRole::from_byte(self.byte()?),
            key: HeartbeatKeyId::new(self.take()?),
            boot: self.long()?,
            sequence: self.long()?,
            sent: self.stamp()?,
            term: self.long()?,
            committed: self.long().map(|index| has(COMMITTED).then_some(index))?,
            applied: self.long().map(|index| has(APPLIED).then_some(index))?,
            sync_age_millis: self.word().map(|age| has(SYNC_AGE).then_some(age))?,
            sync_p99_micros: self.word().map(|time| has(SYNC_P99).then_some(time))?,
            disk_free_bytes: self.long().map(|bytes| has(DISK_FREE).then_some(bytes))?,
            memory_bytes: self.long().map(|bytes| has(MEMORY).then_some(bytes))?,
            echo: self.echo().map(|echo| has(ECHO).then_some(echo))?,
            software_version: self.software_version()?,
        })
    }

    fn echo(&mut self) -> Option<HeartbeatEcho> {
        Some(HeartbeatEcho {
            boot: self.long()?,
            sequence: self.long()?,
            sent: self.stamp()?,
            received_wall_millis: self.long()?,
            held_nanos: self.long()?,
            received: self.half()?,
            window: self.half()?,
        })
    }

    fn stamp(&mut self) -> Option<HeartbeatStamp> {
        Some(HeartbeatStamp {
            monotonic_nanos: self.long()?,
            wall_millis: self.long()?,
        })
    }

    fn software_version(&mut self) -> Option<&'a str> {
        let length = usize::from(self.byte()?);
        if length > SOFTWARE_VERSION_BYTES_MAX {
            return None;
        }
        std::str::from_utf8(self.0.get(..length)?).ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    #[inline]
    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }
}

/// Appends all fields but the name of the software version.
pub(super) fn put(out: &mut BytesMut, heartbeat: &Heartbeat<'_>) {
    out.put_u8(present(heartbeat));
    out.put_u16(heartbeat.interval_millis);
    out.put_slice(heartbeat.cluster.as_bytes());
    out.put_u32(heartbeat.group);
    out.put_u16(heartbeat.node.get());
    out.put_u8(heartbeat.role as u8);
    out.put_slice(heartbeat.key.as_bytes());
    out.put_u64(heartbeat.boot);
    out.put_u64(heartbeat.sequence);
    put_stamp(out, heartbeat.sent);
    out.put_u64(heartbeat.term);
    out.put_u64(heartbeat.committed.unwrap_or(0));
    out.put_u64(heartbeat.applied.unwrap_or(0));
    out.put_u32(heartbeat.sync_age_millis.unwrap_or(0));
    out.put_u32(heartbeat.sync_p99_micros.unwrap_or(0));
    out.put_u64(heartbeat.disk_free_bytes.unwrap_or(0));
    out.put_u64(heartbeat.memory_bytes.unwrap_or(0));
    put_echo(out, heartbeat.echo);
}

fn present(heartbeat: &Heartbeat<'_>) -> u8 {
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    bit(heartbeat.committed.is_some(), COMMITTED)
        | bit(heartbeat.applied.is_some(), APPLIED)
        | bit(heartbeat.sync_age_millis.is_some(), SYNC_AGE)
        | bit(heartbeat.sync_p99_micros.is_some(), SYNC_P99)
        | bit(heartbeat.disk_free_bytes.is_some(), DISK_FREE)
        | bit(heartbeat.memory_bytes.is_some(), MEMORY)
        | bit(heartbeat.echo.is_some(), ECHO)
}

fn put_stamp(out: &mut BytesMut, stamp: HeartbeatStamp) {
    out.put_u64(stamp.monotonic_nanos);
    out.put_u64(stamp.wall_millis);
}

fn put_echo(out: &mut BytesMut, echo: Option<HeartbeatEcho>) {
    let echo = echo.unwrap_or(HeartbeatEcho {
        boot: 0,
        sequence: 0,
        sent: HeartbeatStamp::default(),
        received_wall_millis: 0,
        held_nanos: 0,
        received: 0,
        window: 0,
    });
    out.put_u64(echo.boot);
    out.put_u64(echo.sequence);
    put_stamp(out, echo.sent);
    out.put_u64(echo.received_wall_millis);
    out.put_u64(echo.held_nanos);
    out.put_u16(echo.received);
    out.put_u16(echo.window);
}
