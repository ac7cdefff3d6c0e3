//! Small helpers for tests of the map: a cluster in a few words.
#![allow(dead_code, missing_docs)]

use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{Addresses, LossPolicy, MapChange, Move, PartitionId, Refusal, Registration, View};

pub fn registration(node: u64, incarnation: u64) -> Registration {
    Registration {
        addresses: Addresses {
            host: "node.example".to_owned(),
            client: 6000 + node as u16,
            cluster: 16000 + node as u16,
            peer: 26000 + node as u16,
        },
        zone: String::new(),
        weight: 1,
        incarnation: Incarnation(incarnation),
    }
}

pub fn create(partitions: u32, replication: u8, placement_seed: u64) -> MapChange {
    MapChange::Create {
        cluster_id: ClusterId(1),
        partitions,
        replication,
        placement_seed,
        loss_policy: LossPolicy::Empty,
        node: NodeId(1),
        registration: registration(1, 1),
    }
}

pub fn join(node: u64) -> MapChange {
    MapChange::Join { node: NodeId(node), registration: registration(node, 1) }
}

pub fn admit(node: u64) -> MapChange {
    MapChange::Admit { node: NodeId(node), incarnation: Incarnation(1) }
}

pub fn mark_down(view: &View, node: NodeId) -> MapChange {
    MapChange::MarkDown { node, incarnation: view.map.nodes[&node].incarnation }
}

pub fn step(view: &View, partition: PartitionId, node: NodeId) -> Move {
    Move {
        partition,
        era: view.row(partition).era,
        node,
        incarnation: view.map.nodes.get(&node).map_or(Incarnation(0), |node| node.incarnation),
    }
}

/// The cutover of everything that is missing or not in order; `None` when all is settled.
pub fn cutover(view: &View, wanted: impl Fn(PartitionId) -> bool) -> Option<MapChange> {
    let mut moves = Vec::new();
    for partition in (0..view.map.partitions as PartitionId).filter(|&partition| wanted(partition)) {
        let row = view.row(partition);
        let up = row.replica_set.iter().filter(|id| view.map.nodes[id].is_up());
        let missing: Vec<_> = up.filter(|id| !row.holders.contains(id)).collect();
        if row.primary.is_none() {
            continue;
        }
        moves.extend(missing.iter().map(|&&id| step(view, partition, id)));
        let present = row.replica_set.iter().find(|id| row.holders.contains(id));
        if let (true, Some(&id), false) = (missing.is_empty(), present, view.is_settled(partition)) {
            moves.push(step(view, partition, id));
        }
    }
    let membership_epoch = view.map.membership_epoch;
    (!moves.is_empty()).then_some(MapChange::Cutover { membership_epoch, moves })
}

/// Applies a change that must apply.
pub fn apply(view: &View, change: &MapChange) -> View {
    view.apply(change).unwrap_or_else(|refusal| panic!("{change:?}: {refusal}"))
}

/// Copies everything that is missing.
pub fn settle(view: View) -> View {
    match cutover(&view, |_| true) {
        Some(change) => apply(&view, &change),
        None => view,
    }
}

/// A cluster of nodes 1..=count, all of them members, all copies made.
pub fn cluster(count: u64, partitions: u32, replication: u8, seed: u64) -> View {
    let mut view = View::create(&create(partitions, replication, seed)).expect("valid numbers");
    for node in 2..=count {
        view = apply(&view, &join(node));
        view = apply(&view, &admit(node));
        view = settle(view);
    }
    view
}

pub fn is_outdated<T>(outcome: &Result<T, Refusal>) -> bool {
    matches!(outcome, Err(Refusal::Outdated { .. }))
}

pub fn is_forbidden<T>(outcome: &Result<T, Refusal>) -> bool {
    matches!(outcome, Err(Refusal::Forbidden(_)))
}

pub fn next_epoch(view: &View) -> Epoch {
    view.map.epoch.next()
}
