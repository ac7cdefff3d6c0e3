//! The Raft leader's own initiative.
//!
//! For: confirming leadership, carrying out what `liveness` and `membership` decide.
//! Not here: the decisions, the answers to requests (`control`).
//! Every node runs this; it acts while its node leads.

use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{MapChange, View};
use tokio::time::{sleep, timeout};

use super::liveness::Decision;
use super::membership::{Situation, Step, next_step};
use super::shared::{Shared, lock, peer_address};
use crate::net::peer::{PeerEvent, Trouble};
use korum_raft::ProposeError;

/// How often a leader judges without being asked to: a small part of a lease.
const LOOK: Duration = Duration::from_millis(20);
/// How often leadership is confirmed: a part of the confirm window that leaves time for a slow round trip.
const CONFIRM: Duration = Duration::from_millis(50);
/// Longest time for one step of membership; Raft's own limits lie below it.
const STEP: Duration = Duration::from_secs(15);
/// Pause after a step that failed.
const STEP_PAUSE: Duration = Duration::from_millis(500);

/// Judges for ever.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut leader = shared.consensus.leader();
    let mut views = shared.consensus.views();
    loop {
        if shared.leads() {
            lead(&shared);
        } else {
            lock(&shared.leading).grants.step_down();
        }
        tokio::select! {
            biased;
            () = shared.look.notified() => {}
            changed = leader.changed() => if changed.is_err() { return },
            changed = views.changed() => if changed.is_err() { return },
            () = sleep(LOOK) => {}
        }
    }
}

/// Confirms leadership for ever.
pub(super) async fn confirm(shared: Arc<Shared>) {
    loop {
        let term = lock(&shared.leading).grants.leading().map(|(term, _)| term);
        if let Some(term) = term.filter(|term| *term == shared.consensus.term()) {
            let began = shared.clock.now();
            // A confirmation of a later term proves nothing about this one, so the term must have stayed.
            if shared.consensus.confirm_leadership().await.is_ok() && shared.consensus.term() == term {
                lock(&shared.leading).grants.confirmed(term, began);
            }
        }
        let _ = timeout(CONFIRM, shared.confirm.notified()).await;
    }
}

fn lead(shared: &Arc<Shared>) {
    let (now, term) = (shared.clock.now(), shared.consensus.term());
    let Some(view) = shared.view() else { return };
    let mut leading = lock(&shared.leading);
    if leading.grants.leading().is_none_or(|(known, _)| known != term) {
        tracing::info!(term, "this node leads");
        leading.grants.lead(term, now);
        leading.watch.lead(now);
        shared.confirm.notify_one();
        shared.beat.notify_one();
        // What this node saw as a follower, it looks at again as leader.
        for seen in lock(&shared.evidence).recent(now) {
            let incarnation = Some(seen.incarnation);
            shared.report(PeerEvent { node: seen.node, incarnation, trouble: Trouble::Refused });
        }
    }
    let leading = &mut *leading;
    // That this runs is this node's own sign of life: a heartbeat to itself may still wait for a leader that is
    // gone, and its silence must not cost what only this node holds.
    leading.watch.heard(shared.me(), shared.local.incarnation(), view.map.epoch, now);
    for decision in leading.watch.decide(&view.map, &leading.grants, &shared.timing, now) {
        let (node, incarnation, change) = match decision {
            Decision::MarkDown { node, incarnation, why } => {
                leading.grants.withhold(node, incarnation);
                if leading.proposing.insert((node, incarnation)) {
                    tracing::warn!(?node, %incarnation, ?why, "a node is gone");
                    (node, incarnation, MapChange::MarkDown { node, incarnation })
                } else {
                    continue;
                }
            }
            Decision::Exclude { node, incarnation } if leading.proposing.insert((node, incarnation)) => {
                (node, incarnation, MapChange::Exclude { node, incarnation })
            }
            Decision::Exclude { .. } => continue,
        };
        tokio::spawn(decide(Arc::clone(shared), node, incarnation, change));
    }
    if !leading.stepping && leading.grants.is_confirmed(&shared.timing, now) {
        let raft = shared.consensus.voters();
        let step = next_step(&Situation {
            me: shared.me(),
            map: &view.map,
            holds: &|node| holds(&view, node),
            heard: &|node, incarnation| leading.watch.has_heard(node, incarnation, view.map.membership_epoch),
            down_for: &|node| leading.watch.down_for(node, now),
            raft: &raft,
            joining: &leading.joining,
            voter_replace_after: shared.timing.voter_replace_after,
        });
        if let Some(step) = step {
            leading.stepping = true;
            tokio::spawn(take(Arc::clone(shared), step, view));
        }
    }
}

fn holds(view: &View, node: NodeId) -> bool {
    view.table.rows.iter().any(|row| row.holders.contains(&node))
}

async fn decide(shared: Arc<Shared>, node: NodeId, incarnation: Incarnation, change: MapChange) {
    if let Err(error) = shared.consensus.propose(change).await {
        tracing::debug!(?node, %error, "a decision was not agreed");
        // It is decided again from what is true then; the lease stays withheld.
        sleep(LOOK).await;
    }
    lock(&shared.leading).proposing.remove(&(node, incarnation));
    shared.look.notify_one();
}

async fn take(shared: Arc<Shared>, step: Step, view: Arc<View>) {
    tracing::info!(?step, "membership");
    let consensus = &shared.consensus;
    let work = async {
        match &step {
            Step::AddLearner(node) => match view.map.nodes.get(node) {
                Some(record) => consensus.add_learner(*node, peer_address(&record.addresses)).await,
                None => Ok(()),
            },
            Step::Admit { node, incarnation } => {
                let admit = MapChange::Admit { node: *node, incarnation: *incarnation };
                consensus.propose(admit).await.map(drop)
            }
            Step::SetVoters(voters) => consensus.set_voters(voters.clone()).await,
            Step::Forget(node) => consensus.propose(MapChange::Forget { node: *node }).await.map(drop),
            Step::Remove(node) => consensus.remove(*node).await,
        }
    };
    let result = timeout(STEP, work).await.unwrap_or(Err(ProposeError::Unknown("it took too long".into())));
    if let Err(error) = result {
        tracing::warn!(?step, %error, "a step of membership did not succeed");
        sleep(STEP_PAUSE).await;
    }
    lock(&shared.leading).stepping = false;
    shared.look.notify_one();
}
