//! Who is at the other end of a connection, and the CLIENT commands about it.

use std::net::SocketAddr;

use kelp_seams::Monotonic;
use kelp_wire::RespArguments;

use super::{Mark, Session, answer, wrong_count};

/// Bytes of a client's name and of what it says of its library; Redis has no bound, a list of
/// connections wants one.
const NAME_BYTES_MAX: usize = 256;

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME",
    "    Return the name of this connection.",
    "ID",
    "    Return the number of this connection.",
    "INFO",
    "    Tell about this connection.",
    "LIST",
    "    Tell about this connection; others are not listed.",
    "NO-EVICT (ON|OFF)",
    "    Taken and without effect.",
    "NO-TOUCH (ON|OFF)",
    "    Taken and without effect.",
    "SETINFO <LIB-NAME|LIB-VER> <value>",
    "    Tell which library is used.",
    "SETNAME <name>",
    "    Give this connection a name.",
    "HELP",
    "    Print this help.",
];

/// What is known of the client of a connection.
pub(in crate::redis_port) struct Client {
    pub(super) id: u64,
    address: SocketAddr,
    since: Monotonic,
    pub(super) name: String,
    library: String,
    library_version: String,
}

impl Client {
    pub(in crate::redis_port) fn new(id: u64, address: SocketAddr, since: Monotonic) -> Self {
        Self {
            id,
            address,
            since,
            name: String::new(),
            library: String::new(),
            library_version: String::new(),
        }
    }

    /// Takes a name, which must not break the line of a list.
    pub(super) fn set_name(&mut self, name: &[u8]) -> Result<(), &'static str> {
        let text = "ERR Client names cannot contain spaces, newlines or special characters.";
        self.name = plain(name).ok_or(text)?;
        Ok(())
    }

    fn set_info(&mut self, attribute: &[u8], value: &[u8]) -> Result<(), String> {
        let (field, name) = if attribute.eq_ignore_ascii_case(b"lib-name") {
            (&mut self.library, "lib-name")
        } else if attribute.eq_ignore_ascii_case(b"lib-ver") {
            (&mut self.library_version, "lib-ver")
        } else {
            let attribute = String::from_utf8_lossy(attribute);
            return Err(format!("ERR Unrecognized option '{attribute}'"));
        };
        *field = plain(value).ok_or_else(|| {
            format!("ERR {name} cannot contain spaces, newlines or special characters.")
        })?;
        Ok(())
    }

    fn line(&self, listener: SocketAddr, database: u8, protocol: i64, age: u64) -> String {
        format!(
            "id={} addr={} laddr={listener} fd=-1 name={} age={age} idle=0 flags=N db={database} \
             sub=0 psub=0 ssub=0 multi=-1 watch=0 cmd=client user=default redir=-1 \
             resp={protocol} lib-name={} lib-ver={}\n",
            self.id, self.address, self.name, self.library, self.library_version
        )
    }
}

fn plain(text: &[u8]) -> Option<String> {
    let is_plain = text.len() <= NAME_BYTES_MAX && text.iter().all(u8::is_ascii_graphic);
    is_plain.then(|| String::from_utf8_lossy(text).into_owned())
}

impl Session {
    pub(super) fn client_command(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let lower = arguments.get(1).unwrap_or_default().to_ascii_lowercase();
        let (first, count) = (arguments.get(2).unwrap_or_default(), arguments.len());
        match (&lower[..], count) {
            (b"id", 2) => {
                let id = i64::try_from(self.client.id).unwrap_or(i64::MAX);
                self.reply(mark, |encoder| encoder.integer(id));
            }
            (b"getname", 2) => {
                let name = self.client.name.clone();
                self.reply(mark, |encoder| match name.as_str() {
                    "" => encoder.null(),
                    name => encoder.bulk(name.as_bytes()),
                });
            }
            (b"setname", 3) => match self.client.set_name(first) {
                Ok(()) => self.reply(mark, |encoder| encoder.simple("OK")),
                Err(text) => self.error(mark, text),
            },
            (b"setinfo", 4) => {
                let value = arguments.get(3).unwrap_or_default();
                match self.client.set_info(first, value) {
                    Ok(()) => self.reply(mark, |encoder| encoder.simple("OK")),
                    Err(text) => self.error(mark, &text),
                }
            }
            (b"info", 2) | (b"list", _) => {
                let line = self.client_line(mark.started);
                self.reply(mark, |encoder| encoder.verbatim(&line));
            }
            (b"no-evict" | b"no-touch", 3) => {
                if first.eq_ignore_ascii_case(b"on") || first.eq_ignore_ascii_case(b"off") {
                    self.reply(mark, |encoder| encoder.simple("OK"));
                } else {
                    self.error(mark, answer::SYNTAX);
                }
            }
            (b"help", 2) => self.help(mark, HELP),
            (
                known @ (b"id" | b"getname" | b"setname" | b"setinfo" | b"info" | b"no-evict"
                | b"no-touch"),
                _,
            ) => {
                let text = wrong_count(&format!("client|{}", String::from_utf8_lossy(known)));
                self.error(mark, &text);
            }
            _ => self.unknown_subcommand(mark, "CLIENT", arguments),
        }
    }

    fn client_line(&self, now: Monotonic) -> String {
        let age = now.saturating_duration_since(self.client.since).as_secs();
        self.client.line(
            self.context.address,
            self.database,
            self.version.number(),
            age,
        )
    }

    /// Redis' own words for a subcommand that nobody knows.
    pub(super) fn unknown_subcommand(
        &mut self,
        mark: Mark,
        command: &str,
        arguments: RespArguments<'_>,
    ) {
        let name = arguments.get(1).unwrap_or_default();
        let name = String::from_utf8_lossy(name.get(..128).unwrap_or(name)).into_owned();
        let text = format!("ERR unknown subcommand '{name}'. Try {command} HELP.");
        self.error(mark, &text);
    }

    pub(super) fn help(&mut self, mark: Mark, lines: &[&str]) {
        self.reply(mark, |encoder| {
            encoder.array(lines.len());
            for line in lines {
                encoder.simple(line);
            }
        });
    }
}
