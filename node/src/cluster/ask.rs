//! Requests to the leader, wherever it is.
//!
//! For: finding the leader, and proposing from any node.
//! Not here: answering (`control`), when to propose what.
//! Rule: an outcome that is unknown is said to be unknown.

use std::sync::atomic::Ordering;
use std::time::Duration;

use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::{MapChange, Refusal};
use korum_protocol::peer::message::{ControlReply, ControlRequest, LeaderHint, Purpose};
use korum_protocol::peer::wire::{decode, encode};
use tokio::time::sleep;

use super::Standing;
use super::control;
use super::heartbeat::stand;
use super::join::peer_port;
use super::shared::{Hint, Shared, lock};
use crate::net::peer::{DialError, RpcError};
use korum_raft::ProposeError;

/// Pause between attempts while nobody leads: a small part of an election.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest time for one attempt at a proposal; Raft's own limit is below it.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Rounds, without a leader, in which members answered that they belong to another cluster, after which this node
/// believes it: several times what re-forming a quorum takes from the first survivor to the last.
const REFUSED_MAX: u32 = 10;
/// Longest time to ask one node who leads.
const WHO_LEADS: Duration = Duration::from_millis(250);

/// Why the leader did not answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nothing was done.
    NotDone,
    /// The request may have been carried out.
    Unknown(String),
}

/// One attempt to ask whoever leads.
pub(super) async fn ask_leader(
    shared: &Shared,
    request: ControlRequest,
    limit: Duration,
) -> Result<ControlReply, NoAnswer> {
    let hinted = lock(&shared.hint).clone();
    let known = *shared.consensus.leader().borrow();
    let target = match (hinted, known) {
        // A node that was just asked knows better than this one, until this one hears of another leader.
        (Some(Hint { leader, address, instead_of }), known)
            if known.is_none() || known == Some(leader) || known == instead_of =>
        {
            Some((leader, address))
        }
        (_, Some(leader)) => {
            *lock(&shared.hint) = None;
            Some((leader, shared.rpc.address_of(leader).unwrap_or_default()))
        }
        (_, None) => None,
    };
    let Some((leader, address)) = target else { return Err(NoAnswer::NotDone) };
    let reply = if leader == shared.me() {
        control::answer(shared, leader, request).await
    } else {
        match exchange(shared, leader, &address, request, limit).await {
            Ok(reply) => reply,
            Err(error) => {
                *lock(&shared.hint) = None;
                return Err(if error.is_unknown() {
                    NoAnswer::Unknown(error.to_string())
                } else {
                    NoAnswer::NotDone
                });
            }
        }
    };
    let hint = match &reply {
        ControlReply::NotLeader(hint)
        | ControlReply::Heartbeat(korum_protocol::peer::message::HeartbeatReply::NotLeader(hint)) => hint,
        _ => return Ok(reply),
    };
    follow(shared, leader, hint);
    Ok(reply)
}

fn follow(shared: &Shared, asked: NodeId, hint: &LeaderHint) {
    let next = match (hint.leader, &hint.address) {
        (Some(leader), Some(address)) if leader != asked => {
            Some(Hint { leader, address: address.clone(), instead_of: None })
        }
        _ => None,
    };
    *lock(&shared.hint) = next;
}

/// One question to one node.
pub(super) async fn exchange(
    shared: &Shared,
    target: NodeId,
    address: &str,
    request: ControlRequest,
    limit: Duration,
) -> Result<ControlReply, RpcError> {
    let reply = shared.rpc.call(target, address, Purpose::Control, encode(&request), limit).await?;
    decode(&reply).map_err(|error| RpcError::Broken(crate::net::peer::PeerError::Protocol(error.to_string())))
}

