//! Everything heals once the faults have stopped.
//!
//! For: what "healthy" means, in full, and why a world is not (yet).
//! Not here: how long it may take (`scenario`).

use std::collections::BTreeSet;

use korum_node::cluster::Standing;
use korum_protocol::map::PartitionId;

use crate::invariants::same_bytes_everywhere;
use crate::world::World;

/// Every node runs, serves, and has the same map; one leads; every partition has its full replica set, and nothing
/// else holds it.
///
/// # Errors
/// What is missing.
pub fn is_healthy(world: &World) -> Result<(), String> {
    let mut epochs = BTreeSet::new();
    let mut leaders = BTreeSet::new();
    let mut known = BTreeSet::new();
    for member in &world.members {
        let name = &member.host.name;
        if member.leaves && !member.host.is_running() {
            continue;
        }
        if member.host.is_stopped() {
            return Err(format!("{name} is stopped"));
        }
        let Some(node) = member.node() else { return Err(format!("{name} is not ready")) };
        let view = node.view();
        epochs.insert(view.map.epoch);
        leaders.insert(node.cluster().leader());
        known.insert(node.id());
        if *node.cluster().standing().borrow() != Standing::Serving {
            return Err(format!("{name} does not stand as serving"));
        }
        if member.look(world.now_us, |node| node.is_leased()) != Some(true) {
            return Err(format!("{name} has no lease"));
        }
        if !view.map.holders.is_empty() {
            return Err(format!("{name} knows {} exceptions in the map", view.map.holders.len()));
        }
    }
    if epochs.len() != 1 || leaders.len() != 1 || leaders.contains(&None) {
        return Err(format!("epochs {epochs:?}, leaders {leaders:?}"));
    }
    let Some((_, _, node)) = world.nodes().next() else { return Err("nobody runs".to_owned()) };
    let view = node.view();
    for (id, record) in &view.map.nodes {
        if !record.is_up() || !record.is_eligible() {
            return Err(format!("node {id} is {:?}, {:?}", record.liveness, record.membership));
        }
        if !known.contains(id) {
            return Err(format!("node {id} is in the map and nowhere else"));
        }
    }
    if view.map.nodes.len() != known.len() {
        return Err(format!("{} nodes in the map, {} run", view.map.nodes.len(), known.len()));
    }
    let voters = node.cluster().consensus().voters();
    if let Some(voter) = voters.voters.iter().find(|voter| !known.contains(voter)) {
        return Err(format!("{voter} votes and is not there"));
    }
    let copies = usize::from(view.map.replication).min(known.len());
    for partition in 0..view.map.partitions as PartitionId {
        let row = view.row(partition);
        if row.holders != row.replica_set || row.holders.len() != copies {
            return Err(format!("partition {partition} is held by {:?}", row.holders));
        }
    }
    Ok(())
}

/// Healthy, and every copy has the same bytes.
///
/// # Errors
/// What is missing.
pub fn is_whole(world: &World) -> Result<(), String> {
    is_healthy(world)?;
    same_bytes_everywhere(world)
}
