//! What is looked for in one file.

use std::path::Path;

use super::lexer::{self, Line};

/// Longest file, tests aside, before it is remarked.
const FILE_LINES_MAX: usize = 500;
/// Longest function, signature and closing brace included.
const FUNCTION_LINES_MAX: usize = 70;
/// Widest line, what stands inside string literals aside.
const LINE_COLUMNS_MAX: usize = 100;

/// Words that mean unfinished work; looked for in code and in comments.
const MARKS: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "FIXME"];
/// A test that does not run proves nothing.
const IGNORED_TEST: &str = "#[ignore";
/// Folders that exist on one machine only. Written in parts, so that this file passes its own rule.
const MACHINE_FOLDERS: [&str; 3] = [
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "farm/"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    /// Fails the check.
    Fault,
    /// Is listed.
    Remark,
}

/// Something found at a line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) line: usize,
    pub(super) message: String,
}

/// All findings in the file `path` that holds `text`.
pub(super) fn findings(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = machine_paths(text);
    if path.extension().is_some_and(|extension| extension == "rs") {
        let lines = lexer::lines(text);
        findings.extend(marks(&lines));
        findings.extend(wide_lines(&lines));
        if !is_test(path) {
            findings.extend(missing_essay(text));
            findings.extend(long_file(&lines));
            findings.extend(long_functions(&lines));
        }
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Tests lie in `tests.rs`, in a folder `tests`, or are integration tests of a crate.
fn is_test(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.components().any(|part| part.as_os_str() == "tests")
}

fn fault(line: usize, message: String) -> Finding {
    Finding {
        severity: Severity::Fault,
        line,
        message,
    }
}

fn remark(line: usize, message: String) -> Finding {
    Finding {
        severity: Severity::Remark,
        line,
        message,
    }
}

fn machine_paths(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS {
            // A folder's name may end in that of another: an absolute path begins after no word.
            let absolute = line.match_indices(folder).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|found| found.is_alphanumeric() || "._-}/".contains(found))
            });
            if absolute {
                findings.push(fault(index + 1, format!("path of one machine: {folder}")));
            }
        }
    }
    findings
}

fn marks(lines: &[Line]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for mark in MARKS {
            if line.text.contains(mark) {
                findings.push(fault(index + 1, format!("left-over mark {mark}")));
            }
        }
        if line.code.contains(IGNORED_TEST) {
            findings.push(fault(index + 1, "ignored test".into()));
        }
    }
    findings
}

fn missing_essay(text: &str) -> Option<Finding> {
    let first = text.lines().next().unwrap_or_default();
    (!first.starts_with("//!"))
        .then(|| fault(1, "no module essay (`//!` on the first line)".into()))
}

fn wide_lines(lines: &[Line]) -> Vec<Finding> {
    let widths = lines
        .iter()
        .map(|line| line.text.chars().count())
        .enumerate();
    widths
        .filter(|&(_, width)| width > LINE_COLUMNS_MAX)
        .map(|(index, width)| remark(index + 1, format!("line of {width} columns")))
        .collect()
}

fn long_file(lines: &[Line]) -> Option<Finding> {
    // Tests inside a file stand at its end.
    let inline_tests = lines.windows(2).position(|pair| {
        pair[0].code.trim() == "#[cfg(test)]" && pair[1].code.trim_end().ends_with('{')
    });
    let count = inline_tests.unwrap_or(lines.len());
    (count > FILE_LINES_MAX).then(|| remark(1, format!("file of {count} lines")))
}

/// A function whose body is being read.
struct Open {
    name: String,
    first_line: usize,
    /// Depth of braces outside the body.
    depth: usize,
}

fn long_functions(lines: &[Line]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut signature: Option<(String, usize)> = None;
    let mut open: Vec<Open> = Vec::new();
    let mut depth = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        if let Some(name) = function_name(&line.code) {
            signature = Some((name, index));
        }
        for character in line.code.chars() {
            match character {
                '{' => {
                    if let Some((name, first_line)) = signature.take() {
                        open.push(Open {
                            name,
                            first_line,
                            depth,
                        });
                    }
                    depth += 1;
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    if let Some(Open {
                        name, first_line, ..
                    }) = open.pop_if(|function| function.depth == depth)
                    {
                        let count = index - first_line + 1;
                        if count > FUNCTION_LINES_MAX {
                            let message = format!("function {name} of {count} lines");
                            findings.push(remark(first_line + 1, message));
                        }
                    }
                }
                // A method of a trait without a body.
                ';' => signature = None,
                _ => {}
            }
        }
    }
    findings
}

/// The name of the function whose signature begins on this line of code.
fn function_name(code: &str) -> Option<String> {
    let (before, after) = code.split_once("fn ")?;
    let starts_a_word = !before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    let name: String = after
        .chars()
        .take_while(|found| found.is_alphanumeric() || *found == '_')
        .collect();
    (starts_a_word && !name.is_empty()).then_some(name)
}
