//! Makes the Grafana dashboards and checks what lies in `deploy/`.
//!
//! Dashboards are written by hand as short TOML pages and turned into Grafana's JSON by
//! `generate`. `static` checks everything that can be read: the JSON is what the pages say and fits
//! Grafana's schema, queries parse, every alert has a severity, a page to read and a test of either
//! kind. `live` starts a cluster and a real Prometheus, loads the cluster, kills its leader, and
//! asks every query of every panel and every series of every alert.

#![expect(
    clippy::disallowed_methods,
    reason = "a check starts processes, reads clocks and opens sockets; no seam of Kelp stands around it"
)]

mod alerts;
mod board;
mod expressions;
mod live;
mod schema;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};

use board::Board;

#[derive(Parser)]
#[command(about)]
struct Arguments {
    /// The root of the repository.
    #[arg(long, default_value = ".")]
    root: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Writes the dashboards that the pages in `deploy/grafana` describe.
    Generate,
    /// Checks dashboards, alert rules and their tests without starting anything.
    Static,
    /// Asks every query of a real Prometheus that watches a loaded cluster.
    Live {
        /// The `kelp` program, built for release.
        #[arg(long, default_value = "target/release/kelp")]
        kelp: PathBuf,
        /// The most seconds of load; it ends as soon as every part of a node was used.
        #[arg(long, default_value_t = 180)]
        seconds: u64,
    },
}

/// A dashboard: where its JSON lies, and what it should be.
struct Page {
    board: Board,
    path: PathBuf,
    json: String,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let root = &arguments.root;
    let pages = pages(root)?;
    match arguments.action {
        Action::Generate => generate(&pages),
        Action::Static => check(root, &pages),
        Action::Live { kelp, seconds } => live::run(root, &kelp, seconds, &pages),
    }
}

/// Every page in `deploy/grafana`, in the order of the names.
fn pages(root: &Path) -> Result<Vec<Page>> {
    let folder = root.join("deploy/grafana");
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            sources.push(path);
        }
    }
    sources.sort();
    ensure!(!sources.is_empty(), "no pages in {}", folder.display());
    let read = |source: &PathBuf| -> Result<Page> {
        let text = std::fs::read_to_string(source)?;
        let board = Board::parse(&text)?;
        let json = serde_json::to_string_pretty(&board.render())? + "\n";
        let path = folder
            .join("dashboards")
            .join(format!("{}.json", board.uid));
        Ok(Page { board, path, json })
    };
    let read_named = |source| read(source).with_context(|| source.display().to_string());
    sources.iter().map(read_named).collect()
}

fn generate(pages: &[Page]) -> Result<()> {
    for page in pages {
        std::fs::write(&page.path, &page.json)?;
        println!("wrote {}", page.path.display());
    }
    Ok(())
}

fn check(root: &Path, pages: &[Page]) -> Result<()> {
    let mut faults = Vec::new();
    for page in pages {
        let name = page.path.display();
        let committed = std::fs::read_to_string(&page.path).unwrap_or_default();
        if committed != page.json {
            faults.push(format!("{name}: not what its page says; run `generate`"));
        }
        let json = serde_json::from_str(&page.json)?;
        faults.extend(
            schema::faults(&json)?
                .into_iter()
                .map(|fault| format!("{name}: {fault}")),
        );
        faults.extend(
            page.board
                .faults()
                .into_iter()
                .map(|fault| format!("{name}: {fault}")),
        );
    }
    let rules = alerts::read(root)?;
    faults.extend(rules.faults(root)?);
    for fault in &faults {
        println!("fault: {fault}");
    }
    ensure!(faults.is_empty(), "{} faults", faults.len());
    let panels: usize = pages.iter().map(|page| page.board.panels().count()).sum();
    println!(
        "{} dashboards with {panels} panels and {} alerts are well",
        pages.len(),
        rules.count()
    );
    Ok(())
}
