//! Changes of who is in the cluster, who is there, and who owns which index.
//!
//! A node keeps its indices from Admit to Forget, whether it is up, down, excluded or leaving:
//! so the ranking order of what it holds stays as it is.

use super::{Edit, check_weight, forbidden, outdated, record};
use crate::id::{Incarnation, NodeId};
use crate::map::{ClusterMap, Liveness, Membership, NodeRecord, Refusal, Registration, View};
use crate::placement::indices;

pub(super) fn join(view: &View, node: NodeId, registration: &Registration) -> Result<Edit, Refusal> {
    if view.map.nodes.contains_key(&node) {
        return Err(forbidden(format!("node {node} is known already; a known node registers")));
    }
    check_weight(registration.weight)?;
    let mut map = view.map.clone();
    map.nodes.insert(node, record(registration, Membership::Joining));
    let mut edit = Edit::new(map, false);
    for former in replace_at_address(&mut edit, node) {
        // Its identity is lost with its disk, so it can never come back: its place is free at once.
        let former = node_mut(&mut edit.map, former);
        former.liveness = Liveness::Down { excluded: true };
        if former.membership == Membership::Member {
            former.membership = Membership::Leaving;
            edit.membership = true;
        }
    }
    Ok(edit)
}

pub(super) fn admit(view: &View, node: NodeId, incarnation: Incarnation) -> Result<Edit, Refusal> {
    let known = known(&view.map, node)?;
    if known.membership != Membership::Joining || !known.is_up() || known.incarnation != incarnation {
        return Err(outdated(format!("node {node} is not joining with incarnation {incarnation}")));
    }
    let mut map = view.map.clone();
    indices::add(&mut map.indices, node, usize::from(known.weight))
        .map_err(|full| forbidden(full.to_string()))?;
    node_mut(&mut map, node).membership = Membership::Member;
    Ok(Edit::new(map, true))
}

pub(super) fn register(view: &View, node: NodeId, registration: &Registration) -> Result<Edit, Refusal> {
    let known = known(&view.map, node)?;
    if registration.incarnation <= known.incarnation {
        let newest = known.incarnation;
        return Err(outdated(format!("node {node} has registered incarnation {newest} already")));
    }
    let (weight, membership) = (known.weight, known.membership);
    let mut map = view.map.clone();
    map.nodes.insert(node, NodeRecord { weight, ..record(registration, membership) });
    let mut edit = Edit::new(map, true);
    edit.gone.push(node);
    replace_at_address(&mut edit, node);
    Ok(edit)
}

pub(super) fn mark_down(view: &View, node: NodeId, incarnation: Incarnation) -> Result<Edit, Refusal> {
    let known = known(&view.map, node)?;
    if !known.is_up() || known.incarnation != incarnation {
        return Err(outdated(format!("node {node} is not up with incarnation {incarnation}")));
    }
    let mut edit = Edit::new(view.map.clone(), true);
    down(&mut edit, node);
    Ok(edit)
}

pub(super) fn exclude(view: &View, node: NodeId, incarnation: Incarnation) -> Result<Edit, Refusal> {
    let known = known(&view.map, node)?;
    if known.liveness != (Liveness::Down { excluded: false }) || known.incarnation != incarnation {
        return Err(outdated(format!("node {node} is not newly down with incarnation {incarnation}")));
    }
    let mut map = view.map.clone();
    node_mut(&mut map, node).liveness = Liveness::Down { excluded: true };
    Ok(Edit::new(map, true))
}

pub(super) fn drain(view: &View, node: NodeId) -> Result<Edit, Refusal> {
    match known(&view.map, node)?.membership {
        Membership::Member => {}
        Membership::Leaving => return Err(outdated(format!("node {node} is leaving already"))),
        Membership::Joining => {
            return Err(forbidden(format!("node {node} is not a member yet; forget it instead")));
        }
    }
    let mut others = view.map.nodes.iter().filter(|(other, _)| **other != node);
    if !others.any(|(_, other)| other.is_up() && other.is_eligible()) {
        return Err(forbidden(format!("node {node} is the last that can hold data; add another first")));
    }
    let mut map = view.map.clone();
    node_mut(&mut map, node).membership = Membership::Leaving;
    Ok(Edit::new(map, true))
}

pub(super) fn forget(view: &View, node: NodeId) -> Result<Edit, Refusal> {
    known(&view.map, node)?;
    let mut owners = view.map.indices.iter().flatten();
    if view.map.nodes.len() == 1 || owners.all(|owner| *owner == node) {
        return Err(forbidden(format!("node {node} is the last member; it cannot be forgotten")));
    }
    let held = view.table.rows.iter().filter(|row| row.holders.contains(&node)).count();
    if held > 0 {
        return Err(forbidden(format!("node {node} still holds {held} partitions; drain it first")));
    }
    let mut map = view.map.clone();
    map.nodes.remove(&node);
    indices::remove(&mut map.indices, node);
    Ok(Edit::new(map, true))
}

pub(super) fn set_weight(view: &View, node: NodeId, weight: u8) -> Result<Edit, Refusal> {
    check_weight(weight)?;
    let known = known(&view.map, node)?;
    if known.weight == weight {
        return Err(outdated(format!("node {node} has weight {weight} already")));
    }
    let owns_indices = known.membership != Membership::Joining;
    let mut map = view.map.clone();
    node_mut(&mut map, node).weight = weight;
    if owns_indices {
        indices::reweight(&mut map.indices, node, usize::from(weight))
            .map_err(|full| forbidden(full.to_string()))?;
    }
    Ok(Edit::new(map, true))
}

pub(super) fn compact(view: &View) -> Result<Edit, Refusal> {
    let mut map = view.map.clone();
    if !indices::compact(&mut map.indices) {
        return Err(outdated("there is no hole in the index space"));
    }
    Ok(Edit::new(map, true))
}

/// A node that shows up at the peer address of another one proves that the other's process is gone
/// (an empty disk gives a new id, and two processes cannot listen on one port).
fn replace_at_address(edit: &mut Edit, newcomer: NodeId) -> Vec<NodeId> {
    let here = edit.map.nodes[&newcomer].addresses.clone();
    let is_here = |other: &NodeRecord| {
        here.peer != 0 && other.addresses.host == here.host && other.addresses.peer == here.peer
    };
    let found = edit.map.nodes.iter().filter(|(id, other)| **id != newcomer && is_here(other));
    let found: Vec<NodeId> = found.map(|(id, _)| *id).collect();
    for &former in &found {
        if edit.map.nodes[&former].is_up() {
            edit.membership = true;
            down(edit, former);
        }
    }
    found
}

fn down(edit: &mut Edit, node: NodeId) {
    node_mut(&mut edit.map, node).liveness = Liveness::Down { excluded: false };
    edit.gone.push(node);
}

fn known(map: &ClusterMap, node: NodeId) -> Result<&NodeRecord, Refusal> {
    map.nodes.get(&node).ok_or_else(|| outdated(format!("node {node} is not in the cluster")))
}

fn node_mut(map: &mut ClusterMap, node: NodeId) -> &mut NodeRecord {
    map.nodes.get_mut(&node).expect("the caller has looked the node up")
}
