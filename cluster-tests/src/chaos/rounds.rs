//! One round: let the writers write, kill a node, see that the others go on, take it back.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kelp_seams::{Rng as _, SeededRng};
use tokio::time::{Instant, sleep};

use super::nodes::Nodes;
use super::resources::NodeResources;
use super::torn_tail;
use crate::DevCluster;

/// Answers that were on their way when a process died have arrived after this.
const STRAGGLERS: Duration = Duration::from_millis(500);
/// Writing every key once may take this long without any progress.
const FILL_STALL: Duration = Duration::from_secs(30);
/// An election, and the clients' way to another node; far more than it should take.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);
/// Start, replay of the log and the way back into the cluster.
const REJOIN_TIMEOUT: Duration = Duration::from_mins(1);
/// How often it is looked whether writes go on.
const POLL: Duration = Duration::from_millis(10);

/// What the writers have got done.
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<Acknowledged>);

#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    count: u64,
    filled: u64,
    last: Option<Instant>,
    /// Longest time between two acknowledged writes since it was last asked for.
    gap: Duration,
}

impl Progress {
    /// Notes an acknowledged write.
    pub(super) fn acknowledged(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(last) = state.last.replace(now) {
            state.gap = state.gap.max(now - last);
        }
        state.count += 1;
    }

    /// Notes that a writer has a key behind it for the first time, whatever came of it.
    pub(super) fn filled(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).filled += 1;
    }

    /// Waits until `key_count` keys are behind the writers.
    pub(super) async fn wait_until_filled(&self, key_count: u64) -> Result<()> {
        let mut before = (0, Instant::now());
        loop {
            let filled = self.0.lock().unwrap_or_else(PoisonError::into_inner).filled;
            if filled >= key_count {
                return Ok(());
            }
            if filled > before.0 {
                before = (filled, Instant::now());
            } else if before.1.elapsed() > FILL_STALL {
                bail!("only {filled} of {key_count} keys were written");
            }
            sleep(POLL).await;
        }
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The longest gap since the last call, one that is still open included.
    fn take_gap(&self) -> Duration {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = state.last.map_or(Duration::ZERO, |last| last.elapsed());
        std::mem::take(&mut state.gap).max(open)
    }
}

/// What happened in one round.
#[derive(Clone, Debug)]
pub struct RoundReport {
    /// The number of the round, from 1.
    pub round: u32,
    /// The nodes that were killed: one, or all.
    pub victims: Vec<u16>,
    /// Whether the leader was among them.
    pub led: bool,
    /// The nodes whose log got half a frame.
    pub torn: Vec<u16>,
    /// Longest time without an acknowledged write, from the kill until writes went on.
    pub gap: Duration,
    /// From the start of the first process until all had caught up.
    pub rejoin: Duration,
    /// Writes acknowledged since the first round.
    pub acknowledged: u64,
    /// What each node takes at the end of the round.
    pub resources: Vec<NodeResources>,
}

impl fmt::Display for RoundReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "round {}: killed {:?}{}, tore {:?}; longest gap {} ms, back after {} ms; \
             {} writes acknowledged",
            self.round,
            self.victims,
            if self.led { " with the leader" } else { "" },
            self.torn,
            self.gap.as_millis(),
            self.rejoin.as_millis(),
            self.acknowledged,
        )?;
        for node in &self.resources {
            write!(formatter, "\n  {node}")?;
        }
        Ok(())
    }
}

/// Every so many rounds all nodes are killed at once, as by a power cut.
const KILL_ALL_EVERY: u32 = 5;

/// Runs one round. Odd ones kill the leader, even ones a node by chance, each fifth one all.
pub(super) async fn run(
    round: u32,
    calm: Duration,
    cluster: &DevCluster,
    nodes: &Nodes,
    progress: &Progress,
    random: &SeededRng,
) -> Result<RoundReport> {
    sleep(calm + calm.mul_f64(fraction(random))).await;
    let leader = nodes.leader(RECOVERY_TIMEOUT).await?;
    let victims = match round {
        round if round.is_multiple_of(KILL_ALL_EVERY) => nodes.ids(),
        round if round.is_multiple_of(2) => vec![pick(&nodes.ids(), random)],
        _ => vec![leader],
    };
    progress.take_gap();
    cluster.kill(&victims).await?;
    if victims.len() == 1 {
        wait_until_writes_go_on(progress)
            .await
            .with_context(|| format!("{victims:?} killed"))?;
    }
    let mut torn = victims.clone();
    torn.retain(|_| random.next_u64().is_multiple_of(2));
    for &victim in &torn {
        torn_tail::append(&cluster.node(victim)?.data_dir)?;
    }
    let start = Instant::now();
    for &victim in &victims {
        cluster.restart(victim)?;
    }
    for &victim in &victims {
        nodes.wait_until_caught_up(victim, REJOIN_TIMEOUT).await?;
    }
    let rejoin = start.elapsed();
    wait_until_writes_go_on(progress)
        .await
        .with_context(|| format!("{victims:?} restarted"))?;
    Ok(RoundReport {
        round,
        led: victims.contains(&leader),
        victims,
        torn,
        gap: progress.take_gap(),
        rejoin,
        acknowledged: progress.count(),
        resources: NodeResources::of(cluster)?,
    })
}

/// Waits for a write that was acknowledged well after now.
async fn wait_until_writes_go_on(progress: &Progress) -> Result<()> {
    let deadline = Instant::now() + RECOVERY_TIMEOUT;
    sleep(STRAGGLERS).await;
    let count = progress.count();
    while progress.count() == count {
        if Instant::now() > deadline {
            bail!("no write was acknowledged within {RECOVERY_TIMEOUT:?}");
        }
        sleep(POLL).await;
    }
    Ok(())
}

fn pick(ids: &[u16], random: &SeededRng) -> u16 {
    let count = u64::try_from(ids.len()).unwrap_or(1);
    ids[usize::try_from(random.next_u64() % count).unwrap_or(0)]
}

/// A number from 0 to 1 by chance.
fn fraction(random: &SeededRng) -> f64 {
    f64::from(u32::try_from(random.next_u64() >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}
