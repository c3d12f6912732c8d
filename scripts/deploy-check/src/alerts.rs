//! Reads the alert rules and their tests, and says what they lack.
//!
//! Whether a rule is right is for `promtool test rules` to say. This asks that there is something
//! to say: every alert has a test in which it fires and one in which it does not, a severity, and
//! a page that tells what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::expressions;

/// Where the rules lie.
const RULES: &str = "deploy/prometheus/rules";

/// Where their tests lie.
const TESTS: &str = "deploy/prometheus/tests";

/// The page that has a heading for each alert.
const PAGE: &str = "docs/operations/monitoring.md";

const SEVERITIES: [&str; 2] = ["critical", "warning"];

/// All alert rules.
pub(crate) struct Alerts(Vec<Alert>);

/// One rule, as Prometheus reads it.
#[derive(Deserialize)]
pub(crate) struct Alert {
    #[serde(rename = "alert")]
    pub(crate) name: String,
    pub(crate) expr: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RuleFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Alert>,
}

#[derive(Deserialize)]
struct TestFile {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    alert_rule_test: Vec<AlertTest>,
}

#[derive(Deserialize)]
struct AlertTest {
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<IgnoredAny>,
}

/// Reads all rule files.
pub(crate) fn read(root: &Path) -> Result<Alerts> {
    let files: Vec<RuleFile> = read_all(&root.join(RULES))?;
    let groups = files.into_iter().flat_map(|file| file.groups);
    Ok(Alerts(groups.flat_map(|group| group.rules).collect()))
}

fn read_all<File: DeserializeOwned>(folder: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let file = serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
        files.push(file);
    }
    Ok(files)
}

impl Alerts {
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether the alert is about a stretch of time, not about the moment.
    pub(crate) fn looks_back(&self, name: &str) -> bool {
        let alert = self.0.iter().find(|alert| alert.name == name);
        alert.is_some_and(|alert| alert.expr.contains('['))
    }

    /// All alerts, in the order of the files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Alert> {
        self.0.iter()
    }

    /// What the alerts lack.
    pub(crate) fn faults(&self, root: &Path) -> Result<Vec<String>> {
        let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
        let headings: BTreeSet<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .collect();
        let tests: Vec<TestFile> = read_all(&root.join(TESTS))?;
        let tests = tests.into_iter().flat_map(|file| file.tests);
        let tests = tests.flat_map(|test| test.alert_rule_test);
        let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
        for test in tests {
            let of_kind = if test.exp_alerts.is_empty() {
                &mut silent
            } else {
                &mut firing
            };
            of_kind.insert(test.alertname);
        }
        let mut faults = Vec::new();
        for alert in &self.0 {
            let name = alert.name.as_str();
            let mut lacks = alert.lacks();
            if !headings.contains(name) {
                lacks.push(format!("a heading in {PAGE}"));
            }
            if !firing.contains(name) {
                lacks.push("a test in which it fires".to_owned());
            }
            if !silent.contains(name) {
                lacks.push("a test in which it does not fire".to_owned());
            }
            faults.extend(lacks.into_iter().map(|what| format!("{name} lacks {what}")));
        }
        let names: BTreeSet<_> = self.0.iter().map(|alert| alert.name.as_str()).collect();
        let unknown = headings
            .iter()
            .filter(|heading| heading.starts_with("Kelp") && !names.contains(*heading));
        faults
            .extend(unknown.map(|heading| format!("{PAGE} tells of {heading}, which is no alert")));
        Ok(faults)
    }
}

impl Alert {
    fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        let severity = self.labels.get("severity").map_or("", String::as_str);
        if !SEVERITIES.contains(&severity) {
            lacks.push(format!("a severity out of {SEVERITIES:?}"));
        }
        for annotation in ["summary", "description"] {
            let text = self.annotations.get(annotation).map_or("", String::as_str);
            if text.len() < 20 {
                lacks.push(format!("a {annotation}"));
            }
        }
        let anchor = format!("{PAGE}#{}", self.name.to_lowercase());
        let url = self
            .annotations
            .get("runbook_url")
            .map_or("", String::as_str);
        if !url.ends_with(&anchor) {
            lacks.push(format!("a runbook_url that ends in {anchor}"));
        }
        if let Err(error) = expressions::parse(&self.expr) {
            lacks.push(format!("a valid expression: {error}"));
        }
        lacks
    }
}
