//! A peer bus within one process, with faults.
//!
//! Each `(from, to, class)` is a task that delivers in order and drives the handler's futures as
//! the contract of [`PeerHandler`] asks. A filter looks at every request and every reply and
//! decides whether it passes, is lost or is late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::bus::{BusError, PeerBus, PeerClass, PeerHandler};
use crate::model::NodeId;

/// What happens to a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    Pass,
    Lose,
    /// Its sender hears at once that nobody can be reached.
    Refuse,
    Delay(Duration),
    /// Arrives changed, as from a peer that lies or errs.
    Change(fn(&Bytes) -> Bytes),
}

/// A message on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) class: PeerClass,
    pub(crate) bytes: &'a Bytes,
}

type Filter = Box<dyn FnMut(Message<'_>) -> Verdict + Send>;

/// The wires between all nodes.
#[derive(Clone, Default)]
pub(crate) struct LocalNetwork {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Who listens, and how often it was started before.
    nodes: BTreeMap<NodeId, (u64, Arc<dyn PeerHandler>)>,
    started: BTreeMap<NodeId, u64>,
    links: BTreeMap<(NodeId, u64, NodeId, PeerClass), mpsc::UnboundedSender<Delivery>>,
    filter: Option<Filter>,
}

struct Delivery {
    request: Bytes,
    verdict: Verdict,
    sent: Instant,
    reply: oneshot::Sender<Bytes>,
}

impl LocalNetwork {
    /// A bus for the next incarnation of `node`; buses of earlier ones no longer reach anybody.
    pub(crate) fn bus(&self, node: NodeId) -> Arc<dyn PeerBus> {
        let mut state = self.lock();
        let incarnation = state.started.entry(node).or_default();
        *incarnation += 1;
        Arc::new(LocalBus {
            network: self.clone(),
            node,
            incarnation: *incarnation,
        })
    }

    /// Lets `handler` receive what is sent to `node`.
    pub(crate) fn attach(&self, node: NodeId, handler: Arc<dyn PeerHandler>) {
        let mut state = self.lock();
        let incarnation = state.started[&node];
        state.nodes.insert(node, (incarnation, handler));
    }

    /// Makes `node` unreachable, as when its process dies.
    pub(crate) fn detach(&self, node: NodeId) {
        let mut state = self.lock();
        state.nodes.remove(&node);
        *state.started.entry(node).or_default() += 1;
        // Its connections break, also for those who wait for a reply.
        state
            .links
            .retain(|(from, _, to, _), _| *from != node && *to != node);
    }

    /// Asks `filter` about every message from now on.
    pub(crate) fn filter(&self, filter: impl FnMut(Message<'_>) -> Verdict + Send + 'static) {
        self.lock().filter = Some(Box::new(filter));
    }

    /// Loses every message between `nodes` and all others, both ways.
    pub(crate) fn isolate(&self, nodes: &[NodeId]) {
        let nodes = nodes.to_vec();
        self.filter(move |message| {
            if nodes.contains(&message.from) == nodes.contains(&message.to) {
                Verdict::Pass
            } else {
                Verdict::Lose
            }
        });
    }

    /// Leaves no way between `node` and all others, and both ends know it.
    pub(crate) fn cut_off(&self, node: NodeId) {
        self.filter(move |message| {
            if message.from == node || message.to == node {
                Verdict::Refuse
            } else {
                Verdict::Pass
            }
        });
    }

    /// Takes the filter away.
    pub(crate) fn heal(&self) {
        self.lock().filter = None;
    }

    fn handler(&self, node: NodeId) -> Option<(u64, Arc<dyn PeerHandler>)> {
        self.lock().nodes.get(&node).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn verdict(&mut self, message: Message<'_>) -> Verdict {
        self.filter
            .as_mut()
            .map_or(Verdict::Pass, |filter| filter(message))
    }
}

/// One incarnation of a node on the network.
struct LocalBus {
    network: LocalNetwork,
    node: NodeId,
    incarnation: u64,
}

impl PeerBus for LocalBus {
    fn call(
        &self,
        peer: NodeId,
        class: PeerClass,
        request: Bytes,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Bytes, BusError>> {
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.network.lock();
            let current = state.started.get(&self.node) == Some(&self.incarnation);
            if !current || !state.nodes.contains_key(&peer) {
                let error = BusError::Unreachable("nobody listens".to_owned());
                return std::future::ready(Err(error)).boxed();
            }
            let bytes = &request;
            let verdict = state.verdict(Message {
                from: self.node,
                to: peer,
                class,
                bytes,
            });
            if matches!(verdict, Verdict::Refuse) {
                let error = BusError::Unreachable("no way".to_owned());
                return std::future::ready(Err(error)).boxed();
            }
            let sent = Instant::now();
            let key = (self.node, self.incarnation, peer, class);
            let link = state.links.entry(key).or_insert_with(|| {
                let (sender, receiver) = mpsc::unbounded_channel();
                tokio::spawn(deliver(
                    self.network.clone(),
                    self.node,
                    peer,
                    class,
                    receiver,
                ));
                sender
            });
            link.send(Delivery {
                request,
                verdict,
                sent,
                reply,
            })
            .unwrap();
        }
        async move {
            match tokio::time::timeout(deadline, answer).await {
                Ok(Ok(reply)) => Ok(reply),
                // A lost message stays silent; only a refusal closes the connection.
                Ok(Err(_)) => Err(BusError::Lost("connection closed".to_owned())),
                Err(_) => Err(BusError::Timeout),
            }
        }
        .boxed()
    }
}

/// Delivers what one node sends to another on one class.
async fn deliver(
    network: LocalNetwork,
    from: NodeId,
    to: NodeId,
    class: PeerClass,
    mut requests: mpsc::UnboundedReceiver<Delivery>,
) {
    let mut handling = FuturesOrdered::new();
    // Replies that are never to arrive, kept so that their caller waits for its deadline.
    let mut lost = Vec::new();
    loop {
        tokio::select! {
            biased;
            request = requests.recv() => {
                let Some(delivery) = request else { return };
                let Delivery { mut request, verdict, sent, reply } = delivery;
                match verdict {
                    Verdict::Pass => {}
                    Verdict::Change(change) => request = change(&request),
                    Verdict::Lose | Verdict::Refuse => {
                        lost.push(reply);
                        continue;
                    }
                    Verdict::Delay(delay) => tokio::time::sleep_until(sent + delay).await,
                }
                let Some((incarnation, handler)) = network.handler(to) else { continue };
                let answer = handler.handle(from, class, request);
                handling.push_back(answer.map(move |answer| (incarnation, answer, reply)));
            }
            Some((incarnation, answer, reply)) = handling.next() => {
                let alive = network.handler(to).is_some_and(|(now, _)| now == incarnation);
                let Ok(answer) = answer else { continue };
                if !alive {
                    continue;
                }
                let message = Message { from: to, to: from, class, bytes: &answer };
                let verdict = network.lock().verdict(message);
                match verdict {
                    Verdict::Pass => drop(reply.send(answer)),
                    Verdict::Change(change) => drop(reply.send(change(&answer))),
                    Verdict::Lose | Verdict::Refuse => lost.push(reply),
                    Verdict::Delay(delay) => {
                        tokio::spawn(async move {
                            tokio::time::sleep(delay).await;
                            drop(reply.send(answer));
                        });
                    }
                }
            }
        }
    }
}
