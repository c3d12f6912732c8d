//! How `kelp dev node start|stop|kill` reaches the supervisor: a request file, a signal, a reply
//! file.
//!
//! Files work in any directory, however long its path, and leave a trace to read when something
//! hangs; the signal only says "look now". A request is renamed into place, so that it is never
//! seen half written.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::identity::ProcessIdentity;
use super::layout::Layout;
use super::{cluster_file::ClusterFile, files};
use crate::cli::failure::{Exit, Failure};

/// What to do with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start it if it is down.
    Start,
    /// Stop it gracefully; it stays down.
    Stop,
    /// Kill it, as `kill -9` would; it stays down unless the supervisor restarts killed nodes.
    Kill,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Kill => "kill",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Start, Self::Stop, Self::Kill]
            .into_iter()
            .find(|action| action.word() == word)
    }
}

/// Requests and replies are a few words.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
/// Longer than a graceful stop may take.
const REPLY_DEADLINE: Duration = Duration::from_secs(20);
/// How often to look for the reply.
const REPLY_POLL: Duration = Duration::from_millis(20);
/// What request files end with.
const REQUEST: &str = ".request";
/// What reply files end with.
const REPLY: &str = ".reply";

/// Asks the supervisor of the cluster in `directory` and waits until it has done what was asked.
///
/// # Errors
/// `Unavailable` when no supervisor runs there, `Usage` when the cluster has no such node.
pub async fn request(directory: &Path, action: Action, node: u16) -> Result<(), Failure> {
    let layout = Layout::new(directory);
    let cluster = ClusterFile::read(directory)
        .map_err(|error| Failure::file(Exit::Usage, &directory.join("cluster.json"), &error))?
        .ok_or_else(|| {
            Failure::usage(format!(
                "{} holds no development cluster: give the --dir of a running `kelp dev`",
                directory.display()
            ))
        })?;
    if !cluster.nodes.iter().any(|member| member.id == node) {
        return Err(Failure::usage(format!(
            "no node {node}: this cluster has nodes 1 to {}",
            cluster.nodes.len()
        )));
    }
    let supervisor = read_supervisor(&layout).ok_or_else(|| not_running(directory))?;
    let own = ProcessIdentity::own().map_err(|error| internal(&error))?;
    let name = format!("{}-{}", own.pid, own.started);
    let reply = layout.control().join(format!("{name}{REPLY}"));
    let message = format!("{} {node}", action.word());
    let staged = layout.control().join(format!("{name}{REQUEST}"));
    files::write_atomically(&staged, message.as_bytes()).map_err(|error| internal(&error))?;
    supervisor
        .signal(Signal::USR1)
        .map_err(|error| internal(&error))?;
    let answer = wait_for_reply(&reply, supervisor)
        .await
        .ok_or_else(|| not_running(directory))?;
    match answer.as_str() {
        "ok" => Ok(()),
        other => Err(Failure::new(Exit::Refused, other)),
    }
}

async fn wait_for_reply(path: &Path, supervisor: ProcessIdentity) -> Option<String> {
    let deadline = Instant::now() + REPLY_DEADLINE;
    loop {
        if let Ok(bytes) = files::read(path, MESSAGE_BYTES_MAX) {
            // A reply that stays behind is swept away by the next supervisor.
            drop(files::remove(path));
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        if Instant::now() >= deadline || !supervisor.is_alive() {
            return None;
        }
        sleep(REPLY_POLL).await;
    }
}

fn not_running(directory: &Path) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!(
            "no `kelp dev` runs in {dir}: start it with `kelp dev --dir {dir}`",
            dir = directory.display()
        ),
    )
}

fn internal(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Unavailable,
        format!("cannot reach `kelp dev`: {error}"),
    )
}

/// The supervisor that runs now, if one does.
fn read_supervisor(layout: &Layout) -> Option<ProcessIdentity> {
    let bytes = files::read(&layout.supervisor(), MESSAGE_BYTES_MAX).ok()?;
    let identity: ProcessIdentity = serde_json::from_slice(&bytes).ok()?;
    identity.is_alive().then_some(identity)
}

/// The supervisor's end: announces itself, takes requests, answers them.
pub(crate) struct ControlInbox {
    layout: Layout,
}

/// One request that waits for an answer.
#[derive(Debug)]
pub(crate) struct ControlRequest {
    /// What to do; `None` when the request makes no sense.
    pub(crate) wish: Option<(Action, u16)>,
    name: String,
}

impl ControlInbox {
    /// Sweeps what an earlier supervisor left and announces this process.
    pub(crate) fn open(layout: &Layout) -> io::Result<Self> {
        files::create_directory(&layout.control())?;
        for name in files::list(&layout.control())? {
            files::remove(&layout.control().join(name))?;
        }
        let identity = serde_json::to_vec(&ProcessIdentity::own()?)?;
        files::write_atomically(&layout.supervisor(), &identity)?;
        Ok(Self {
            layout: layout.clone(),
        })
    }

    /// Takes all requests that wait.
    pub(crate) fn take(&self) -> io::Result<Vec<ControlRequest>> {
        let mut requests = Vec::new();
        for file in files::list(&self.layout.control())? {
            let Some(name) = file.strip_suffix(REQUEST) else {
                continue;
            };
            let path = self.layout.control().join(&file);
            let text = files::read(&path, MESSAGE_BYTES_MAX)?;
            files::remove(&path)?;
            requests.push(ControlRequest {
                wish: parse_wish(&String::from_utf8_lossy(&text)),
                name: name.to_owned(),
            });
        }
        Ok(requests)
    }

    /// Answers one request: `Ok` or one line that says what went wrong.
    pub(crate) fn answer(
        &self,
        request: &ControlRequest,
        outcome: &Result<(), String>,
    ) -> io::Result<()> {
        let path = self
            .layout
            .control()
            .join(format!("{}{REPLY}", request.name));
        let text = match outcome {
            Ok(()) => "ok",
            Err(message) => message,
        };
        files::write_atomically(&path, text.as_bytes())
    }

    /// Takes the announcement back.
    pub(crate) fn close(&self) -> io::Result<()> {
        files::remove(&self.layout.supervisor())
    }
}

fn parse_wish(text: &str) -> Option<(Action, u16)> {
    let (word, node) = text.trim().split_once(' ')?;
    Some((Action::parse(word)?, node.parse().ok()?))
}

#[cfg(test)]
mod tests;
