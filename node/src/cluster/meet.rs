//! Two clusters of which one is a single empty node become one: `CLUSTER MEET`.
//!
//! For: the node that is asked by its client, and the node that gives its own cluster up, which is the other one if
//! that is alone, else this one.
//! Not here: what comes after it was given up: the directory is emptied (`identity`), and the node joins (`join`).
//! Rules: only a node that is alone and holds nothing is given up, and it looks at that when it serves no more; what
//! makes it so is one file (`intention`). Who asks stays what it is meanwhile, so the one that joins finds a cluster.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use korum_protocol::id::NodeId;
use korum_protocol::peer::message::{
    ADDRESS_BYTES_MAX, CannotMeet, ControlReply, ControlRequest, Purpose, Rejection, SEEDS_MAX,
};
use rand::RngExt;
use tokio::time::sleep;

use super::Standing;
use super::intention::Intention;
use super::join::{exchange, peer_port};
use super::shared::{Shared, lock, peer_address};
use crate::env::random;
use crate::net::peer::{DialError, dial};

/// How long what passes by itself is tried again: a node that begins anew is back in less.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two attempts, up to twice as long, so that two nodes that ask each other do not stay in step.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest time for a node to answer a dial.
const DIAL: Duration = Duration::from_secs(1);
/// Longest time for a node to give itself up: it dials back, looks at its keys and writes a file.
const GIVE_UP: Duration = Duration::from_secs(3);
/// Time for the answer to leave before the node that gave it begins anew. An answer that is lost does no harm: who
/// asks again finds the node joining.
const FAREWELL: Duration = Duration::from_millis(100);

/// Why two nodes do not meet. The texts say what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MeetError {
    /// Asking again does not help.
    #[error("{0}")]
    Refused(String),
    /// Asking again may help.
    #[error("{0}; ask again")]
    Passing(String),
}

/// The one `CLUSTER MEET`, or re-forming of a quorum, at a time.
pub(super) struct Turn(Arc<Shared>);

impl Turn {
    pub fn take(shared: &Arc<Shared>) -> Option<Self> {
        let is_taken = shared.meeting.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| Self(Arc::clone(shared)))
    }

    pub fn is_taken(shared: &Shared) -> bool {
        shared.meeting.load(Ordering::Acquire)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.meeting.store(false, Ordering::Release);
    }
}

/// Brings this node and the one at `address` into one cluster: returns when one of the two has begun to join, or both
/// are in the same already. `address` is of a peer port if `is_peer_port`, else of any port.
pub(super) async fn meet(shared: Arc<Shared>, address: String, is_peer_port: bool) -> Result<(), MeetError> {
    let end = shared.clock.now() + PATIENCE;
    loop {
        let attempt = match Turn::take(&shared) {
            Some(turn) => attempt(&shared, turn, &address, is_peer_port).await,
            None => Err(MeetError::Passing("another CLUSTER MEET is under way at this node".into())),
        };
        match attempt {
            Err(MeetError::Passing(_)) if shared.clock.now() < end => {}
            other => return other,
        }
        sleep(PAUSE.mul_f64(random::random().random_range(1.0..2.0))).await;
    }
}

async fn attempt(
    shared: &Arc<Shared>,
    turn: Turn,
    address: &str,
    is_peer_port: bool,
) -> Result<(), MeetError> {
    let unreachable = |why: &dyn Display| {
        MeetError::Passing(format!(
            "cannot reach a Korum node at {address}: {why}; give the address of its client or peer port"
        ))
    };
    let peer = if is_peer_port { Ok(address.to_owned()) } else { peer_port(address).await };
    let peer = peer.map_err(|why| unreachable(&why))?;
    let dialed = dial(&shared.local.as_stranger(), &peer, None, Purpose::Control, DIAL).await;
    let mut connection = match dialed {
        Ok(connection) => connection,
        // This node itself.
        Err(DialError::Rejected(Rejection::SameNode)) => return Ok(()),
        Err(DialError::Rejected(Rejection::NotInCluster)) => {
            return Err(MeetError::Passing(format!("the node at {address} is about to join a cluster")));
        }
        Err(error @ (DialError::Unauthorized | DialError::Rejected(Rejection::Secret))) => {
            return Err(MeetError::Refused(format!("the node at {address} refuses: {error}")));
        }
        Err(error) => return Err(unreachable(&error)),
    };
    if connection.peer.cluster_id == shared.local.cluster_id() {
        return Ok(());
    }
    let request = ControlRequest::Meet { seeds: seeds(shared) };
    let reply = exchange(&mut connection, &request, GIVE_UP).await.map_err(|why| unreachable(&why))?;
    match reply {
        ControlReply::Noted => Ok(()),
        ControlReply::CannotMeet(CannotMeet::NotAlone) if is_alone(shared) => {
            give_up(turn, vec![peer]).await.map_err(|why| explain(&why, "this node", "another node"))
        }
        ControlReply::CannotMeet(CannotMeet::NotAlone) => Err(MeetError::Refused(format!(
            "this node and the one at {address} belong to clusters of several nodes, and such clusters do not \
             merge: drain the nodes of one of them (KORUM DRAIN) and start them with --join and empty data directories"
        ))),
        ControlReply::CannotMeet(why) => Err(explain(&why, &format!("the node at {address}"), "this node")),
        other => Err(MeetError::Refused(format!("an answer that does not belong there: {other:?}"))),
    }
}

