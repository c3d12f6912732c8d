//! The typed options of requests: what they mean, and which opcode takes which.
//!
//! Every option is optional and has a default that is the safe choice. An option that a node does
//! not know is refused, never skipped: it might be the one that makes the request harmless.

use std::time::Duration;

use bytes::BytesMut;

use crate::tlv::{self, TlvReader};
use crate::{ClientId, Opcode, OptionFault, RequestError, SessionToken};

/// Tags of request options, as in `docs/formats/wire.md`.
pub(crate) mod tag {
    pub(crate) const DATABASE: u8 = 0x01;
    pub(crate) const CONSISTENCY: u8 = 0x02;
    pub(crate) const DEADLINE: u8 = 0x03;
    pub(crate) const SESSION: u8 = 0x04;
    pub(crate) const TTL: u8 = 0x05;
    pub(crate) const TOKEN: u8 = 0x06;
    pub(crate) const LIMIT: u8 = 0x10;
    pub(crate) const BYTES: u8 = 0x11;
    pub(crate) const REVERSE: u8 = 0x12;
    pub(crate) const KEYS_ONLY: u8 = 0x13;
    pub(crate) const CURSOR: u8 = 0x14;
    pub(crate) const PREFIX: u8 = 0x15;
    /// Every tag lies below this, so that a set of tags is one `u32`.
    pub(crate) const END: u8 = 0x20;
}

const CONSISTENCY_LINEARIZABLE: u8 = 0;
const CONSISTENCY_STALE: u8 = 1;

/// How fresh a read must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Sees every write that was acknowledged before the read was sent.
    #[default]
    Linearizable,
    /// May miss writes of the last `max_age`.
    Stale {
        /// The greatest age of the view, in whole milliseconds on the wire.
        max_age: Duration,
    },
}

/// A client's identity and counter, which make a retried write happen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Who writes.
    pub client: ClientId,
    /// Number of this write, from 1, unique within the client.
    pub sequence: u64,
    /// Every write of a lower sequence has been answered; its stored reply may be dropped.
    pub floor: u64,
}

/// Options of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// How long, from now, the sender waits; on the wire in milliseconds, rounded up.
    pub deadline: Option<Duration>,
    /// Identity for exactly-once retries; without it the write is not deduplicated.
    pub session: Option<Session>,
}

/// Options of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// How long, from now, the sender waits; on the wire in milliseconds, rounded up.
    pub deadline: Option<Duration>,
    /// How fresh the answer must be.
    pub consistency: Consistency,
    /// Lowest point of the log that the answer must include; for reads that may be stale.
    pub token: Option<SessionToken>,
}

/// All options of one request, whichever opcode it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawOptions {
    pub(crate) database: u8,
    pub(crate) consistency: Consistency,
    pub(crate) deadline: Option<Duration>,
    pub(crate) session: Option<Session>,
    pub(crate) token: Option<SessionToken>,
    pub(crate) limit: Option<u32>,
    pub(crate) bytes: Option<u32>,
    /// The options without value that are set, one bit per tag.
    pub(crate) switches: u32,
}

impl RawOptions {
    /// Reads the options of a request of `opcode`.
    pub(crate) fn decode(opcode: Opcode, extra: &[u8]) -> Result<Self, RequestError> {
        let mut options = Self::default();
        let mut seen: u32 = 0;
        for option in TlvReader::new(extra) {
            let (tag, value) = option.map_err(|fault| RequestError::BadOption { tag: 0, fault })?;
            let bit = tag_bit(tag);
            let fault = if bit & ALL_TAGS == 0 {
                Some(OptionFault::Unknown)
            } else if bit & allowed_tags(opcode) == 0 {
                Some(OptionFault::Misplaced)
            } else if bit & seen != 0 {
                Some(OptionFault::Repeated)
            } else {
                seen |= bit;
                options.read(tag, value).err()
            };
            if let Some(fault) = fault {
                return Err(RequestError::BadOption { tag, fault });
            }
        }
        if seen & tag_bit(tag::TTL) != 0 {
            return Err(RequestError::UnsupportedOption { tag: tag::TTL });
        }
        Ok(options)
    }

    fn read(&mut self, tag: u8, value: &[u8]) -> Result<(), OptionFault> {
        match tag {
            tag::DATABASE => [self.database] = tlv::fixed(value)?,
            tag::CONSISTENCY => self.consistency = decode_consistency(value)?,
            tag::DEADLINE => self.deadline = Some(decode_millis(tlv::fixed(value)?)),
            tag::SESSION => self.session = Some(decode_session(value)?),
            tag::TTL => drop(tlv::fixed::<8>(value)?),
            tag::TOKEN => self.token = Some(decode_token(value)?),
            tag::LIMIT => self.limit = Some(u32::from_be_bytes(tlv::fixed(value)?)),
            tag::BYTES => self.bytes = Some(u32::from_be_bytes(tlv::fixed(value)?)),
            tag::REVERSE | tag::KEYS_ONLY | tag::CURSOR | tag::PREFIX => {
                tlv::empty(value)?;
                self.switch(tag, true);
            }
            _ => return Err(OptionFault::Unknown),
        }
        Ok(())
    }

    /// Whether a switch, an option without value, is set.
    pub(crate) fn has(&self, switch: u8) -> bool {
        self.switches & tag_bit(switch) != 0
    }

