//! What a dashboard shows, as its page in `deploy/grafana` says it.
//!
//! A page names rows, and in each row panels with their queries. Everything that is equal on all
//! panels (data source, legend, colours, places) is not said there; `render` adds it.

mod render;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::expressions;

/// Columns of Grafana's grid.
const COLUMNS: u32 = 24;

/// One dashboard.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Board {
    /// Its name in links, and that of its file.
    pub(crate) uid: String,
    title: String,
    description: String,
    /// Whether the reader chooses nodes; else a panel shows all of them.
    #[serde(default)]
    choose_nodes: bool,
    #[serde(rename = "row")]
    rows: Vec<Row>,
}

/// A heading and the panels below it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    title: String,
    /// Grid units of each panel.
    #[serde(default = "height_default")]
    height: u32,
    #[serde(rename = "panel")]
    panels: Vec<Panel>,
}

fn height_default() -> u32 {
    8
}

/// One picture.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// What the reader should see in it, and what to do about it.
    description: String,
    #[serde(default)]
    kind: Kind,
    /// Columns of the grid, of 24.
    #[serde(default = "width_default")]
    width: u32,
    /// A unit of Grafana: `s`, `bytes`, `reqps`, `percentunit`, ...
    unit: String,
    decimals: Option<u32>,
    min: Option<f64>,
    max: Option<f64>,
    /// Whether the areas of the series stand on each other.
    #[serde(default)]
    stack: bool,
    /// Whether a number gives way to the name of its series, which says more.
    #[serde(default)]
    named: bool,
    /// Whether every value is 0 while nothing is wrong. Any other panel must move under load.
    #[serde(default)]
    pub(crate) quiet: bool,
    /// From which value on which colour, in rising order; green below the first.
    #[serde(default)]
    thresholds: Vec<Threshold>,
    /// Words for values.
    #[serde(default)]
    words: Vec<Word>,
    pub(crate) queries: Vec<Query>,
}

fn width_default() -> u32 {
    8
}

/// How a panel draws.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Lines over time.
    #[default]
    Graph,
    /// One number per series, the last one.
    Stat,
    /// States over time, one bar per series.
    States,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Threshold {
    from: f64,
    color: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    value: i64,
    text: String,
    color: String,
}

/// A query and what its series are called.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Query {
    pub(crate) expr: String,
    legend: String,
}

impl Board {
    /// Reads a page.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let board: Self = toml::from_str(text)?;
        for row in &board.rows {
            let is_wide = row.panels.iter().find(|panel| panel.width > COLUMNS);
            ensure!(is_wide.is_none(), "row {}: a panel is too wide", row.title);
        }
        Ok(board)
    }

    /// All panels, in order.
    pub(crate) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|row| &row.panels)
    }

    /// All expressions that the dashboard asks, with the name of what asks; those of its variables
    /// and marks too.
    pub(crate) fn expressions(&self) -> Vec<(String, &str)> {
        let of_panels = self.panels().flat_map(|panel| {
            let queries = panel.queries.iter();
            queries.map(|query| {
                (
                    format!("{} / {}", self.title, panel.title),
                    query.expr.as_str(),
                )
            })
        });
        let marks = (format!("{} / elections", self.title), render::ELECTIONS);
        of_panels.chain([marks]).collect()
    }

    /// What breaks the rules of a readable dashboard.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut titles = BTreeSet::new();
        for panel in self.panels() {
            let title = &panel.title;
            if !titles.insert(title) {
                faults.push(format!("two panels are called {title:?}"));
            }
            faults.extend(
                panel
                    .faults()
                    .into_iter()
                    .map(|fault| format!("{title:?}: {fault}")),
            );
        }
        for (place, expression) in self.expressions() {
            if let Err(error) = expressions::parse(expression) {
                faults.push(format!("{place}: {error}"));
            }
            if !expression.contains("job=\"$job\"") {
                faults.push(format!("{place}: mixes the clusters of all jobs"));
            }
            if self.choose_nodes
                && !expression.contains("$instance")
                && expression != render::ELECTIONS
            {
                faults.push(format!("{place}: does not heed the chosen nodes"));
            }
        }
        faults
    }
}

impl Panel {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let sentence = self.description.trim_end();
        if sentence.len() < 20 || !sentence.ends_with('.') {
            faults.push("its description is no sentence".to_owned());
        }
        if self.queries.is_empty() {
            faults.push("asks nothing".to_owned());
        }
        for query in &self.queries {
            let of_counter = ["rate(", "increase("]
                .iter()
                .any(|word| query.expr.contains(word));
            if of_counter && !query.expr.contains("$__rate_interval") {
                faults.push("a rate over a fixed time is wrong at most zooms".to_owned());
            }
            if query.legend.is_empty() {
                faults.push("a query has no legend".to_owned());
            }
        }
        faults
    }
}
