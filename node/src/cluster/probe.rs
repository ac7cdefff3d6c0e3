//! Looking whether a peer is still there.
//!
//! For: turning hints (a broken connection, a peer's report) into proof, by dialing at once; and calling an
//! election when the leader itself is gone.
//! Not here: what proof leads to (`liveness`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::shared::{Shared, lock};
use crate::env::Tick;
use crate::net::peer::{DialError, PeerEvent, Purpose};

/// A dial on a local network takes a millisecond; one that takes so long proves nothing.
const DIAL: Duration = Duration::from_millis(300);
/// A node that answered is not dialed again sooner, however many hints there are.
const QUIET: Duration = Duration::from_millis(100);
/// Between the first calls of two voters, so that one of them is first.
const STAGGER: Duration = Duration::from_millis(12);
/// From the last of the first calls to the first turn: an election on a busy machine.
const FIRST_TURN: Duration = Duration::from_millis(40);
/// A voter's first turn; each later one is twice as long as the one before, for machines on which an election takes longer. In
/// its turn a voter calls twice, with half of it in between. Where two of five voters are dead all others must agree,
/// so nobody else may call meanwhile; and one with a shorter log, which cannot win, can only disturb one that can, which
/// then needs two calls in a row.
const TURN: Duration = Duration::from_millis(50);
/// Turns of one voter; then Raft's own timeouts decide, which wait longer on a voter with a shorter log.
const TURNS_MAX: u32 = 3;

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
/// or each has had a few turns.
async fn campaign(shared: Arc<Shared>, dead: NodeId, incarnation: Incarnation) {
    let begun = shared.clock.now();
    for call in 0..=2 * TURNS_MAX {
        let Some(rank) = Rank::of(&shared) else { return };
        let Some(at) = rank.calls_at(call) else { continue };
        sleep(at.saturating_sub(shared.clock.now().since(begun))).await;
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
    }
}

/// This node's place among the voters that are not known to be gone.
#[derive(Clone, Copy)]
struct Rank {
    rank: u32,
    /// How many there are,
    of: u32,
    /// and how many must agree.
    quorum: u32,
}

impl Rank {
    fn of(shared: &Shared) -> Option<Self> {
        let (view, now) = (shared.view()?, shared.clock.now());
        let voters = shared.consensus.voters().voters;
        let quorum = voters.len() as u32 / 2 + 1;
        let evidence = lock(&shared.evidence);
        let is_gone = |node: &NodeId| {
            let run = view.map.nodes.get(node).map(|record| record.incarnation);
            run.is_some_and(|run| evidence.holds(*node, run, now))
        };
        let left: Vec<NodeId> = voters.into_iter().filter(|node| !is_gone(node)).collect();
        let rank = left.iter().position(|node| *node == shared.me())? as u32;
        Some(Self { rank, of: left.len() as u32, quorum })
    }

    /// When this voter calls, after it has learned that the leader is gone. First as many as must agree, one shortly after the
    /// other, so that they do not believe in the dead leader any more: the last of them should win, and one that called
    /// after it would undo that. Then all, each twice in its turn, beginning with the one that should have won.
    fn calls_at(self, call: u32) -> Option<Duration> {
        let Self { rank, of, quorum } = self;
        let first = quorum.min(of);
        let Some(later) = call.checked_sub(1) else { return (rank < first).then(|| STAGGER * rank) };
        let (cycle, second) = (later / 2, later % 2);
        let turn = TURN * (1 << cycle);
        // All earlier cycles together are one turn of each shorter than this one.
        let begins = STAGGER * first + FIRST_TURN + (turn - TURN) * of;
        let place = if rank < first { first - 1 - rank } else { rank };
        Some(begins + turn * place + turn / 2 * second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voters_call_one_after_the_other_and_then_take_turns() {
        for (quorum, of) in [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (3, 4)] {
            let first = quorum.min(of);
            let rank = |rank| Rank { rank, of, quorum };
            let calls_of = |number| {
                let calls = (0..=2 * TURNS_MAX).filter_map(move |call| rank(number).calls_at(call));
                calls.map(move |at| (at, number))
            };
            let mut calls: Vec<(Duration, u32)> = (0..of).flat_map(calls_of).collect();
            calls.sort();
            let turn = (0..first).rev().chain(first..of).flat_map(|rank| [rank, rank]);
            let turns = (0..TURNS_MAX).flat_map(|_| turn.clone());
            let ranks: Vec<u32> = calls.iter().map(|call| call.1).collect();
            assert_eq!(ranks, (0..first).chain(turns).collect::<Vec<_>>());
            assert!(calls.windows(2).all(|two| two[1].0 - two[0].0 >= STAGGER), "{calls:?}");
        }
    }
}
