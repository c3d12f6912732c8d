//! What a node takes of its machine.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::DevCluster;

/// What one node takes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeResources {
    /// The node id.
    pub node: u16,
    /// Memory in use, in KiB.
    pub resident_kib: u64,
    /// Open file descriptors.
    pub descriptors: usize,
    /// Bytes of all files of its data directory.
    pub disk_bytes: u64,
    /// Files of its write-ahead log.
    pub wal_files: usize,
    /// Its sorted tables.
    pub tables: usize,
}

impl NodeResources {
    /// Looks at every node of `cluster` that runs.
    pub(super) fn of(cluster: &DevCluster) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for node in cluster.nodes()? {
            let Some(pid) = node.pid else { continue };
            let mut resources = Self {
                node: node.id,
                resident_kib: resident_kib(pid)?,
                descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
                ..Self::default()
            };
            resources.measure_directory(&node.data_dir)?;
            all.push(resources);
        }
        Ok(all)
    }

    fn measure_directory(&mut self, directory: &Path) -> Result<()> {
        for file in fs::read_dir(directory)? {
            let file = file?;
            // It may go between the two calls.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            self.disk_bytes += metadata.len();
            match file.path().extension().and_then(|name| name.to_str()) {
                Some("wal") => self.wal_files += 1,
                Some("sst") => self.tables += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

impl fmt::Display for NodeResources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "node {}: {} MiB of memory, {} descriptors, {} MiB on disk in {} log files and {} tables",
            self.node,
            self.resident_kib >> 10,
            self.descriptors,
            self.disk_bytes >> 20,
            self.wal_files,
            self.tables,
        )
    }
}

fn resident_kib(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("a process without memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