/// What an operator reads when `who` does not give itself up to join `other`.
fn explain(why: &CannotMeet, who: &str, other: &str) -> MeetError {
    match why {
        CannotMeet::NotAlone => {
            MeetError::Passing(format!("{who} has just become a member of a cluster of several nodes"))
        }
        CannotMeet::HasKeys => MeetError::Refused(format!(
            "{who} holds keys, which it would lose by joining: FLUSHALL there first, or, if {other} is alone and \
             empty, send CLUSTER MEET to {who} with the address of {other}"
        )),
        CannotMeet::Busy => {
            MeetError::Passing(format!("{who} starts, or is about to join or to take in another node"))
        }
        CannotMeet::Unreachable { address, why } => MeetError::Refused(format!(
            "{who} cannot reach {other} at its peer address {address} ({why}): start {other} with --announce-host \
             and open its peer port"
        )),
        CannotMeet::NotSaved(error) => {
            MeetError::Refused(format!("{who} cannot write to its data directory: {error}"))
        }
    }
}

/// Where a node that joins finds this cluster: here first, else at other members.
fn seeds(shared: &Shared) -> Vec<String> {
    let view = shared.view();
    let nodes = view.iter().flat_map(|view| &view.map.nodes);
    let others = nodes.filter(|(node, record)| **node != shared.me() && record.is_up());
    let others = others.map(|(_, record)| peer_address(&record.addresses));
    std::iter::once(shared.local.address.clone()).chain(others).take(SEEDS_MAX).collect()
}

fn is_alone(shared: &Shared) -> bool {
    shared.view().is_some_and(|view| view.map.nodes.len() == 1 && view.map.nodes.contains_key(&shared.me()))
}

/// Answers a node that wants this one to join its cluster.
pub(super) async fn asked(shared: &Arc<Shared>, from: NodeId, seeds: Vec<String>) -> ControlReply {
    let is_valid = |seed: &String| seed.len() <= ADDRESS_BYTES_MAX && !seed.contains(['\r', '\n']);
    if seeds.is_empty() || seeds.len() > SEEDS_MAX || !seeds.iter().all(is_valid) {
        return ControlReply::CannotMeet(CannotMeet::Unreachable {
            address: String::new(),
            why: "the addresses are not valid".into(),
        });
    }
    // A task of its own, because the handler is dropped when the connection ends.
    let work = tokio::spawn(give_up_to(Arc::clone(shared), from, seeds));
    match work.await.unwrap_or(Err(CannotMeet::Busy)) {
        Ok(()) => ControlReply::Noted,
        Err(why) => ControlReply::CannotMeet(why),
    }
}

async fn give_up_to(shared: Arc<Shared>, from: NodeId, seeds: Vec<String>) -> Result<(), CannotMeet> {
    // While this node asks another one, that one relies on it.
    let turn = Turn::take(&shared).ok_or(CannotMeet::Busy)?;
    if !is_alone(&shared) {
        return Err(CannotMeet::NotAlone);
    }
    if holds_keys(&shared)? {
        return Err(CannotMeet::HasKeys);
    }
    let dialed = dial(&shared.local.as_stranger(), &seeds[0], Some(from), Purpose::Control, DIAL).await;
    if let Err(error) = dialed {
        return Err(CannotMeet::Unreachable { address: seeds[0].clone(), why: error.to_string() });
    }
    give_up(turn, seeds).await
}

fn holds_keys(shared: &Shared) -> Result<bool, CannotMeet> {
    shared.holds_keys.get().map(|holds_keys| holds_keys()).ok_or(CannotMeet::Busy)
}

/// Gives this node's own cluster up; when this returns `Ok`, the directory says so, and the node is about to begin anew.
async fn give_up(turn: Turn, seeds: Vec<String>) -> Result<(), CannotMeet> {
    let shared = Arc::clone(&turn.0);
    {
        let mut leading = lock(&shared.leading);
        if !is_alone(&shared) {
            return Err(CannotMeet::NotAlone);
        }
        // A learner has begun to take this cluster's log.
        let has_learners = !shared.consensus.voters().learners.is_empty();
        if leading.given_up || has_learners || !leading.joining.is_empty() {
            return Err(CannotMeet::Busy);
        }
        leading.given_up = true;
    }
    // From here on nobody joins, and no command is answered: whatever was answered before can be seen in the store.
    shared.lease.give_back();
    let result = write_down(&shared, seeds).await;
    if result.is_err() {
        lock(&shared.leading).given_up = false;
        shared.lease.take_up(shared.clock.now());
        shared.beat.notify_one();
        return result;
    }
    tracing::info!("this node gives up its own cluster and joins another");
    tokio::spawn(async move {
        sleep(FAREWELL).await;
        turn.0.standing.send_replace(Standing::GivenUp);
    });
    Ok(())
}

async fn write_down(shared: &Arc<Shared>, seeds: Vec<String>) -> Result<(), CannotMeet> {
    if holds_keys(shared)? {
        return Err(CannotMeet::HasKeys);
    }
    let (dir, intention) = (shared.dir.clone(), Intention { given_up: shared.me(), seeds });
    let written = tokio::task::spawn_blocking(move || intention.write(&dir)).await;
    let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    written.map_err(|error| CannotMeet::NotSaved(error.to_string()))
}
