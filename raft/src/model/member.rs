//! A member of a group, as operators see it.

/// One member of a group and how to reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The operator's name for the node.
    pub name: String,
    /// Address of the peer port, `host:port`.
    pub peer: String,
    /// Address of the client port, `host:port`.
    pub client: String,
    /// Address of the HTTP port, `host:port`.
    pub http: String,
    /// Whether the member votes, or only learns.
    pub voter: bool,
}
