//! Looking whether a peer is still there.
//!
//! For: turning hints (a broken connection, a peer's report) into proof, by dialing at once; and calling an
//! election when the leader itself is gone.
//! Not here: what proof leads to (`liveness`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use rand::RngExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::shared::{Shared, lock};
use crate::env::{Tick, random};
use crate::net::peer::{DialError, PeerEvent, Purpose};

/// A dial on a local network takes a millisecond; one that takes so long proves nothing.
const DIAL: Duration = Duration::from_millis(300);
/// A node that answered is not dialed again sooner, however many hints there are.
const QUIET: Duration = Duration::from_millis(100);
/// Pause between two calls of one voter, milliseconds, drawn each time. A voter whose log is shorter can only disturb one that can
/// win, which needs two calls in a row: wide and random pauses give it that soon.
const CAMPAIGN: Range<u64> = 30..90;
/// Calls of one voter; then Raft's own timeouts decide, which wait longer on a voter with a shorter log.
const CALLS_MAX: u32 = 4;
/// Between the first calls of two voters, so that one of them is first.
const STAGGER: Duration = Duration::from_millis(12);

struct Probe {
    node: NodeId,
    incarnation: Incarnation,
    began: Tick,
    outcome: Outcome,
}

enum Outcome {
    Gone,
    Answered,
    Unclear,
}

#[derive(Default)]
struct State {
    running: bool,
    again: bool,
}

/// Probes for ever.
pub(super) async fn run(shared: Arc<Shared>, mut events: mpsc::Receiver<PeerEvent>) {
    let mut states: HashMap<NodeId, State> = HashMap::new();
    let mut probes = JoinSet::new();
    let mut campaigns = JoinSet::new();
    loop {
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { return };
                let Some(incarnation) = suspect(&shared, &event) else { continue };
                let state = states.entry(event.node).or_default();
                if state.running {
                    state.again = true;
                } else {
                    state.running = true;
                    probes.spawn(probe(Arc::clone(&shared), event.node, incarnation, Duration::ZERO));
                }
            }
            Some(Ok(found)) = probes.join_next() => {
                let answered = matches!(found.outcome, Outcome::Answered);
                let (node, incarnation) = (found.node, found.incarnation);
                conclude(&shared, &found);
                if matches!(found.outcome, Outcome::Gone) && campaigns.is_empty() && leader_is(&shared, node) {
                    campaigns.spawn(campaign(Arc::clone(&shared), node, incarnation));
                }
                let again = states.remove(&node).is_some_and(|state| state.again);
                let hint = PeerEvent { node, incarnation: None, trouble: crate::net::peer::Trouble::Broken };
                if again && !matches!(found.outcome, Outcome::Gone) && let Some(incarnation) = suspect(&shared, &hint) {
                    states.insert(node, State { running: true, again: false });
                    let wait = if answered { QUIET } else { Duration::ZERO };
                    probes.spawn(probe(Arc::clone(&shared), node, incarnation, wait));
                }
            }
            Some(_) = campaigns.join_next() => {}
        }
    }
}

/// The run that a hint is about, if the map believes that it is up.
fn suspect(shared: &Shared, event: &PeerEvent) -> Option<Incarnation> {
    let view = shared.view()?;
    let record =
        view.map.nodes.get(&event.node).filter(|record| record.is_up() && event.node != shared.me())?;
    let meant = event.incarnation.is_none_or(|incarnation| incarnation == record.incarnation);
    meant.then_some(record.incarnation)
}

async fn probe(shared: Arc<Shared>, node: NodeId, incarnation: Incarnation, wait: Duration) -> Probe {
    sleep(wait).await;
    let began = shared.clock.now();
    let outcome = match shared.rpc.probe(node, Purpose::Control, DIAL).await {
        Some(Ok(found)) if found > incarnation => Outcome::Gone,
        Some(Ok(_)) => Outcome::Answered,
        Some(Err(DialError::Refused)) => Outcome::Gone,
        Some(Err(DialError::WrongPeer { .. })) => Outcome::Gone,
        Some(Err(_)) | None => Outcome::Unclear,
    };
    Probe { node, incarnation, began, outcome }
}

fn conclude(shared: &Shared, probe: &Probe) {
    let Probe { node, incarnation, began, outcome } = probe;
    match outcome {
        Outcome::Gone => {
            let new = lock(&shared.evidence).add(*node, *incarnation, *began);
            lock(&shared.leading).watch.gone(*node, *incarnation, *began);
            if new {
                tracing::info!(?node, %incarnation, "the process of a node is gone");
                shared.beat.notify_one();
            }
            shared.look.notify_one();
        }
        Outcome::Answered => {
            lock(&shared.evidence).clear(*node);
            lock(&shared.leading).watch.answered(*node, *incarnation);
        }
        Outcome::Unclear => {}
    }
}

fn leader_is(shared: &Shared, node: NodeId) -> bool {
    *shared.consensus.leader().borrow() == Some(node)
}

/// The dead leader's followers need not wait for their election timeouts. openraft's voters refuse within the
/// leader's lease unless they campaign themselves, so all call, one shortly after the other, until there is a leader
/// or each has called a few times.
async fn campaign(shared: Arc<Shared>, dead: NodeId, incarnation: Incarnation) {
    let voters = shared.consensus.voters().voters;
    if !voters.contains(&shared.me()) {
        return;
    }
    let rank = voters.iter().filter(|node| **node != dead && **node < shared.me()).count() as u32;
    sleep(STAGGER * rank).await;
    for _ in 0..CALLS_MAX {
        let now = shared.clock.now();
        let leader = *shared.consensus.leader().borrow();
        let settled = leader.is_some_and(|leader| leader != dead);
        let linked = lock(&shared.leading).watch.is_linked(dead, incarnation);
        if settled || !lock(&shared.evidence).holds(dead, incarnation, now) {
            return;
        }
        if !linked {
            shared.consensus.call_election();
        }
        let pause = random::random().random_range(CAMPAIGN);
        sleep(Duration::from_millis(pause)).await;
    }
}
