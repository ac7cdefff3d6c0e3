//! A node's signs of life.
//!
//! For: heartbeats to the leader, the lease that they earn, and registering a run that the map does not know.
//! Not here: the leader's answers (`control`).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Epoch, Incarnation};
use korum_protocol::map::MapChange;
use korum_protocol::peer::message::{ControlReply, ControlRequest, Heartbeat, HeartbeatReply};
use tokio::time::{Instant, sleep, sleep_until};

use super::Standing;
use super::ask::{ask_leader, find_leader, propose};
use super::shared::{Shared, lock};
use crate::env::mistake::{Mistake, makes};

/// Shortest time between two heartbeats, however many reasons there are to send one.
const GAP: Duration = Duration::from_millis(10);
/// Longest time to register.
const REGISTER: Duration = Duration::from_secs(3);
/// Heartbeats in vain before the other nodes are asked who leads.
const LOST_AFTER: u32 = 3;

/// Heartbeats for ever.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut leader = shared.consensus.leader();
    let mut views = shared.consensus.views();
    let mut membership_epoch = Epoch(0);
    let mut in_vain = 0;
    // Beside the heartbeats: nodes that do not answer take long to ask, and whoever leads must go on hearing this one.
    let mut search: Option<Search<'_>> = None;
    loop {
        let next = Instant::now() + shared.timing.heartbeat;
        if *shared.standing.borrow() == Standing::Left {
            return;
        }
        match beat(&shared).await {
            Outcome::Heard => (in_vain, search) = (0, None),
            Outcome::Again => continue,
            Outcome::Unheard => in_vain += 1,
        }
        // Whoever this node believes to lead: itself, too. One that led when it ended takes itself for the leader when
        // it starts again, and may have been replaced, even forgotten.
        if in_vain >= LOST_AFTER && search.is_none() {
            in_vain = 0;
            search = Some(Box::pin(find_leader(&shared)));
        }
        tokio::select! {
            biased;
            () = ended(&mut search) => search = None,
            () = sleep(GAP) => {}
        }
        loop {
            tokio::select! {
                biased;
                // First: reasons for a heartbeat may come all the time, and the search must go on.
                () = ended(&mut search) => {
                    search = None;
                    break;
                }
                () = shared.beat.notified() => break,
                changed = leader.changed() => match changed {
                    Ok(()) => {
                        search = None;
                        break;
                    }
                    Err(_) => return,
                },
                changed = views.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // A leader admits and promotes whom it knows to be up to date.
                    let now = views.borrow_and_update().as_ref().map(|view| view.map.membership_epoch);
                    if now.is_some_and(|now| now != membership_epoch) {
                        membership_epoch = now.unwrap_or_default();
                        break;
                    }
                }
                () = sleep_until(next) => break,
            }
        }
    }
}

/// The other nodes are being asked who leads.
type Search<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

enum Outcome {
    Heard,
    Again,
    Unheard,
}

async fn beat(shared: &Arc<Shared>) -> Outcome {
    let sent_at = shared.clock.now();
    let incarnation = shared.local.incarnation();
    let request = ControlRequest::Heartbeat(Heartbeat {
        node: shared.me(),
        incarnation,
        epoch: shared.view().map_or(Epoch(0), |view| view.map.epoch),
        evidence: lock(&shared.evidence).recent(sent_at),
    });
    // A lost answer must leave time for two more attempts within the lease.
    let limit = shared.timing.lease / 3;
    let Ok(ControlReply::Heartbeat(reply)) = ask_leader(shared, request, limit).await else {
        return Outcome::Unheard;
    };
    match reply {
        HeartbeatReply::Granted { lease_ms, .. } => {
            // An answer can promise no more than this node would ever grant.
            let duration = Duration::from_millis(lease_ms.into()).min(shared.timing.lease);
            let sent_at = if makes(Mistake::LeaseFromAnswer) { shared.clock.now() } else { sent_at };
            shared.lease.extend(sent_at, duration);
            stand(shared, Standing::Serving);
            Outcome::Heard
        }
        HeartbeatReply::NotLeader(_) => {
            if lock(&shared.hint).is_some() {
                shared.beat.notify_one();
            }
            Outcome::Unheard
        }
        HeartbeatReply::NotConfirmed => {
            // Whoever Raft names now may be the better one.
            *lock(&shared.hint) = None;
            sleep(GAP).await;
            Outcome::Unheard
        }
        HeartbeatReply::MarkedDown { known } => {
            tracing::warn!(%incarnation, %known, "the cluster marked this run of the node down: it begins a new one");
            if !begin_incarnation(shared, known).await {
                return Outcome::Heard;
            }
            register(shared).await
        }
        HeartbeatReply::NotRegistered => register(shared).await,
        HeartbeatReply::Unknown => {
            shared.lease.revoke(shared.clock.now());
            stand(shared, Standing::Forgotten);
            Outcome::Heard
        }
    }
}

/// Waits until a search has ended; for ever, if there is none.
async fn ended(search: &mut Option<Search<'_>>) {
    match search {
        Some(search) => search.await,
        None => std::future::pending().await,
    }
}

/// A newer run of the same process: what it held belongs to others now.
async fn begin_incarnation(shared: &Arc<Shared>, known: Incarnation) -> bool {
    shared.lease.revoke(shared.clock.now());
    stand(shared, Standing::Registering);
    let on_disk = Arc::clone(shared);
    let begun = crate::executor::blocking(move || {
        lock(&on_disk.identity).as_mut().map(|identity| identity.begin_incarnation(known))
    });
    match begun.await {
        Ok(Some(Ok(incarnation))) => {
            shared.local.set_incarnation(incarnation);
            (shared.callbacks.on_reincarnation)(incarnation);
            true
        }
        Ok(Some(Err(error))) => {
            tracing::error!(%error, "cannot begin a new incarnation: the data directory is not writable");
            false
        }
        Ok(None) | Err(_) => false,
    }
}

async fn register(shared: &Shared) -> Outcome {
    stand(shared, Standing::Registering);
    let change = MapChange::Register { node: shared.me(), registration: shared.registration() };
    match propose(shared, change, REGISTER).await {
        Ok(epoch) => {
            tracing::info!(incarnation = %shared.local.incarnation(), %epoch, "registered");
            Outcome::Again
        }
        Err(error) => {
            tracing::warn!(%error, "cannot register yet");
            Outcome::Heard
        }
    }
}

/// The node stands so from now on, unless it has gone for good.
pub(super) fn stand(shared: &Shared, standing: Standing) {
    shared.standing.send_if_modified(|known| {
        let changed =
            *known != standing && !matches!(known, Standing::Left | Standing::GivenUp | Standing::LeftBehind);
        if changed {
            *known = standing;
        }
        changed
    });
}
