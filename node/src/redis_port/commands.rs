//! The commands that this port knows, for finding them, for checking how they are called, and for
//! telling clients about them.

/// Which command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Append,
    Auth,
    Client,
    Command,
    Config,
    DbSize,
    Decr,
    DecrBy,
    Del,
    Echo,
    Exists,
    FlushAll,
    FlushDb,
    Get,
    Hello,
    Incr,
    IncrBy,
    Info,
    MGet,
    MSet,
    Ping,
    Quit,
    Reset,
    Scan,
    Select,
    Set,
    SetNx,
    StrLen,
    Type,
}

/// Where the keys of a command stand among its arguments, as COMMAND tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) first: i64,
    /// Counted from the end when negative.
    pub(super) last: i64,
    pub(super) step: i64,
}

const NO_KEYS: Keys = Keys {
    first: 0,
    last: 0,
    step: 0,
};
const ONE_KEY: Keys = Keys {
    first: 1,
    last: 1,
    step: 1,
};
const ALL_KEYS: Keys = Keys {
    first: 1,
    last: -1,
    step: 1,
};
const PAIRS: Keys = Keys {
    first: 1,
    last: -1,
    step: 2,
};

/// What is known of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) kind: Kind,
    /// In lower case.
    pub(super) name: &'static str,
    /// Arguments with the name; at least so many when negative.
    pub(super) arity: i64,
    pub(super) flags: &'static [&'static str],
    pub(super) keys: Keys,
    pub(super) group: &'static str,
    pub(super) since: &'static str,
    pub(super) summary: &'static str,
}

impl Spec {
    /// Whether a call with so many arguments, its name included, can be right.
    pub(super) fn takes(&self, arguments: usize) -> bool {
        let least = usize::try_from(self.arity.unsigned_abs()).expect("arities are small");
        if self.arity < 0 {
            arguments >= least
        } else {
            arguments == least
        }
    }
}

macro_rules! commands {
    ($(
        $kind:ident $name:literal $arity:literal [$($flag:literal)*] $keys:ident
        $group:literal $since:literal $summary:literal;
    )*) => {
        /// All commands, sorted by name.
        pub(super) const COMMANDS: &[Spec] = &[$(Spec {
            kind: Kind::$kind,
            name: $name,
            arity: $arity,
            flags: &[$($flag),*],
            keys: $keys,
            group: $group,
            since: $since,
            summary: $summary,
        }),*];

        /// Their names, in the same order.
        pub(crate) const COMMAND_NAMES: &[&str] = &[$($name),*];
    };
}

