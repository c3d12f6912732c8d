//! The Debian package index as records that `kelp import` reads: package name, tab, stanza.
//!
//! Input is what `apt-cache dumpavail` prints: stanzas of `Field: value` lines, parted by empty
//! lines. Output is in the order of the names, one line for each, in the same canonical form as
//! `kelp export` writes, so that an export of what was imported is the same file. Of several
//! versions of a package the last one in the input stays.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};

use anyhow::{Context, bail, ensure};

/// One line for the list of chores.
pub(crate) const HELP: &str = "turn `apt-cache dumpavail` on standard input into tsv records";

/// The field that names a package.
const NAME_FIELD: &[u8] = b"Package: ";

/// Converts standard input to standard output and says on standard error what it found.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let Some(argument) = arguments.first() {
        bail!(
            "unknown argument {argument}: apt-cache dumpavail | cargo xtask debian-index > packages.tsv"
        );
    }
    let index = Index::read(io::stdin().lock())?;
    let mut output = BufWriter::new(io::stdout().lock());
    index.write(&mut output)?;
    output.flush().context("cannot write")?;
    eprintln!(
        "{} packages out of {} stanzas",
        index.stanzas.len(),
        index.stanza_count
    );
    Ok(())
}

/// The stanzas by package name.
#[derive(Debug, Default)]
struct Index {
    stanzas: BTreeMap<Vec<u8>, Vec<u8>>,
    stanza_count: u64,
}

impl Index {
    fn read(mut input: impl BufRead) -> anyhow::Result<Self> {
        let mut index = Self::default();
        let mut stanza = Vec::new();
        let mut line = Vec::new();
        let mut line_number: u64 = 0;
        loop {
            line.clear();
            let count = input
                .read_until(b'\n', &mut line)
                .context("cannot read standard input")?;
            line_number += 1;
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            if !text.is_empty() {
                if !stanza.is_empty() {
                    stanza.push(b'\n');
                }
                stanza.extend_from_slice(text);
                continue;
            }
            if !stanza.is_empty() {
                index
                    .add(std::mem::take(&mut stanza))
                    .with_context(|| format!("stanza before line {line_number}"))?;
            }
            if count == 0 {
                ensure!(index.stanza_count > 0, "no stanza on standard input");
                return Ok(index);
            }
        }
    }

    fn add(&mut self, stanza: Vec<u8>) -> anyhow::Result<()> {
        let name = stanza
            .split(|byte| *byte == b'\n')
            .find_map(|line| line.strip_prefix(NAME_FIELD))
            .context("no field 'Package: '")?
            .to_vec();
        ensure!(!name.is_empty(), "the package has no name");
        self.stanza_count += 1;
        self.stanzas.insert(name, stanza);
        Ok(())
    }

    fn write(&self, output: &mut impl Write) -> anyhow::Result<()> {
        for (name, stanza) in &self.stanzas {
            let line = format!("{}\t{}\n", escape(name), escape(stanza));
            output.write_all(line.as_bytes()).context("cannot write")?;
        }
        Ok(())
    }
}

/// Bytes as the tsv format of `kelp import` and `kelp export` writes them.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\t' => text.push_str("\\t"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                '\0'..'\u{20}' | '\u{7f}' => text.push_str(&hexadecimal(u32::from(letter))),
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&hexadecimal(u32::from(*byte)));
        }
    }
    text
}

fn hexadecimal(byte: u32) -> String {
    format!("\\x{byte:02x}")
}

#[cfg(test)]
mod tests;
