//! Answers to control requests.
//!
//! For: the leader's side of heartbeats, joins and proposals, and every node's side of "who leads?".
//! Not here: the leader's own initiative (`coordinator`), judgement (`liveness`, `lease`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{ClusterMap, Liveness, MapChange, Refusal, Registration};
use korum_protocol::peer::message::{
    ControlReply, ControlRequest, EVIDENCE_MAX, Evidence, Heartbeat, HeartbeatReply, LeaderHint, Purpose,
};
use korum_protocol::peer::wire::{decode, encode};

use super::shared::{Shared, lock, peer_address};
use super::{canvass, meet, reform};
use crate::net::peer::{PeerEvent, Trouble};
use korum_raft::ProposeError;

/// Longest time to reach a node at the address that it registers.
const REACH: Duration = Duration::from_secs(1);

/// Decodes, answers, encodes.
pub(super) async fn handle(shared: &Arc<Shared>, from: NodeId, request: Bytes) -> Bytes {
    let reply = match decode::<ControlRequest>(&request) {
        Ok(ControlRequest::Meet { seeds }) => meet::asked(shared, from, seeds).await,
        Ok(ControlRequest::ReformFollow { formation }) => reform::follow(shared, from, formation).await,
        Ok(request) => answer(shared, from, request).await,
        Err(error) => ControlReply::Refused(Refusal::Forbidden(error.to_string())),
    };
    encode(&reply)
}

/// Answers a request of `from`, which may be this node itself.
pub(super) async fn answer(shared: &Shared, from: NodeId, request: ControlRequest) -> ControlReply {
    match request {
        ControlRequest::WhoLeads => ControlReply::NotLeader(who_leads(shared)),
        ControlRequest::Heartbeat(beat) if beat.node != from => not_yours(),
        ControlRequest::Heartbeat(beat) => ControlReply::Heartbeat(heartbeat(shared, &beat)),
        ControlRequest::Evidence(evidence) => {
            take_evidence(shared, &evidence);
            ControlReply::Noted
        }
        ControlRequest::Join { node, .. } | ControlRequest::Leave { node, .. } if node != from => not_yours(),
        ControlRequest::Join { node, registration } => join(shared, node, registration).await,
        ControlRequest::Leave { node, incarnation } => leave(shared, node, incarnation).await,
        ControlRequest::Propose(change) => propose(shared, from, change).await,
        ControlRequest::ReformAsk => reform::standing(shared),
        ControlRequest::Canvass { leader, incarnation } => {
            ControlReply::Ballot(canvass::answer(shared, leader, incarnation))
        }
        ControlRequest::Meet { .. } | ControlRequest::ReformFollow { .. } => not_yours(),
    }
}

/// Who leads. A leader without a quorum's word may have been replaced, and does not name itself.
fn who_leads(shared: &Shared) -> LeaderHint {
    let is_confirmed = || lock(&shared.leading).grants.is_confirmed(&shared.timing, shared.clock.now());
    if shared.leads() && !is_confirmed() {
        return LeaderHint { leader: None, address: None };
    }
    shared.leader_hint()
}

fn not_yours() -> ControlReply {
    ControlReply::Refused(Refusal::Forbidden("a node speaks for itself only".into()))
}

fn heartbeat(shared: &Shared, beat: &Heartbeat) -> HeartbeatReply {
    if !shared.leads() {
        return HeartbeatReply::NotLeader(shared.leader_hint());
    }
    take_evidence(shared, &beat.evidence);
    let (now, term) = (shared.clock.now(), shared.consensus.term());
    let mut leading = lock(&shared.leading);
    // A leader without a quorum's word may be an old one with an old map: it tells nobody anything.
    let current = leading.grants.leading().is_some_and(|(known, _)| known == term);
    let Some(view) = shared.view().filter(|_| current && leading.grants.is_confirmed(&shared.timing, now))
    else {
        if current {
            leading.watch.heard(beat.node, beat.incarnation, beat.epoch, now);
        }
        return HeartbeatReply::NotConfirmed;
    };
    let Some(record) = view.map.nodes.get(&beat.node) else { return HeartbeatReply::Unknown };
    let known = record.incarnation;
    if beat.incarnation > known {
        return HeartbeatReply::NotRegistered;
    }
    if beat.incarnation < known || matches!(record.liveness, Liveness::Down { .. }) {
        return HeartbeatReply::MarkedDown { known };
    }
    leading.watch.heard(beat.node, beat.incarnation, beat.epoch, now);
    match leading.grants.grant(beat.node, beat.incarnation, &shared.timing, now) {
        Some(lease) => HeartbeatReply::Granted { lease_ms: lease.as_millis() as u32, epoch: view.map.epoch },
        None => HeartbeatReply::NotConfirmed,
    }
}

