//! The first exchange on a connection: which version, which cluster, who.

use std::fmt;

use bytes::{BufMut, BytesMut};

use crate::{ClusterId, FrameFault, NodeId, RequestError};

/// The protocol version that this crate speaks.
pub const HELLO_VERSION: u8 = 1;

const REPLY_BYTES: usize = 1 + 4 + 16 + 2;

/// What a client says first.
///
/// Invariants of a decoded hello: `version_min <= version_max`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Lowest version that the client speaks.
    pub version_min: u8,
    /// Highest version that the client speaks.
    pub version_max: u8,
    /// Optional abilities of the client, one bit each; none is defined.
    pub features: u32,
    /// The cluster that the client means; `None` is any.
    pub cluster: Option<ClusterId>,
    /// Login name; empty without login. At most 255 bytes.
    pub user: &'a str,
    /// Password of `user`; at most 65,535 bytes, in practice far fewer.
    pub password: &'a [u8],
}

impl Default for Hello<'_> {
    /// Version 1, any cluster, no login: what an empty value means.
    fn default() -> Self {
        Self {
            version_min: HELLO_VERSION,
            version_max: HELLO_VERSION,
            features: 0,
            cluster: None,
            user: "",
            password: &[],
        }
    }
}

impl fmt::Debug for Hello<'_> {
    /// Shows everything but the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello")
            .field("version_min", &self.version_min)
            .field("version_max", &self.version_max)
            .field("features", &self.features)
            .field("cluster", &self.cluster)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl<'a> Hello<'a> {
    /// Whether both sides speak [`HELLO_VERSION`].
    pub fn version_matches(&self) -> bool {
        (self.version_min..=self.version_max).contains(&HELLO_VERSION)
    }

    pub(crate) fn decode(value: &'a [u8]) -> Result<Self, RequestError> {
        if value.is_empty() {
            return Ok(Self::default());
        }
        Self::decode_layout(value).ok_or(RequestError::BadHello)
    }

    fn decode_layout(value: &'a [u8]) -> Option<Self> {
        let (&[version_min, version_max], rest) = value.split_first_chunk()?;
        let (features, rest) = rest.split_first_chunk()?;
        let (cluster, rest) = rest.split_first_chunk::<16>()?;
        let (&[user_bytes], rest) = rest.split_first_chunk()?;
        let (user, rest) = rest.split_at_checked(usize::from(user_bytes))?;
        let (password_bytes, password) = rest.split_first_chunk()?;
        let whole = password.len() == usize::from(u16::from_be_bytes(*password_bytes));
        (whole && version_min <= version_max).then_some(())?;
        Some(Self {
            version_min,
            version_max,
            features: u32::from_be_bytes(*features),
            cluster: (*cluster != [0; 16]).then_some(ClusterId::new(*cluster)),
            user: std::str::from_utf8(user).ok()?,
            password,
        })
    }

    /// Appends the layout; fails when a length does not fit or the version range is empty.
    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), RequestError> {
        let user_bytes = u8::try_from(self.user.len()).map_err(|_| RequestError::BadHello)?;
        let password_bytes =
            u16::try_from(self.password.len()).map_err(|_| RequestError::BadHello)?;
        if self.version_min > self.version_max {
            return Err(RequestError::BadHello);
        }
        out.put_u8(self.version_min);
        out.put_u8(self.version_max);
        out.put_u32(self.features);
        let any = ClusterId::new([0; 16]);
        out.put_slice(self.cluster.unwrap_or(any).as_bytes());
        out.put_u8(user_bytes);
        out.put_slice(self.user.as_bytes());
        out.put_u16(password_bytes);
        out.put_slice(self.password);
        Ok(())
    }
}

/// What a node answers to an accepted hello; it travels as the value of an `ok` response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloReply {
    /// The version that both sides use from here on.
    pub version: u8,
    /// Abilities that both sides have.
    pub features: u32,
    /// The cluster that this node belongs to.
    pub cluster: ClusterId,
    /// The node that answers.
    pub node: NodeId,
}

impl HelloReply {
    /// The value of the response.
    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        let mut value = [0; REPLY_BYTES];
        value[0] = self.version;
        value[1..5].copy_from_slice(&self.features.to_be_bytes());
        value[5..21].copy_from_slice(self.cluster.as_bytes());
        value[21..].copy_from_slice(&self.node.get().to_be_bytes());
        value
    }

    /// Reads the value of the response. Bytes behind the known ones are a newer node's and skipped.
    pub fn decode(value: &[u8]) -> Result<Self, FrameFault> {
        Self::decode_layout(value).ok_or(FrameFault::BadBody)
    }

    fn decode_layout(value: &[u8]) -> Option<Self> {
        let (&[version], rest) = value.split_first_chunk()?;
        let (features, rest) = rest.split_first_chunk()?;
        let (cluster, rest) = rest.split_first_chunk()?;
        let (node, _newer) = rest.split_first_chunk()?;
        Some(Self {
            version,
            features: u32::from_be_bytes(*features),
            cluster: ClusterId::new(*cluster),
            node: NodeId::new(u16::from_be_bytes(*node)),
        })
    }
}
