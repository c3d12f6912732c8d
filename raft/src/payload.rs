//! How an openraft log entry rests in the log: one byte that says what it is, then the thing.
//!
//! The first byte of an encoded [`Entry`](crate::Entry) is its version, which lies below the
//! markers of the other kinds. So a normal entry is stored and sent as the very bytes that were
//! proposed, with nothing in front and nothing copied. Layout: `docs/formats/peer.md`, part 2.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{BufMut, Bytes, BytesMut};

use crate::apply::{BLANK_PAYLOAD, MEMBERSHIP_VERSION};
use crate::codec::{self, CodecError, Reader};
use crate::type_config::{EntryBytes, LogPayload, MemberNode, Membership};

/// The entry with which a new leader commits what came before it.
const BLANK: u8 = BLANK_PAYLOAD;
/// Membership, version 1.
const MEMBERSHIP_V1: u8 = MEMBERSHIP_VERSION;
/// First bytes below this are versions of an encoded entry.
const ENTRY_VERSION_END: u8 = BLANK;
const _: () = assert!(
    BLANK < MEMBERSHIP_V1,
    "markers lie above the versions of entries"
);

/// Voter sets in one membership: two while a change is in progress.
const CONFIGS_MAX: usize = 4;
/// Members of a group; far above the seven voters that make sense.
const MEMBERS_MAX: usize = 1024;

/// Whether `entry` may be stored as a normal entry, that is, starts with a version of one.
pub(crate) fn is_entry(entry: &[u8]) -> bool {
    entry
        .first()
        .is_some_and(|version| (1..ENTRY_VERSION_END).contains(version))
}

/// Encodes a payload; a normal one is returned as it is.
pub(crate) fn encode(payload: &LogPayload) -> Bytes {
    match payload {
        LogPayload::Blank => Bytes::from_static(&[BLANK]),
        LogPayload::Normal(entry) => entry.0.clone(),
        LogPayload::Membership(membership) => {
            let mut out = BytesMut::with_capacity(256);
            out.put_u8(MEMBERSHIP_V1);
            put_membership(&mut out, membership);
            out.freeze()
        }
    }
}

/// Decodes what [`encode`] wrote.
pub(crate) fn decode(bytes: Bytes) -> Result<LogPayload, CodecError> {
    let Some(&first) = bytes.first() else {
        return Err(CodecError::Truncated("log payload"));
    };
    if is_entry(&bytes) {
        return Ok(LogPayload::Normal(EntryBytes(bytes)));
    }
    let mut reader = Reader::new(bytes);
    reader.u8("payload kind")?;
    match first {
        BLANK => {
            reader.finish()?;
            Ok(LogPayload::Blank)
        }
        MEMBERSHIP_V1 => {
            let membership = read_membership(&mut reader)?;
            reader.finish()?;
            Ok(LogPayload::Membership(membership))
        }
        other => Err(CodecError::Undefined {
            field: "payload kind",
            value: u64::from(other),
        }),
    }
}

/// Decodes a payload that must be a membership.
pub(crate) fn decode_membership(bytes: Bytes) -> Result<Membership, CodecError> {
    match decode(bytes)? {
        LogPayload::Membership(membership) => Ok(membership),
        _ => Err(CodecError::Undefined {
            field: "payload kind",
            value: 0,
        }),
    }
}

fn put_membership(out: &mut BytesMut, membership: &Membership) {
    let configs = membership.get_joint_config();
    out.put_u8(u8::try_from(configs.len()).expect("a joint membership has two configs"));
    for config in configs {
        put_count(out, config.len());
        for voter in config {
            put_node(out, *voter);
        }
    }
    put_count(out, membership.nodes().count());
    for (node, member) in membership.nodes() {
        put_node(out, *node);
        for text in [&member.name, &member.peer, &member.client, &member.http] {
            codec::put_string(out, text);
        }
    }
}

fn put_count(out: &mut BytesMut, count: usize) {
    out.put_u16(u16::try_from(count).expect("members are 16-bit ids"));
}

fn put_node(out: &mut BytesMut, node: u64) {
    out.put_u16(u16::try_from(node).expect("openraft holds only ids that were 16 bits wide"));
}

fn read_membership(reader: &mut Reader) -> Result<Membership, CodecError> {
    let config_count = usize::from(reader.u8("config count")?);
    if config_count > CONFIGS_MAX {
        return Err(CodecError::TooLarge("config count"));
    }
    let mut configs = Vec::with_capacity(config_count);
    for _ in 0..config_count {
        let voter_count = read_count(reader)?;
        let mut voters = BTreeSet::new();
        for _ in 0..voter_count {
            voters.insert(u64::from(reader.u16("voter")?));
        }
        configs.push(voters);
    }
    let node_count = read_count(reader)?;
    let mut nodes = BTreeMap::new();
    for _ in 0..node_count {
        let node = u64::from(reader.u16("member")?);
        let member = MemberNode {
            name: reader.string("member name")?,
            peer: reader.string("peer address")?,
            client: reader.string("client address")?,
            http: reader.string("http address")?,
        };
        nodes.insert(node, member);
    }
    Membership::new(configs, nodes).map_err(|_| CodecError::Undefined {
        field: "membership",
        value: 0,
    })
}

fn read_count(reader: &mut Reader) -> Result<usize, CodecError> {
    let count = usize::from(reader.u16("member count")?);
    if count > MEMBERS_MAX {
        return Err(CodecError::TooLarge("member count"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
