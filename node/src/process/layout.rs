//! Where things lie in the directory of a development cluster.
//!
//! ```text
//! DIR/KELP_DEV  LOCK  cluster.json  supervisor.json  control/
//! DIR/certs/ca.crt, ca.key   authority
//! DIR/certs/n<id>/           bundle of a node
//! DIR/certs/client/          bundle of a client
//! DIR/n<id>/data             data of a node
//! DIR/n<id>/kelp.log         its log
//! ```

use std::path::{Path, PathBuf};

/// The paths of one development cluster.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout under `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Says that the directory was made for a development cluster, so that everything in it may be
    /// made anew.
    pub(crate) fn marker(&self) -> PathBuf {
        self.root.join("KELP_DEV")
    }

    /// Held by the supervisor while it runs.
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("LOCK")
    }

    /// The identity of the supervisor.
    pub(crate) fn supervisor(&self) -> PathBuf {
        self.root.join("supervisor.json")
    }

    /// Requests to the supervisor and its replies.
    pub(crate) fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    /// The certificate authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.root.join("certs")
    }

    /// The bundle of a node.
    pub(crate) fn node_certs(&self, id: u16) -> PathBuf {
        self.authority().join(format!("n{id}"))
    }

    /// The bundle of a client.
    pub(crate) fn client_certs(&self) -> PathBuf {
        self.authority().join("client")
    }

    /// The data directory of a node.
    pub(crate) fn data(&self, id: u16) -> PathBuf {
        self.node(id).join("data")
    }

    /// The log file of a node.
    pub(crate) fn log(&self, id: u16) -> PathBuf {
        self.node(id).join("kelp.log")
    }

    /// What belongs to one node.
    pub(crate) fn node(&self, id: u16) -> PathBuf {
        self.root.join(format!("n{id}"))
    }
}
