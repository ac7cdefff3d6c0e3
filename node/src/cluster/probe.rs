//! Looking whether a peer is still there.
//!
//! For: turning hints (a broken connection, a peer's report) into proof, by dialing at once.
//! Not here: what proof leads to (`liveness`; for Raft's leader, `canvass`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::canvass::elect_instead_of;
use super::shared::{Shared, lock};
use crate::env::Tick;
use crate::net::peer::{DialError, PeerEvent, Purpose};

/// A dial on a local network takes a millisecond; one that takes so long proves nothing.
const DIAL: Duration = Duration::from_millis(300);
/// A node that answered is not dialed again sooner, however many hints there are.
const QUIET: Duration = Duration::from_millis(100);

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
                while campaigns.try_join_next().is_some() {}
                if matches!(found.outcome, Outcome::Gone) && campaigns.is_empty() && leader_is(&shared, node) {
                    campaigns.spawn(elect_instead_of(Arc::clone(&shared), node, incarnation));
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
