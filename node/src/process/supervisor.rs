//! The supervisor of a development cluster: starts its nodes, keeps `cluster.json` true, obeys
//! `kelp dev node` and the signals of the terminal, and never leaves a child behind.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::child::NodeProcess;
use super::cluster_file::ClusterFile;
use super::control::{Action, ControlInbox};
use super::layout::Layout;
use super::{files, readiness};
use crate::cli::console;
use crate::cli::failure::{Exit, Failure};

/// A node may take `--stop-grace` to stop; what takes longer than this is killed.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(8);
/// A killed node is started again after this; a second is promised.
const RESTART_DELAY: Duration = Duration::from_millis(200);
/// A node that ends again within this time of its start waits longer each time.
const RESTART_SETTLED: Duration = Duration::from_secs(5);
/// The longest wait between two starts of a node that keeps ending.
const RESTART_DELAY_MAX: Duration = Duration::from_secs(10);
/// Requests are announced by a signal; this often they are looked for without one.
const CONTROL_POLL: Duration = Duration::from_secs(1);
/// How much of a log's end is searched for the line to quote.
const LOG_TAIL_BYTES: u64 = 64 << 10;

/// The signals that the supervisor obeys.
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    child: unix::Signal,
    control: unix::Signal,
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// End everything and return this.
    End(Exit),
    /// A child may have ended.
    Child,
    /// A request may have come.
    Control,
}

impl Signals {
    /// Takes the signals over from their default actions.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
            child: unix::signal(SignalKind::child())?,
            control: unix::signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Event {
        tokio::select! {
            _ = self.interrupt.recv() => Event::End(Exit::Interrupted),
            _ = self.terminate.recv() => Event::End(Exit::Done),
            _ = self.hangup.recv() => Event::End(Exit::Done),
            _ = self.child.recv() => Event::Child,
            _ = self.control.recv() => Event::Control,
        }
    }
}

/// What is kept about a node besides its process.
struct Supervised {
    process: NodeProcess,
    started: Instant,
    /// When to start it again.
    restart_at: Option<Instant>,
    restart_delay: Duration,
}

/// Starts, watches and ends the nodes of one cluster.
pub(crate) struct Supervisor {
    nodes: Vec<Supervised>,
    cluster: ClusterFile,
    layout: Layout,
    inbox: ControlInbox,
    restart: bool,
}

impl Supervisor {
    /// A supervisor of nodes that do not run yet; announces itself to `kelp dev node`.
    pub(crate) fn new(
        processes: Vec<NodeProcess>,
        cluster: ClusterFile,
        layout: Layout,
        restart: bool,
    ) -> io::Result<Self> {
        let inbox = ControlInbox::open(&layout)?;
        let supervise = |process| Supervised {
            process,
            started: Instant::now(),
            restart_at: None,
            restart_delay: RESTART_DELAY,
        };
        Ok(Self {
            nodes: processes.into_iter().map(supervise).collect(),
            cluster,
            layout,
            inbox,
            restart,
        })
    }

    /// What `cluster.json` says now.
    pub(crate) fn cluster(&self) -> &ClusterFile {
        &self.cluster
    }

    /// Starts all nodes and waits until a leader is elected and every node answers.
    ///
    /// # Errors
    /// The code and the last log line of the first node that ended instead; `Unavailable` at the
    /// deadline.
    pub(crate) async fn start_all(
        &mut self,
        signals: &mut Signals,
        deadline: Duration,
    ) -> Result<Started, Failure> {
        for node in &mut self.nodes {
            start(node).map_err(|error| cannot_start(node.process.id, &error))?;
        }
        self.publish().map_err(|error| self.broken(&error))?;
        let endpoints: Vec<String> = self
            .cluster
            .nodes
            .iter()
            .map(|node| node.client.clone())
            .collect();
        let deadline_at = Instant::now() + deadline;
        let ready = readiness::wait(endpoints);
        tokio::pin!(ready);
        loop {
            tokio::select! {
                leader = &mut ready => return Ok(Started::Ready { leader }),
                event = signals.next() => match event {
                    Event::End(exit) => return Ok(Started::Ended(exit)),
                    Event::Child => match self.first_refusal() {
                        None => {}
                        Some(failure) if failure.exit == Exit::Unavailable => {
                            return Ok(Started::PortTaken(failure));
                        }
                        Some(failure) => return Err(failure),
                    },
                    Event::Control => {}
                },
                () = sleep_until(deadline_at) => return Err(Failure::new(
                    Exit::Unavailable,
                    format!(
                        "no leader and not every node answering after {} s: see {}",
                        deadline.as_secs(),
                        self.layout.log(1).display(),
                    ),
                )),
            }
        }
    }