commands! {
    Append "append" 3 ["write" "denyoom" "fast"] ONE_KEY "string" "2.0.0"
        "Appends to the value of a key, which is made if it is absent.";
    Auth "auth" -2 ["noscript" "loading" "fast" "no_auth"] NO_KEYS "connection" "1.0.0"
        "Logs in.";
    Client "client" -2 ["noscript" "loading"] NO_KEYS "connection" "2.4.0"
        "What concerns this connection.";
    Command "command" -1 ["loading"] NO_KEYS "server" "2.8.13"
        "Tells about commands.";
    Config "config" -2 ["admin" "noscript" "loading"] NO_KEYS "server" "2.0.0"
        "Tells about the configuration.";
    DbSize "dbsize" 1 ["readonly" "fast"] NO_KEYS "server" "1.0.0"
        "Returns the number of keys of the database.";
    Decr "decr" 2 ["write" "denyoom" "fast"] ONE_KEY "string" "1.0.0"
        "Takes one from the integer of a key; an absent key counts as 0.";
    DecrBy "decrby" 3 ["write" "denyoom" "fast"] ONE_KEY "string" "1.0.0"
        "Takes a number from the integer of a key; an absent key counts as 0.";
    Del "del" -2 ["write"] ALL_KEYS "generic" "1.0.0"
        "Deletes keys, all at once.";
    Echo "echo" 2 ["loading" "fast"] NO_KEYS "connection" "1.0.0"
        "Returns what it is given.";
    Exists "exists" -2 ["readonly" "fast"] ALL_KEYS "generic" "1.0.0"
        "Counts the keys that exist.";
    FlushAll "flushall" -1 ["write"] NO_KEYS "server" "1.0.0"
        "Deletes the keys of all databases.";
    FlushDb "flushdb" -1 ["write"] NO_KEYS "server" "1.0.0"
        "Deletes the keys of the database.";
    Get "get" 2 ["readonly" "fast"] ONE_KEY "string" "1.0.0"
        "Returns the value of a key.";
    Hello "hello" -1 ["noscript" "loading" "fast" "no_auth"] NO_KEYS "connection" "6.0.0"
        "Agrees on the version of the protocol.";
    Incr "incr" 2 ["write" "denyoom" "fast"] ONE_KEY "string" "1.0.0"
        "Adds one to the integer of a key; an absent key counts as 0.";
    IncrBy "incrby" 3 ["write" "denyoom" "fast"] ONE_KEY "string" "1.0.0"
        "Adds a number to the integer of a key; an absent key counts as 0.";
    Info "info" -1 ["loading"] NO_KEYS "server" "1.0.0"
        "Tells about this node.";
    MGet "mget" -2 ["readonly" "fast"] ALL_KEYS "string" "1.0.0"
        "Returns the values of keys, all as of one time.";
    MSet "mset" -3 ["write" "denyoom"] PAIRS "string" "1.0.1"
        "Sets keys, all at once.";
    Ping "ping" -1 ["loading" "fast"] NO_KEYS "connection" "1.0.0"
        "Shows that the connection works.";
    Quit "quit" -1 ["noscript" "loading" "fast" "no_auth"] NO_KEYS "connection" "1.0.0"
        "Closes the connection.";
    Reset "reset" 1 ["noscript" "loading" "fast" "no_auth"] NO_KEYS "connection" "6.2.0"
        "Makes the connection as it was when it was new.";
    Scan "scan" -2 ["readonly"] NO_KEYS "generic" "2.8.0"
        "Returns the keys of the database page by page.";
    Select "select" 2 ["loading" "fast"] NO_KEYS "connection" "1.0.0"
        "Chooses the database.";
    Set "set" -3 ["write" "denyoom"] ONE_KEY "string" "1.0.0"
        "Sets the value of a key.";
    SetNx "setnx" 3 ["write" "denyoom" "fast"] ONE_KEY "string" "1.0.0"
        "Sets the value of a key that does not exist.";
    StrLen "strlen" 2 ["readonly" "fast"] ONE_KEY "string" "2.2.0"
        "Returns the length of the value of a key.";
    Type "type" 2 ["readonly" "fast"] ONE_KEY "generic" "1.0.0"
        "Tells what a key holds.";
    Del "unlink" -2 ["write" "fast"] ALL_KEYS "generic" "4.0.0"
        "Deletes keys, all at once.";
}

/// Longer than the name of any command.
const NAME_BYTES_MAX: usize = 16;

/// The command of this name, in upper or lower case, and its place among all.
pub(super) fn find(name: &[u8]) -> Option<(usize, &'static Spec)> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let lower = &*lower;
    let place = COMMANDS
        .binary_search_by(|spec| spec.name.as_bytes().cmp(lower))
        .ok()?;
    Some((place, &COMMANDS[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        for (place, spec) in COMMANDS.iter().enumerate() {
            let upper = spec.name.to_ascii_uppercase();
            for name in [spec.name, &upper] {
                assert_eq!(find(name.as_bytes()), Some((place, spec)), "{name}");
            }
            assert!(spec.name.len() < NAME_BYTES_MAX);
        }
        assert_eq!(find(b"nothing"), None);
        assert_eq!(find(&[b'a'; 100]), None);
    }

    #[test]
    fn arity_is_exact_or_a_minimum() {
        let takes = |name: &[u8], count| find(name).unwrap().1.takes(count);
        assert_eq!(
            [1, 2, 3].map(|count| takes(b"get", count)),
            [false, true, false]
        );
        assert_eq!(
            [2, 3, 9].map(|count| takes(b"set", count)),
            [false, true, true]
        );
    }
}