/// Asks the nodes of the map, and the seeds, who leads, until one is found that says so of itself. Whom others name may
/// have been replaced, and would keep this node away from the one that leads.
pub(super) async fn find_leader(shared: &Shared) {
    let instead_of = *shared.consensus.leader().borrow();
    let mut is_refused = false;
    let nodes: Vec<NodeId> =
        shared.view().map(|view| view.map.nodes.keys().copied().collect()).unwrap_or_default();
    let others = nodes.into_iter().filter(|node| *node != shared.me());
    for (node, address) in others.filter_map(|node| Some((node, shared.rpc.address_of(node)?))) {
        match who_leads(shared, node, address).await {
            Asked::Named(leader, address) => {
                let says_so = async || match who_leads(shared, leader, address.clone()).await {
                    Asked::Named(named, _) => named == leader,
                    Asked::Nothing | Asked::OtherCluster => false,
                };
                if leader == node || says_so().await {
                    shared.refused.store(0, Ordering::Relaxed);
                    return *lock(&shared.hint) = Some(Hint { leader, address, instead_of });
                }
            }
            Asked::OtherCluster => is_refused = true,
            Asked::Nothing => {}
        }
        if *shared.consensus.leader().borrow() != instead_of {
            return;
        }
    }
    // A member of this cluster, under its own id, says that it is of another one. A node that follows a re-forming of
    // which its map does not know yet is told so too, by those who have not heard of it.
    let is_settled =
        shared.view().is_some_and(|view| shared.local.cluster_id() == Some(view.map.formation()));
    if !is_settled {
        shared.refused.store(0, Ordering::Relaxed);
    } else if is_refused && shared.refused.fetch_add(1, Ordering::Relaxed) + 1 >= REFUSED_MAX {
        shared.lease.revoke(shared.clock.now());
        stand(shared, Standing::LeftBehind);
    }
    // Seeds are asked by address: whoever answers tells its id, and both sides learn the other's new address.
    for seed in &shared.seeds {
        let Ok(seed) = peer_port(seed).await else { continue };
        if let Ok(connection) =
            crate::net::peer::dial(&shared.local, &seed, None, Purpose::Control, WHO_LEADS).await
        {
            shared.rpc.learn(connection.peer.node, &seed);
        }
    }
}

/// What a node says when it is asked who leads.
enum Asked {
    /// This one, which is reached there.
    Named(NodeId, String),
    /// Nothing that helps.
    Nothing,
    /// It belongs to another cluster.
    OtherCluster,
}

/// Whom a node names as the leader. It names itself only while a quorum confirms it.
async fn who_leads(shared: &Shared, node: NodeId, address: String) -> Asked {
    let hint = match exchange(shared, node, &address, ControlRequest::WhoLeads, WHO_LEADS).await {
        Ok(ControlReply::NotLeader(hint)) => hint,
        Err(RpcError::Dial { source: DialError::WrongCluster, .. }) => return Asked::OtherCluster,
        _ => return Asked::Nothing,
    };
    let Some(leader) = hint.leader.filter(|leader| *leader != shared.me()) else { return Asked::Nothing };
    // A leader does not tell its own address: it is the one that was asked.
    match hint.address.or((leader == node).then_some(address)) {
        Some(address) => Asked::Named(leader, address),
        None => Asked::Nothing,
    }
}

/// Proposes a change to whoever leads.
pub(super) async fn propose(
    shared: &Shared,
    change: MapChange,
    deadline: Duration,
) -> Result<Epoch, ProposeError> {
    let end = shared.clock.now() + deadline;
    // An earlier attempt whose outcome is unknown. Changes are conditional, so that trying again is safe.
    let mut unknown: Option<String> = None;
    loop {
        let left = Duration::from_nanos(end.0.saturating_sub(shared.clock.now().0));
        if left.is_zero() {
            return Err(match unknown {
                Some(reason) => ProposeError::Unknown(reason),
                None => ProposeError::NotLeader { leader: *shared.consensus.leader().borrow() },
            });
        }
        let request = ControlRequest::Propose(change.clone());
        match ask_leader(shared, request, left.min(ATTEMPT)).await {
            Ok(ControlReply::Proposed { epoch }) => return Ok(epoch),
            Ok(ControlReply::Refused(refusal)) => {
                return Err(match (unknown, &refusal) {
                    (Some(reason), Refusal::Outdated { reason: now, .. }) => {
                        ProposeError::Unknown(format!("{reason}; a second attempt was answered: {now}"))
                    }
                    _ => ProposeError::Refused(refusal),
                });
            }
            Ok(ControlReply::Unknown(reason)) | Err(NoAnswer::Unknown(reason)) => unknown = Some(reason),
            Ok(ControlReply::NotLeader(_)) if lock(&shared.hint).is_some() => continue,
            Ok(_) | Err(NoAnswer::NotDone) => {}
        }
        sleep(PAUSE.min(left)).await;
    }
}
