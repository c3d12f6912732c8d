//! The numbers that travel in frames, one type each, so that none is taken for another.

use std::fmt;

/// Names one request on one connection; the reply repeats it.
///
/// The client chooses it; a node only echoes it. Ids may repeat once the earlier request of that
/// id has been answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u32);

impl RequestId {
    /// Wraps the number of the header.
    pub const fn new(id: u32) -> Self {
        Self(id)
    }

    /// The number as it stands in the header.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The place of a write in the history of its group; 0 means that the key is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Revision(u64);

impl Revision {
    /// Wraps a revision.
    pub const fn new(revision: u64) -> Self {
        Self(revision)
    }

    /// The revision as a number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node of the cluster, as members are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u16);

impl NodeId {
    /// Wraps a node id.
    pub const fn new(id: u16) -> Self {
        Self(id)
    }

    /// The id as a number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sixteen random bytes that name a cluster; zeros in a hello mean "any".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClusterId([u8; 16]);

impl ClusterId {
    /// Wraps the bytes of a cluster id.
    pub const fn new(id: [u8; 16]) -> Self {
        Self(id)
    }

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterId({self})")
    }
}

/// The sixteen bytes under which a client's writes are remembered for exactly-once retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId([u8; 16]);

impl ClientId {
    /// Wraps the bytes of a client id.
    pub const fn new(id: [u8; 16]) -> Self {
        Self(id)
    }

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What a reply has seen of the log; a later read that carries it sees at least as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionToken {
    /// Raft term of the entry seen.
    pub term: u64,
    /// Log index of the entry seen; 0 is a real index.
    pub index: u64,
    /// Epoch of the range map in which the index counts.
    pub epoch: u64,
}