    /// Obeys signals and requests until one says to end.
    pub(crate) async fn run(&mut self, signals: &mut Signals) -> Result<Exit, Failure> {
        let mut poll = interval(CONTROL_POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next_restart = self.nodes.iter().filter_map(|node| node.restart_at).min();
            let restart = async {
                match next_restart {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                event = signals.next() => match event {
                    Event::End(exit) => return Ok(exit),
                    Event::Child => {}
                    Event::Control => self.serve_control().await?,
                },
                _ = poll.tick() => self.serve_control().await?,
                () = restart => {}
            }
            self.notice_exits().map_err(|error| self.broken(&error))?;
            self.restart_due().map_err(|error| self.broken(&error))?;
        }
    }

    /// Ends every node: gracefully, and with force at the deadline or when Ctrl-C is pressed again.
    /// Nobody is left to take the leadership over, so the nodes are told by their pipes, not by a
    /// signal: that spares them the handover.
    pub(crate) async fn stop_all(&mut self, signals: &mut Signals) -> io::Result<()> {
        for node in &mut self.nodes {
            node.restart_at = None;
            node.process.release();
        }
        let mut deadline = Instant::now() + STOP_GRACE;
        for node in &mut self.nodes {
            let again = async { while !matches!(signals.next().await, Event::End(_)) {} };
            let impatient = tokio::select! {
                outcome = node.process.wait_or_kill(deadline) => { outcome?; false }
                () = again => true,
            };
            if impatient {
                deadline = Instant::now();
                node.process.wait_or_kill(deadline).await?;
            }
        }
        self.publish()?;
        self.inbox.close()
    }

    /// Writes the numbers of the running processes into `cluster.json`.
    fn publish(&mut self) -> io::Result<()> {
        for (node, supervised) in self.cluster.nodes.iter_mut().zip(&self.nodes) {
            node.pid = supervised.process.pid();
        }
        self.cluster.write(self.layout.root())
    }

    /// The failure of the first node that has ended, if one has.
    fn first_refusal(&mut self) -> Option<Failure> {
        for node in &mut self.nodes {
            if let Ok(Some(status)) = node.process.poll_exit() {
                let exit = match status.code().and_then(Exit::from_code) {
                    Some(exit @ (Exit::Usage | Exit::Unavailable)) => exit,
                    _ => Exit::Refused,
                };
                let log = &node.process.log;
                let reason = last_line(log).unwrap_or_else(|| status.to_string());
                let id = node.process.id;
                let message = format!("node {id} did not start: {reason} (log: {})", log.display());
                return Some(Failure::new(exit, message));
            }
        }
        None
    }

    /// Waits for ended children, says so, and plans their restart if that is wanted.
    fn notice_exits(&mut self) -> io::Result<()> {
        let mut changed = false;
        for node in &mut self.nodes {
            let Some(status) = node.process.poll_exit()? else {
                continue;
            };
            changed = true;
            let had_settled = node.started.elapsed() >= RESTART_SETTLED;
            // Refused right after its start, it would be refused again.
            let refused = status.code() == Some(i32::from(Exit::Refused.code())) && !had_settled;
            if self.restart && !refused {
                if had_settled {
                    node.restart_delay = RESTART_DELAY;
                }
                node.restart_at = Some(Instant::now() + node.restart_delay);
                node.restart_delay = (node.restart_delay * 2).min(RESTART_DELAY_MAX);
            }
            let id = node.process.id;
            let next = match node.restart_at {
                Some(_) => "it is started again".to_owned(),
                None => format!(
                    "start it again with `kelp dev node start {id} --dir {}`",
                    self.layout.root().display()
                ),
            };
            console::message(format!("node {id} ended, {status}: {next}"));
        }
        if changed { self.publish() } else { Ok(()) }
    }

    fn restart_due(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let mut changed = false;
        for node in &mut self.nodes {
            if node.restart_at.is_some_and(|at| at <= now) {
                start(node)?;
                changed = true;
            }
        }
        if changed { self.publish() } else { Ok(()) }
    }

    async fn serve_control(&mut self) -> Result<(), Failure> {
        let requests = self.inbox.take().map_err(|error| self.broken(&error))?;
        for request in requests {
            let outcome = match request.wish {
                Some((action, id)) => self.obey(action, id).await,
                None => Err("not understood: want start, stop or kill and a node id".to_owned()),
            };
            self.publish()
                .and_then(|()| self.inbox.answer(&request, &outcome))
                .map_err(|error| self.broken(&error))?;
        }
        Ok(())
    }

    async fn obey(&mut self, action: Action, id: u16) -> Result<(), String> {
        let node = self
            .nodes
            .iter_mut()
            .find(|node| node.process.id == id)
            .ok_or_else(|| format!("no node {id}"))?;
        let running = node.process.pid().is_some();
        let outcome = match action {
            Action::Start if running => return Err(format!("node {id} runs already")),
            Action::Stop | Action::Kill if !running => {
                return Err(format!("node {id} is down already"));
            }
            Action::Start => start(node),
            Action::Stop => node.process.stop(STOP_GRACE).await,
            Action::Kill => node.process.kill().await,
        };
        node.restart_at =
            (action == Action::Kill && self.restart).then(|| Instant::now() + RESTART_DELAY);
        outcome.map_err(|error| format!("node {id}: {error}"))
    }

    fn broken(&self, error: &io::Error) -> Failure {
        Failure::file(Exit::Refused, self.layout.root(), error)
    }
}

/// How starting a cluster went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// It serves.
    Ready {
        /// The node that leads.
        leader: u16,
    },
    /// A signal came first.
    Ended(Exit),
    /// Another program took a port in the moment before a node would have.
    PortTaken(Failure),
}

fn start(node: &mut Supervised) -> io::Result<()> {
    node.started = Instant::now();
    node.restart_at = None;
    node.process.start()
}

fn cannot_start(id: u16, error: &io::Error) -> Failure {
    Failure::new(Exit::Refused, format!("cannot start node {id}: {error}"))
}

/// The last line of a log that says something.
fn last_line(log: &std::path::Path) -> Option<String> {
    let bytes = files::read_tail(log, LOG_TAIL_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}
