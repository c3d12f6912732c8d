//! Links in Markdown pages that lead to nothing.

use std::path::Path;

use super::rules::{Finding, Severity};

/// A fault for each relative link of `page` whose target does not exist.
///
/// `path` is where the page lies, relative to `root`. Links to other sites are not followed.
pub(super) fn broken(root: &Path, path: &Path, page: &str) -> Vec<Finding> {
    let folder = root.join(path.parent().unwrap_or(Path::new("")));
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for target in targets(line) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !file.is_empty() && !folder.join(file).exists() {
                findings.push(Finding {
                    severity: Severity::Fault,
                    line: index + 1,
                    message: format!("link to nothing: {target}"),
                });
            }
        }
    }
    findings
}

/// What stands in the round brackets of `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}
