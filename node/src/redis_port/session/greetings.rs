//! What a client says to get to know the node: PING, HELLO, AUTH, SELECT, RESET.

use kelp_wire::{RespArguments, RespVersion};

use super::{Mark, Session, wrong_count};
use crate::redis_port::answer::NOT_AN_INTEGER;
use crate::redis_port::info::REDIS_VERSION;
use crate::redis_port::session::keys::integer;

/// Databases of a connection to choose from, as in Redis.
pub(in crate::redis_port) const DATABASE_COUNT: u8 = 16;

/// The user that everybody is.
const USER: &[u8] = b"default";

const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the \
                           default user. Are you sure your configuration is correct?";

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl Session {
    pub(super) fn ping(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        match (arguments.len(), arguments.get(1)) {
            (1, _) => self.reply(mark, |encoder| encoder.simple("PONG")),
            (2, Some(text)) => self.reply(mark, |encoder| encoder.bulk(text)),
            _ => self.error(mark, &wrong_count("ping")),
        }
    }

    /// HELLO [version [AUTH user password] [SETNAME name]]: all of it holds or none.
    pub(super) fn hello(&mut self, mut mark: Mark, arguments: RespArguments<'_>) {
        let version = match arguments.get(1).map(integer) {
            None => Ok(self.version),
            Some(None) => Err("ERR Protocol version is not an integer or out of range"),
            Some(Some(number)) => {
                RespVersion::from_number(number).ok_or("NOPROTO unsupported protocol version")
            }
        };
        let version = match version {
            Ok(version) => version,
            Err(text) => return self.error(mark, text),
        };
        let mut name = None;
        let mut rest = arguments.from(2);
        while let Some(option) = rest.next() {
            if option.eq_ignore_ascii_case(b"setname")
                && let Some(wanted) = rest.next()
            {
                name = Some(wanted);
            } else if option.eq_ignore_ascii_case(b"auth")
                && let (Some(user), Some(_)) = (rest.next(), rest.next())
            {
                if user != USER {
                    return self.error(mark, WRONG_PASSWORD);
                }
            } else {
                let option = String::from_utf8_lossy(option).into_owned();
                let text = format!("ERR Syntax error in HELLO option '{option}'");
                return self.error(mark, &text);
            }
        }
        if let Some(name) = name
            && let Err(text) = self.client.set_name(name)
        {
            return self.error(mark, text);
        }
        self.version = version;
        mark.version = version;
        let id = i64::try_from(self.client.id).unwrap_or(i64::MAX);
        self.reply(mark, |encoder| {
            encoder.map(7);
            for (key, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
                encoder.bulk(key.as_bytes());
                encoder.bulk(value.as_bytes());
            }
            encoder.bulk(b"proto");
            encoder.integer(version.number());
            encoder.bulk(b"id");
            encoder.integer(id);
            // Every node takes every command, so each is a master of its own to its clients.
            for (key, value) in [("mode", "standalone"), ("role", "master")] {
                encoder.bulk(key.as_bytes());
                encoder.bulk(value.as_bytes());
            }
            encoder.bulk(b"modules");
            encoder.array(0);
        });
    }

    /// There are no passwords, so the one user there is may have any when it is named.
    pub(super) fn auth(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        match (arguments.len(), arguments.get(1)) {
            (2, _) => self.error(mark, NO_PASSWORD),
            (3, Some(user)) if user == USER => self.reply(mark, |encoder| encoder.simple("OK")),
            (3, _) => self.error(mark, WRONG_PASSWORD),
            _ => self.error(mark, "ERR syntax error"),
        }
    }

    pub(super) fn select(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let Some(number) = arguments.get(1).and_then(integer) else {
            return self.error(mark, NOT_AN_INTEGER);
        };
        match u8::try_from(number) {
            Ok(number) if number < DATABASE_COUNT => {
                self.database = number;
                self.reply(mark, |encoder| encoder.simple("OK"));
            }
            _ => self.error(mark, "ERR DB index is out of range"),
        }
    }

    pub(super) fn reset(&mut self, mut mark: Mark) {
        self.version = RespVersion::default();
        mark.version = self.version;
        self.database = 0;
        self.client.name.clear();
        self.reply(mark, |encoder| encoder.simple("RESET"));
    }
}
