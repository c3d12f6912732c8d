//! Finds the shell blocks of a Markdown page.

use anyhow::{Context as _, Result, bail, ensure};

/// What a test may do with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Serve,
    Run,
    Extra,
    Test,
    Show,
}

/// A fenced shell block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) tag: Tag,
    /// Line of the opening fence, from 1.
    pub(super) line: usize,
    /// The lines between the fences, each with its line end.
    pub(super) text: String,
}

const FENCE: &str = "```";

/// Returns the shell blocks of `page` in order; blocks of other languages are passed over.
pub(super) fn parse(page: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix(FENCE) else {
            continue;
        };
        let number = index + 1;
        let mut text = String::new();
        loop {
            let (_, line) = lines
                .next()
                .with_context(|| format!("line {number}: open block"))?;
            if line == FENCE {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        let mut words = info.split_whitespace();
        if let Some("sh" | "shell" | "bash" | "console") = words.next() {
            let tag = tag(words.next()).with_context(|| format!("line {number}"))?;
            ensure!(words.next().is_none(), "line {number}: more than one tag");
            blocks.push(Block {
                tag,
                line: number,
                text,
            });
        }
    }
    Ok(blocks)
}

fn tag(word: Option<&str>) -> Result<Tag> {
    Ok(match word {
        Some("serve") => Tag::Serve,
        Some("run") => Tag::Run,
        Some("extra") => Tag::Extra,
        Some("test") => Tag::Test,
        Some("show") => Tag::Show,
        other => bail!("a shell block needs serve, run, extra, test or show, not {other:?}"),
    })
}
