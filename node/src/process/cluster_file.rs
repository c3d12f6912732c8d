//! `cluster.json`: what `kelp dev` tells scripts about its cluster. The shape is fixed: scripts and
//! tests read it.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files;

/// The name of the file in the directory of a development cluster.
pub const CLUSTER_FILE: &str = "cluster.json";
/// Far above what the file of the largest cluster needs; more is not ours.
const CLUSTER_FILE_BYTES_MAX: u64 = 1 << 20;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterFile {
    /// 32 hexadecimal digits.
    pub cluster_id: String,
    /// In the order of their ids.
    pub nodes: Vec<ClusterNode>,
}

/// One node; addresses are `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNode {
    /// The node id, from 1.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// Its process; null while it is down.
    pub pid: Option<u32>,
    /// The port of the binary protocol.
    pub client: String,
    /// The Redis port; null in files of clusters that were made before there was one.
    pub resp: Option<String>,
    /// The port for other nodes.
    pub peer: String,
    /// The port of metrics and health.
    pub http: String,
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Its log file.
    pub log: PathBuf,
}

impl ClusterFile {
    /// Reads the file of the cluster in `directory`; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidData` when the file is there and is not a cluster file.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        let bytes = match files::read(&directory.join(CLUSTER_FILE), CLUSTER_FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// Replaces the file of the cluster in `directory`; a reader sees the old one or the new one,
    /// whole.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        files::write_atomically(&directory.join(CLUSTER_FILE), self.encode().as_bytes())
    }

    /// The text of the file.
    fn encode(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("names, numbers and UTF-8 paths made by this program always encode");
        text.push('\n');
        text
    }

    /// The client addresses, separated by commas, as `--endpoints` takes them.
    pub fn endpoints(&self) -> String {
        let addresses: Vec<&str> = self.nodes.iter().map(|node| node.client.as_str()).collect();
        addresses.join(",")
    }
}

#[cfg(test)]
mod tests;