    /// Sets a switch.
    pub(crate) fn switch(&mut self, switch: u8, on: bool) {
        if on {
            self.switches |= tag_bit(switch);
        }
    }

    pub(crate) fn write_options(&self) -> WriteOptions {
        WriteOptions {
            deadline: self.deadline,
            session: self.session,
        }
    }

    pub(crate) fn read_options(&self) -> ReadOptions {
        ReadOptions {
            deadline: self.deadline,
            consistency: self.consistency,
            token: self.token,
        }
    }

    /// Appends every option that differs from its default, in order of tags.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        if self.database != 0 {
            tlv::put(out, tag::DATABASE, &[self.database]);
        }
        if let Consistency::Stale { max_age } = self.consistency {
            let [a, b, c, d] = millis(max_age).to_be_bytes();
            tlv::put(out, tag::CONSISTENCY, &[CONSISTENCY_STALE, a, b, c, d]);
        }
        if let Some(deadline) = self.deadline {
            tlv::put(out, tag::DEADLINE, &millis(deadline).to_be_bytes());
        }
        if let Some(session) = self.session {
            tlv::put(out, tag::SESSION, &encode_session(session));
        }
        if let Some(token) = self.token {
            tlv::put(out, tag::TOKEN, &encode_token(token));
        }
        if let Some(limit) = self.limit {
            tlv::put(out, tag::LIMIT, &limit.to_be_bytes());
        }
        if let Some(bytes) = self.bytes {
            tlv::put(out, tag::BYTES, &bytes.to_be_bytes());
        }
        for tag in [tag::REVERSE, tag::KEYS_ONLY, tag::CURSOR, tag::PREFIX] {
            if self.has(tag) {
                tlv::put(out, tag, &[]);
            }
        }
    }
}

const fn tag_bit(tag: u8) -> u32 {
    if tag < tag::END { 1 << tag } else { 0 }
}

const WRITE_TAGS: u32 = tag_bit(tag::DATABASE) | tag_bit(tag::DEADLINE) | tag_bit(tag::SESSION);
const READ_TAGS: u32 = tag_bit(tag::DATABASE)
    | tag_bit(tag::CONSISTENCY)
    | tag_bit(tag::DEADLINE)
    | tag_bit(tag::TOKEN);
const PAGE_TAGS: u32 = tag_bit(tag::LIMIT)
    | tag_bit(tag::BYTES)
    | tag_bit(tag::REVERSE)
    | tag_bit(tag::KEYS_ONLY)
    | tag_bit(tag::CURSOR)
    | tag_bit(tag::PREFIX);
const ALL_TAGS: u32 = WRITE_TAGS | READ_TAGS | PAGE_TAGS | tag_bit(tag::TTL);

const fn allowed_tags(opcode: Opcode) -> u32 {
    match opcode {
        Opcode::Put => WRITE_TAGS | tag_bit(tag::TTL),
        Opcode::Delete => WRITE_TAGS,
        Opcode::Get => READ_TAGS,
        Opcode::Scan => READ_TAGS | PAGE_TAGS,
        Opcode::Echo | Opcode::Hello | Opcode::Status => 0,
    }
}

/// Whole milliseconds, rounded up so that a short wait does not become none; capped at 49 days.
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

pub(crate) fn decode_millis(value: [u8; 4]) -> Duration {
    Duration::from_millis(u64::from(u32::from_be_bytes(value)))
}

fn decode_consistency(value: &[u8]) -> Result<Consistency, OptionFault> {
    match *value {
        [CONSISTENCY_LINEARIZABLE] => Ok(Consistency::Linearizable),
        [CONSISTENCY_STALE, a, b, c, d] => Ok(Consistency::Stale {
            max_age: decode_millis([a, b, c, d]),
        }),
        _ => Err(OptionFault::BadValue),
    }
}

fn decode_session(value: &[u8]) -> Result<Session, OptionFault> {
    let (client, rest) = value.split_first_chunk().ok_or(OptionFault::BadValue)?;
    let (sequence, floor) = rest.split_first_chunk().ok_or(OptionFault::BadValue)?;
    Ok(Session {
        client: ClientId::new(*client),
        sequence: u64::from_be_bytes(*sequence),
        floor: u64::from_be_bytes(tlv::fixed(floor)?),
    })
}

fn encode_session(session: Session) -> [u8; 32] {
    let mut value = [0; 32];
    value[..16].copy_from_slice(session.client.as_bytes());
    value[16..24].copy_from_slice(&session.sequence.to_be_bytes());
    value[24..].copy_from_slice(&session.floor.to_be_bytes());
    value
}

pub(crate) fn decode_token(value: &[u8]) -> Result<SessionToken, OptionFault> {
    let (term, rest) = value.split_first_chunk().ok_or(OptionFault::BadValue)?;
    let (index, epoch) = rest.split_first_chunk().ok_or(OptionFault::BadValue)?;
    Ok(SessionToken {
        term: u64::from_be_bytes(*term),
        index: u64::from_be_bytes(*index),
        epoch: u64::from_be_bytes(tlv::fixed(epoch)?),
    })
}

pub(crate) fn encode_token(token: SessionToken) -> [u8; 24] {
    let mut value = [0; 24];
    value[..8].copy_from_slice(&token.term.to_be_bytes());
    value[8..16].copy_from_slice(&token.index.to_be_bytes());
    value[16..].copy_from_slice(&token.epoch.to_be_bytes());
    value
}
