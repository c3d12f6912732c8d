//! The README's shell blocks: each is tagged with what a test may do with it, and this does it.
//!
//! The word after `sh` in the info string of a fenced block says what the block is for:
//!
//! | tag | meaning |
//! |---|---|
//! | `serve` | one command that stays in the foreground; it is up when it prints a line `ready` |
//! | `run` | commands for another terminal, while the `serve` command is up; each must succeed |
//! | `extra` | like `run`, but needs programs or data that not every machine has |
//! | `test` | the test command, run by `cargo xtask check` |
//! | `show` | for reading only |
//!
//! A shell block without a tag is an error, so that no command escapes its test. All `run` and
//! `extra` blocks are one script in the order of the page: a variable set in one is seen in the
//! next.

mod blocks;
#[cfg(test)]
mod tests;
mod walk;

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::repository;
use blocks::{Block, Tag};

pub(crate) const HELP: &str = "the README's commands: print | walk [--extra]";

/// Prints the README's commands as a script, or walks through them on this machine.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let root = repository::root()?;
    let blocks = read_blocks(&root)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["print"] => {
            for block in &blocks {
                println!(
                    "# README.md line {}: {:?}\n{}",
                    block.line, block.tag, block.text
                );
            }
            Ok(())
        }
        ["walk"] => walk::walk(&root, &blocks, &[Tag::Run]),
        ["walk", "--extra"] => walk::walk(&root, &blocks, &[Tag::Run, Tag::Extra]),
        _ => bail!("usage: cargo xtask readme print | walk [--extra]"),
    }
}

/// The README's one test command.
pub(crate) fn test_command(root: &Path) -> Result<String> {
    let blocks = read_blocks(root)?;
    let mut tests = blocks.into_iter().filter(|block| block.tag == Tag::Test);
    let test = tests
        .next()
        .context("README.md has no block tagged `sh test`")?;
    ensure!(
        tests.next().is_none(),
        "README.md has more than one block tagged `sh test`"
    );
    Ok(test.text)
}

fn read_blocks(root: &Path) -> Result<Vec<Block>> {
    let page = std::fs::read_to_string(root.join("README.md")).context("cannot read README.md")?;
    blocks::parse(&page).context("README.md")
}
