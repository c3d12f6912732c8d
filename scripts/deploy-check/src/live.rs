//! Asks every query of a real Prometheus that watches a loaded cluster.
//!
//! A misspelt label or a metric that nothing counts parses well and shows an empty panel; only data
//! tells. So three nodes serve writes, reads and scans while Prometheus scrapes them each second,
//! until tables were compacted and log was discarded; their leader is killed once and comes back.
//! Then each panel's query must have values, and values other than 0 unless the panel says that it
//! is quiet; each selection of series in an alert must find series; every rule must evaluate. Once
//! the leader is back no alert may be left.

mod cluster;
mod load;
mod process;
mod prometheus;
mod verdict;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::{Page, alerts};
use cluster::Cluster;
use prometheus::Prometheus;

/// The load runs this long before the leader is killed.
const BEFORE_KILL: Duration = Duration::from_secs(8);

/// A killed node stays down for this long.
const DOWN: Duration = Duration::from_secs(4);

/// The cluster must be whole again, and seen so, within this time.
const RECOVERY_MAX: Duration = Duration::from_secs(30);

/// Runs the whole check.
pub(crate) fn run(root: &Path, kelp: &Path, seconds: u64, pages: &[Page]) -> Result<()> {
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let cluster = Cluster::start(kelp, &folder.path().join("cluster"))?;
    let prometheus = Prometheus::start(root, folder.path(), &cluster.http())?;
    let begin = Instant::now();
    let limit = Duration::from_secs(seconds);
    let load = load::start(&cluster, limit)?;
    std::thread::sleep(BEFORE_KILL);
    let leader = cluster.leader()?;
    cluster.node("kill", leader)?;
    std::thread::sleep(DOWN);
    cluster.node("start", leader)?;
    prometheus.wait_until_used(limit.saturating_sub(begin.elapsed()))?;
    load.stop()?;
    prometheus.wait_until_all_up(cluster.http().len(), RECOVERY_MAX)?;
    let rules = alerts::read(root)?;
    prometheus.wait_until_no_alert(&rules, RECOVERY_MAX)?;
    cluster.check_metrics()?;
    let window = begin.elapsed();
    let mut faults = verdict::panels(&prometheus, window, pages)?;
    faults.extend(verdict::alerts(&prometheus, window, &rules)?);
    verdict::remark_unseen(&prometheus, root, pages)?;
    for fault in &faults {
        println!("fault: {fault}");
    }
    ensure!(faults.is_empty(), "{} faults", faults.len());
    println!(
        "every panel and alert has data after {} s",
        begin.elapsed().as_secs()
    );
    Ok(())
}
