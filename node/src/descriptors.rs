//! File descriptors: as many as the system allows, and how they are shared out.
//!
//! A node that runs out of them can neither rotate its log nor reach its peers, so clients get only
//! what the rest of the node does not need. The common soft limit of 1,024 is a courtesy to
//! programs that use `select`, which this one does not: it is raised at the start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Connections to the client port whose client has not said hello yet, at most. They are short: a
/// burst of reconnecting clients passes through here, at a few milliseconds each.
pub(crate) const STRANGER_COUNT_MAX: usize = 256;

/// Descriptors that clients do not get: 64 for HTTP, 64 for logs and tables, 64 for links to half a
/// dozen peers in both directions, 64 for connections that are being turned away, and 64 for what
/// the libraries open.
const RESERVED_COUNT: usize = 320;

/// However few descriptors there are, a node that serves nobody is no use.
const CLIENT_COUNT_MIN: usize = 16;

/// Raises the limit of open files as far as it goes and says how many of `wanted` client
/// connections fit below it.
pub(crate) fn prepare(wanted: usize) -> usize {
    let limit = raise_limit();
    let client_count_max = client_count_max(limit, wanted);
    if client_count_max == wanted {
        tracing::info!(open_files = limit, client_count_max, "limit of open files");
    } else {
        tracing::warn!(
            open_files = limit,
            client_count_max,
            wanted,
            "limit of open files allows fewer client connections than wanted; raise its hard limit"
        );
    }
    client_count_max
}

/// The soft limit after it was raised to the hard one; `None` is no limit.
fn raise_limit() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    getrlimit(Resource::Nofile).current
}

/// How many of the wanted client connections leave enough descriptors to the rest of the node.
fn client_count_max(limit: Option<u64>, wanted: usize) -> usize {
    let limit = limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let left = limit.saturating_sub(RESERVED_COUNT + STRANGER_COUNT_MAX);
    wanted.min(left.max(CLIENT_COUNT_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_the_rest_of_the_node_leaves() {
        for (limit, expected) in [
            (None, 1_024),
            (Some(1 << 20), 1_024),
            (Some(1_600), 1_024),
            (Some(1_024), 448),
            (Some(600), 24),
            (Some(256), CLIENT_COUNT_MIN),
        ] {
            assert_eq!(client_count_max(limit, 1_024), expected, "{limit:?}");
        }
        assert_eq!(client_count_max(None, 10), 10);
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let hard = getrlimit(Resource::Nofile).maximum;
        assert_eq!(raise_limit(), hard);
    }
}