/// What peers saw makes this node look itself.
fn take_evidence(shared: &Shared, evidence: &[Evidence]) {
    for Evidence { node, incarnation, .. } in evidence.iter().take(EVIDENCE_MAX) {
        shared.report(PeerEvent { node: *node, incarnation: Some(*incarnation), trouble: Trouble::Refused });
    }
}

async fn join(shared: &Shared, node: NodeId, registration: Registration) -> ControlReply {
    let Some(view) = shared.view().filter(|_| shared.leads()) else { return not_leader(shared) };
    let cluster_id = view.map.formation();
    if let Some(known) = view.map.nodes.get(&node) {
        // A join whose answer was lost, or a node that stopped halfway through one.
        return match known.incarnation.cmp(&registration.incarnation) {
            std::cmp::Ordering::Less => match register(shared, node, registration).await {
                ControlReply::Proposed { epoch } => ControlReply::Joined { cluster_id, epoch },
                other => other,
            },
            _ => ControlReply::Joined { cluster_id, epoch: view.map.epoch },
        };
    }
    let address = peer_address(&registration.addresses);
    if let Some(refusal) = unreachable(shared, node, &address).await {
        return refusal;
    }
    {
        let mut leading = lock(&shared.leading);
        if leading.given_up {
            return ControlReply::Unknown("this node is about to join another cluster".into());
        }
        if !leading.joining.insert(node) {
            return ControlReply::Unknown("a join of this node is under way".into());
        }
    }
    let under_way = Joining { shared, node };
    let joined = async {
        shared.consensus.add_learner(node, address.clone()).await?;
        shared.consensus.propose(MapChange::Join { node, registration }).await
    };
    let result = joined.await;
    drop(under_way);
    shared.look.notify_one();
    match result {
        Ok(epoch) => ControlReply::Joined { cluster_id, epoch },
        Err(error) => failed(shared, error),
    }
}

/// A join that is under way, until it has ended or whoever asked has gone: its answer is dropped with the connection.
struct Joining<'a> {
    shared: &'a Shared,
    node: NodeId,
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        lock(&self.shared.leading).joining.remove(&self.node);
    }
}

/// A node must answer at the address that it registers: nobody could reach it otherwise, and a wrong one may be
/// another node's.
async fn unreachable(shared: &Shared, node: NodeId, address: &str) -> Option<ControlReply> {
    if node == shared.me() {
        return None;
    }
    let request = encode(&ControlRequest::WhoLeads);
    let error = shared.rpc.call(node, address, Purpose::Control, request, REACH).await.err()?;
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Some(ControlReply::Refused(Refusal::Forbidden(format!(
        "the leader cannot reach this node at its advertised peer address {address} ({error}{cause})"
    ))))
}

async fn propose(shared: &Shared, from: NodeId, change: MapChange) -> ControlReply {
    if !shared.leads() {
        return not_leader(shared);
    }
    match change {
        MapChange::Register { node, .. } if node != from => not_yours(),
        MapChange::Register { node, registration } => register(shared, node, registration).await,
        MapChange::MarkDown { .. }
        | MapChange::Exclude { .. }
        | MapChange::Admit { .. }
        | MapChange::Join { .. }
        | MapChange::Create { .. } => {
            ControlReply::Refused(Refusal::Forbidden("only the leader decides that".into()))
        }
        change => agree(shared, change).await,
    }
}

async fn register(shared: &Shared, node: NodeId, registration: Registration) -> ControlReply {
    let address = peer_address(&registration.addresses);
    let known = shared.view().and_then(|view| address_in(&view.map, node));
    if known.as_ref() != Some(&address)
        && let Some(refusal) = unreachable(shared, node, &address).await
    {
        return refusal;
    }
    shared.rpc.learn(node, &address);
    agree(shared, MapChange::Register { node, registration }).await
}

fn address_in(map: &ClusterMap, node: NodeId) -> Option<String> {
    map.nodes.get(&node).map(|record| peer_address(&record.addresses))
}

async fn leave(shared: &Shared, node: NodeId, incarnation: Incarnation) -> ControlReply {
    if !shared.leads() {
        return not_leader(shared);
    }
    {
        let mut leading = lock(&shared.leading);
        leading.grants.returned(node, incarnation);
        leading.watch.left(node, incarnation);
    }
    agree(shared, MapChange::MarkDown { node, incarnation }).await
}

async fn agree(shared: &Shared, change: MapChange) -> ControlReply {
    match shared.consensus.propose(change).await {
        Ok(epoch) => ControlReply::Proposed { epoch },
        Err(error) => failed(shared, error),
    }
}

fn failed(shared: &Shared, error: ProposeError) -> ControlReply {
    match error {
        ProposeError::Refused(refusal) => ControlReply::Refused(refusal),
        ProposeError::Unknown(reason) => ControlReply::Unknown(reason),
        _ => not_leader(shared),
    }
}

fn not_leader(shared: &Shared) -> ControlReply {
    ControlReply::NotLeader(shared.leader_hint())
}
