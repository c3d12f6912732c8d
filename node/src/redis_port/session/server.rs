//! What clients ask about the node and its commands: COMMAND, CONFIG, INFO.

use std::sync::Arc;

use kelp_wire::{RespArguments, RespEncoder, Status};

use super::{Mark, Session};
use crate::redis_port::commands::{self, COMMANDS, Spec};
use crate::redis_port::glob::{Glob, PATTERN_BYTES_MAX};
use crate::redis_port::info::{Report, Sections};
use kelp_raft::VALUE_BYTES_MAX;

/// Patterns of one CONFIG GET that are looked at: more than there are parameters.
const PATTERNS_MAX: usize = 64;

const COMMAND_HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the number of commands.",
    "DOCS [<command-name> ...]",
    "    Return what commands do.",
    "INFO [<command-name> ...]",
    "    Return details about commands.",
    "LIST",
    "    Return the names of all commands.",
    "HELP",
    "    Print this help.",
];

const CONFIG_HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return the parameters that match; they cannot be changed.",
    "HELP",
    "    Print this help.",
];

impl Session {
    pub(super) fn command_command(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let lower = arguments.get(1).map(<[u8]>::to_ascii_lowercase);
        match (lower.as_deref(), arguments.len()) {
            (None, _) | (Some(b"info"), 2) => self.reply(mark, |encoder| {
                encoder.array(COMMANDS.len());
                for spec in COMMANDS {
                    describe(spec, encoder);
                }
            }),
            (Some(b"info"), count) => self.reply(mark, |encoder| {
                encoder.array(count - 2);
                for name in arguments.from(2) {
                    match commands::find(name) {
                        Some((_, spec)) => describe(spec, encoder),
                        None => encoder.null(),
                    }
                }
            }),
            (Some(b"count"), 2) => self.reply(mark, |encoder| encoder.count(COMMANDS.len())),
            (Some(b"list"), 2) => self.reply(mark, |encoder| {
                encoder.array(COMMANDS.len());
                for spec in COMMANDS {
                    encoder.bulk(spec.name.as_bytes());
                }
            }),
            (Some(b"docs"), _) => self.reply(mark, |encoder| {
                let named = arguments
                    .from(2)
                    .filter_map(|name| commands::find(name).map(|(_, spec)| spec));
                let specs: Vec<_> = if arguments.len() == 2 {
                    COMMANDS.iter().collect()
                } else {
                    named.collect()
                };
                encoder.map(specs.len());
                for spec in specs {
                    document(spec, encoder);
                }
            }),
            (Some(b"help"), 2) => self.help(mark, COMMAND_HELP),
            _ => self.unknown_subcommand(mark, "COMMAND", arguments),
        }
    }

    pub(super) fn config(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let lower = arguments.get(1).unwrap_or_default().to_ascii_lowercase();
        match (&lower[..], arguments.len()) {
            (b"get", count) if count > 2 => {
                let patterns: Vec<_> = arguments
                    .from(2)
                    .take(PATTERNS_MAX)
                    .filter(|pattern| pattern.len() <= PATTERN_BYTES_MAX)
                    .map(|pattern| Glob::new(&pattern.to_ascii_lowercase()))
                    .collect();
                let mut found = self.parameters();
                found.retain(|(name, _)| {
                    patterns
                        .iter()
                        .any(|pattern| pattern.matches(name.as_bytes()))
                });
                self.reply(mark, |encoder| {
                    encoder.map(found.len());
                    for (name, value) in &found {
                        encoder.bulk(name.as_bytes());
                        encoder.bulk(value.as_bytes());
                    }
                });
            }
            (b"get", _) => self.error(mark, &super::wrong_count("config|get")),
            (b"help", 2) => self.help(mark, CONFIG_HELP),
            _ => self.unknown_subcommand(mark, "CONFIG", arguments),
        }
    }

    /// What Redis would have to be told to behave like this node, as far as clients ask for it.
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let text = |text: &str| text.to_owned();
        vec![
            ("appendfsync", text("always")),
            ("appendonly", text("yes")),
            ("databases", super::greetings::DATABASE_COUNT.to_string()),
            (
                "maxclients",
                self.context.port.seats.client_count_max().to_string(),
            ),
            ("maxmemory", text("0")),
            ("maxmemory-policy", text("noeviction")),
            ("notify-keyspace-events", text("")),
            ("port", self.context.address.port().to_string()),
            ("proto-max-bulk-len", VALUE_BYTES_MAX.to_string()),
            ("replica-read-only", text("no")),
            ("save", text("")),
            ("timeout", text("0")),
        ]
    }

    /// INFO [section ...]: what this node knows by itself, so that it answers without a leader.
    pub(super) fn info(&mut self, mark: Mark, arguments: RespArguments<'_>) {
        let names: Vec<_> = arguments.from(1).collect();
        let sections = Sections::new(&names);
        let report = Report::new(&self.context, mark.started);
        if !sections.need_the_state() {
            let text = report.text(&sections, &[]);
            return self.reply(mark, |encoder| encoder.verbatim(&text));
        }
        let view = self.context.port.raft.state().view();
        let context = Arc::clone(&self.context);
        self.lane.go_to_disk(mark, move |out| {
            let sizes = context.sizes(&view)?;
            let text = report.text(&sections, &sizes);
            RespEncoder::new(out, mark.version).verbatim(&text);
            Ok(Status::Ok)
        });
    }
}

/// The element of COMMAND for one command: name, arity, flags, keys, and what is not told: access
/// categories, tips, key specifications, subcommands.
fn describe(spec: &Spec, encoder: &mut RespEncoder<'_>) {
    encoder.array(10);
    encoder.bulk(spec.name.as_bytes());
    encoder.integer(spec.arity);
    encoder.set(spec.flags.len());
    for flag in spec.flags {
        encoder.simple(flag);
    }
    encoder.integer(spec.keys.first);
    encoder.integer(spec.keys.last);
    encoder.integer(spec.keys.step);
    encoder.set(0);
    for _ in 0..3 {
        encoder.array(0);
    }
}

fn document(spec: &Spec, encoder: &mut RespEncoder<'_>) {
    encoder.bulk(spec.name.as_bytes());
    encoder.map(3);
    for (key, value) in [
        ("summary", spec.summary),
        ("since", spec.since),
        ("group", spec.group),
    ] {
        encoder.bulk(key.as_bytes());
        encoder.bulk(value.as_bytes());
    }
}
