//! What the answers of Prometheus say about panels and alerts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::prometheus::Prometheus;
use crate::alerts::{self, Alerts};
use crate::{Page, expressions};

/// Queries without values, and those that stay 0 although their panel is not quiet.
pub(super) fn panels(
    prometheus: &Prometheus,
    window: Duration,
    pages: &[Page],
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for page in pages {
        for (place, expression) in page.board.expressions() {
            let series = prometheus.range(&expressions::filled(expression), window);
            let series = series.with_context(|| place.clone())?;
            let mut values = series.iter().flatten().peekable();
            if values.peek().is_none() {
                faults.push(format!("{place}: no data for {expression}"));
            }
        }
        for panel in page.board.panels().filter(|panel| !panel.quiet) {
            let mut moves = false;
            for query in &panel.queries {
                let series = prometheus.range(&expressions::filled(&query.expr), window)?;
                moves |= series.iter().flatten().any(|value| *value != 0.0);
            }
            if !moves {
                faults.push(format!("{}: always 0", panel.title));
            }
        }
    }
    Ok(faults)
}

/// Alerts about series that are not there, or that do not evaluate.
pub(super) fn alerts(
    prometheus: &Prometheus,
    window: Duration,
    alerts: &Alerts,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for alert in alerts.iter() {
        for selector in expressions::selectors(&alert.expr)? {
            if prometheus.series_count(&selector, window)? == 0 {
                faults.push(format!("{}: no series {selector}", alert.name));
            }
        }
    }
    let rules = prometheus.ask("rules", &[])?;
    let groups = rules["groups"].as_array().context("no rule groups")?;
    let rules: Vec<&Value> = groups
        .iter()
        .filter_map(|group| group["rules"].as_array())
        .flatten()
        .collect();
    if rules.len() != alerts.count() {
        faults.push(format!(
            "Prometheus has loaded {} of {} rules",
            rules.len(),
            alerts.count()
        ));
    }
    for rule in rules {
        if rule["health"] != "ok" {
            faults.push(format!(
                "{} does not evaluate: {}",
                rule["name"], rule["lastError"]
            ));
        }
    }
    Ok(faults)
}

/// Lists the metrics of nodes that no panel and no alert looks at.
pub(super) fn remark_unseen(prometheus: &Prometheus, root: &Path, pages: &[Page]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let of_pages = pages.iter().flat_map(|page| page.board.expressions());
    let mut expressions_seen: Vec<String> = of_pages.map(|(_, text)| text.to_owned()).collect();
    expressions_seen.extend(alerts::read(root)?.iter().map(|alert| alert.expr.clone()));
    for expression in &expressions_seen {
        for selector in expressions::selectors(expression)? {
            let name = selector.split('{').next().unwrap_or_default();
            seen.insert(family(name).to_owned());
        }
    }
    let names = prometheus.ask("label/__name__/values", &[])?;
    let names = names
        .as_array()
        .context("no names")?
        .iter()
        .filter_map(Value::as_str);
    let unseen: BTreeSet<_> = names
        .filter(|name| name.starts_with("kelp_"))
        .map(family)
        .filter(|name| !seen.contains(*name))
        .collect();
    for name in unseen {
        println!("remark: no panel and no alert looks at {name}");
    }
    Ok(())
}

/// The family of a series: histograms have three kinds of them.
fn family(name: &str) -> &str {
    let parts = ["_bucket", "_sum", "_count"];
    let family = parts.iter().find_map(|part| name.strip_suffix(part));
    family.unwrap_or(name)
}
