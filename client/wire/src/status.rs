//! What a reply says, and above all whether the request has been executed.

/// Whether the request that got an answer has taken effect.
///
/// A caller may send a request again without thought only after `No`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Executed {
    /// Surely not, and it will not be later.
    No,
    /// It may have been, or may still be.
    Unknown,
    /// Yes, exactly as the reply says.
    Yes,
}

/// The status byte of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The key is absent: nothing to read or to delete.
    NotFound = 1,
    /// The condition of the request did not hold; nothing was changed.
    ConditionFalse = 2,
    /// No leader is known to the node. Not executed.
    NoLeader = 16,
    /// A queue or budget is full. Not executed; wait for `retry-after`.
    Overloaded = 17,
    /// The node cannot serve now: starting, stopping, no quorum, disk full. Not executed.
    Unavailable = 18,
    /// The request may or may not have been executed, or may still be.
    OutcomeUnknown = 32,
    /// The request is malformed.
    BadRequest = 48,
    /// A key, value, option list or frame is over its limit.
    TooLarge = 49,
    /// Identity or rights do not allow it, or hello has not been said.
    Refused = 50,
    /// The client asked for another cluster.
    WrongCluster = 51,
    /// The node does not know this opcode, option or protocol version.
    Unsupported = 52,
    /// The session is forgotten; this attempt was not executed, an earlier one may have been.
    SessionExpired = 53,
    /// The revision asked for is no longer kept.
    RevisionGone = 54,
}

impl Status {
    /// Every status, in order of its number.
    pub const ALL: [Self; 14] = [
        Self::Ok,
        Self::NotFound,
        Self::ConditionFalse,
        Self::NoLeader,
        Self::Overloaded,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::BadRequest,
        Self::TooLarge,
        Self::Refused,
        Self::WrongCluster,
        Self::Unsupported,
        Self::SessionExpired,
        Self::RevisionGone,
    ];

    /// The status of a byte, unless the byte means nothing to this version.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Ok,
            1 => Self::NotFound,
            2 => Self::ConditionFalse,
            16 => Self::NoLeader,
            17 => Self::Overloaded,
            18 => Self::Unavailable,
            32 => Self::OutcomeUnknown,
            48 => Self::BadRequest,
            49 => Self::TooLarge,
            50 => Self::Refused,
            51 => Self::WrongCluster,
            52 => Self::Unsupported,
            53 => Self::SessionExpired,
            54 => Self::RevisionGone,
            _ => return None,
        })
    }

    /// The byte that stands for this status.
    pub const fn to_byte(self) -> u8 {
        self as u8
    }

    /// Whether the request of this reply has been executed.
    pub const fn executed(self) -> Executed {
        match self {
            Self::Ok | Self::NotFound | Self::ConditionFalse => Executed::Yes,
            Self::OutcomeUnknown => Executed::Unknown,
            Self::NoLeader
            | Self::Overloaded
            | Self::Unavailable
            | Self::BadRequest
            | Self::TooLarge
            | Self::Refused
            | Self::WrongCluster
            | Self::Unsupported
            | Self::SessionExpired
            | Self::RevisionGone => Executed::No,
        }
    }

    /// Whether the same request may succeed a little later or on another node.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::NoLeader | Self::Overloaded | Self::Unavailable)
    }

    /// Whether the value of the reply is an error text instead of a result.
    pub const fn is_error(self) -> bool {
        self.to_byte() >= Self::NoLeader.to_byte()
    }

    /// A short stable name for logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotFound => "not_found",
            Self::ConditionFalse => "condition_false",
            Self::NoLeader => "no_leader",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::BadRequest => "bad_request",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
            Self::WrongCluster => "wrong_cluster",
            Self::Unsupported => "unsupported",
            Self::SessionExpired => "session_expired",
            Self::RevisionGone => "revision_gone",
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
