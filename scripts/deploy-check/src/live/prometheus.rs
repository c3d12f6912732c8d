//! A Prometheus that runs with the configuration of `deploy/prometheus`, on the cluster's ports.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::process::Process;
use crate::alerts::Alerts;

/// Between two scrapes; also the step of range queries.
const SCRAPE_SECONDS: u64 = 1;

/// The addresses in the configuration, in the order of the nodes.
const CONFIGURED: [&str; 3] = ["127.0.0.1:4802", "127.0.0.1:4812", "127.0.0.1:4822"];

/// Prometheus answers within this time after its start.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// Has a value once a node has compacted tables and one has discarded log.
const USED: &str = "max(kelp_storage_compactions_total) > 0 and max(kelp_raft_purged_index) > 0";

const POLL: Duration = Duration::from_millis(200);

/// A running server; it ends when it is dropped.
pub(super) struct Prometheus {
    address: String,
    _process: Process,
}

impl Prometheus {
    /// Starts it on a free port and returns when it answers.
    pub(super) fn start(root: &Path, folder: &Path, targets: &[String]) -> Result<Self> {
        let source = root.join("deploy/prometheus").canonicalize()?;
        let mut text = std::fs::read_to_string(source.join("prometheus.yml"))?;
        ensure!(targets.len() == CONFIGURED.len(), "not three nodes");
        for (configured, target) in CONFIGURED.iter().zip(targets) {
            ensure!(
                text.contains(configured),
                "prometheus.yml does not name {configured}"
            );
            text = text.replace(configured, target);
        }
        let interval = format!("scrape_interval: {SCRAPE_SECONDS}s");
        let lines = text
            .lines()
            .map(|line| match line.trim_start().split(':').next() {
                Some("scrape_interval") => format!("  {interval}"),
                Some("evaluation_interval") => "  evaluation_interval: 1s".to_owned(),
                _ => line.replace("rules/", &format!("{}/rules/", source.display())),
            });
        let text = lines.collect::<Vec<_>>().join("\n");
        let configuration = folder.join("prometheus.yml");
        std::fs::write(&configuration, text)?;
        let address = free_address()?;
        let log = std::fs::File::create(folder.join("prometheus.log"))?;
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", configuration.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("series").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log);
        let process = Process::start(&mut command)?;
        let prometheus = Self {
            address,
            _process: process,
        };
        prometheus.wait("is ready", START_TIME_MAX, || {
            let ready = ureq::get(format!("http://{}/-/ready", prometheus.address)).call();
            Ok(ready.is_ok())
        })?;
        Ok(prometheus)
    }

    /// Waits until every node was reached by the last scrape.
    pub(super) fn wait_until_all_up(&self, count: usize, limit: Duration) -> Result<()> {
        self.wait("sees every node", limit, || {
            let parameters = [("query", "count(up{job=\"kelp\"} == 1)")];
            let answer = self.ask("query", &parameters)?;
            let up = answer["result"][0]["value"][1].as_str().unwrap_or_default();
            Ok(up == count.to_string())
        })
    }

    /// Waits until the nodes have written so much that tables were compacted and log was discarded,
    /// and this was scraped often enough to be a rate.
    pub(super) fn wait_until_used(&self, limit: Duration) -> Result<()> {
        self.wait("sees compaction and purge", limit, || {
            let answer = self.ask("query", &[("query", USED)])?;
            Ok(answer["result"]
                .as_array()
                .is_some_and(|found| !found.is_empty()))
        })?;
        std::thread::sleep(Duration::from_secs(3 * SCRAPE_SECONDS));
        Ok(())
    }

    /// Waits until no alert fires or is about to. What looks back over minutes may still be about
    /// to: it sees the load and the kill.
    pub(super) fn wait_until_no_alert(&self, rules: &Alerts, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            let answer = self.ask("alerts", &[])?;
            let alerts = answer["alerts"].as_array().context("no list of alerts")?;
            let left = alerts.iter().filter(|alert| {
                let name = alert["labels"]["alertname"].as_str().unwrap_or_default();
                alert["state"] == "firing" || !rules.looks_back(name)
            });
            let names: Vec<_> = left.map(|alert| alert["labels"].to_string()).collect();
            if names.is_empty() {
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "alerts of a cluster that is well: {names:#?}"
            );
            std::thread::sleep(POLL);
        }
    }

    fn wait(&self, what: &str, limit: Duration, is_so: impl Fn() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + limit;
        while !is_so()? {
            ensure!(
                Instant::now() < end,
                "{} {what}: not so after {limit:?}",
                self.address
            );
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// The values of each series of an expression over the last `window`.
    pub(super) fn range(&self, expression: &str, window: Duration) -> Result<Vec<Vec<f64>>> {
        let (start, end) = seconds(window)?;
        let step = SCRAPE_SECONDS.to_string();
        let parameters = [
            ("query", expression),
            ("start", start.as_str()),
            ("end", end.as_str()),
            ("step", step.as_str()),
        ];
        let answer = self.ask("query_range", &parameters)?;
        let series = answer["result"].as_array().context("no result")?;
        let values = |series: &Value| {
            let points = series["values"].as_array().into_iter().flatten();
            let values = points.filter_map(|point| point[1].as_str()?.parse().ok());
            values.filter(|value: &f64| !value.is_nan()).collect()
        };
        Ok(series.iter().map(values).collect())
    }

    /// How many series a selector found within the last `window`.
    pub(super) fn series_count(&self, selector: &str, window: Duration) -> Result<usize> {
        let (start, end) = seconds(window)?;
        let parameters = [
            ("match[]", selector),
            ("start", start.as_str()),
            ("end", end.as_str()),
        ];
        let answer = self.ask("series", &parameters)?;
        Ok(answer.as_array().context("no list of series")?.len())
    }

    /// The data of an answer of the interface.
    pub(super) fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let mut request = ureq::get(format!("http://{}/api/v1/{path}", self.address));
        for (name, value) in parameters {
            request = request.query(name, value);
        }
        let request = request.config().http_status_as_error(false).build();
        let text = request.call()?.body_mut().read_to_string()?;
        let mut answer: Value = serde_json::from_str(&text).context(text.clone())?;
        if answer["status"] != "success" {
            bail!("{path} {parameters:?}: {}", answer["error"]);
        }
        Ok(answer["data"].take())
    }
}

/// Begin and end of the last `window` as Unix times.
fn seconds(window: Duration) -> Result<(String, String)> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let start = now.saturating_sub(window).as_secs_f64();
    Ok((start.to_string(), now.as_secs_f64().to_string()))
}

/// An address that was free a moment ago.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.to_string())
}
