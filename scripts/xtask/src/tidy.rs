//! Reads every file of the repository for what the compiler does not see.
//!
//! Two kinds of findings. Faults fail the check: left-over marks, ignored tests, paths of one
//! machine, a module without an essay, a link to a file that is not there. Remarks are only listed:
//! files, functions and lines over the measures of the style; they are examples to follow, and
//! where one makes the code worse it is broken knowingly.

mod lexer;
mod links;
mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::repository;
use rules::Severity;

pub(crate) const HELP: &str = "left-over marks, module essays, long files, functions and lines";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "usage: cargo xtask tidy");
    check(&repository::root()?)
}

/// Prints all findings below `root`; an error when there is a fault among them.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut fault_count = 0_usize;
    for path in repository::files(root)? {
        let bytes = std::fs::read(root.join(&path)).with_context(|| path.display().to_string())?;
        // Golden files and pictures are bytes, not text to be read.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let mut findings = rules::findings(&path, &text);
        if path.extension().is_some_and(|extension| extension == "md") {
            findings.extend(links::broken(root, &path, &text));
        }
        for finding in findings {
            let kind = match finding.severity {
                Severity::Fault => "fault",
                Severity::Remark => "remark",
            };
            println!(
                "{}:{}: {kind}: {}",
                path.display(),
                finding.line,
                finding.message
            );
            fault_count += usize::from(finding.severity == Severity::Fault);
        }
    }
    ensure!(fault_count == 0, "{fault_count} faults");
    Ok(())
}
