//! I6: a change of membership moves only what the ranking says must move.
//!
//! Two looks: at the replica sets, which each change must leave as they are but for the node that it is about; and at
//! the streams, which go to members of the replica set and to nobody else.

use std::collections::BTreeSet;

use korum_protocol::id::NodeId;
use korum_protocol::map::{MapChange, PartitionId, View};
use korum_raft::simulated::Applied;

use super::agreed::name;
use crate::world::World;

/// One node comes or goes: it takes one place, or gives its place to one other. Nobody else's place changes.
pub fn check(step: &Applied) -> Result<(), String> {
    let Some(before) = &step.before else { return Ok(()) };
    let after = &step.after;
    // These say themselves that more may move.
    if matches!(step.change, MapChange::Compact | MapChange::SetWeight { .. }) {
        return Ok(());
    }
    let (old, new) = (eligible(before), eligible(after));
    let changed: Vec<NodeId> = old.symmetric_difference(&new).copied().collect();
    if changed.len() > 1 {
        return Err(format!("I6: {} changed the places of {changed:?}", name(&step.change)));
    }
    for partition in 0..after.map.partitions as PartitionId {
        let (was, is) = (&before.row(partition).replica_set, &after.row(partition).replica_set);
        let kept = was.iter().filter(|node| is.contains(node));
        let in_order = kept.eq(is.iter().filter(|node| was.contains(node)));
        let came: Vec<NodeId> = is.iter().filter(|node| !was.contains(node)).copied().collect();
        let went: Vec<NodeId> = was.iter().filter(|node| !is.contains(node)).copied().collect();
        let may = match changed.first() {
            _ if before.map.replication != after.map.replication => came.is_empty() || went.is_empty(),
            None => came.is_empty() && went.is_empty(),
            Some(node) if new.contains(node) => {
                came.iter().all(|other| other == node) && went.len() <= came.len()
            }
            Some(node) => went.iter().all(|other| other == node) && came.len() <= went.len(),
        };
        if !may || !in_order {
            return Err(format!(
                "I6: {} changed the replica set of partition {partition} from {was:?} to {is:?}",
                name(&step.change)
            ));
        }
    }
    Ok(())
}

/// Who may be in a replica set.
fn eligible(view: &View) -> BTreeSet<NodeId> {
    view.map.nodes.iter().filter(|(_, record)| record.is_eligible()).map(|(&node, _)| node).collect()
}

/// A primary knows no other copies than those of holders and of the replica set.
pub fn check_streams(world: &World) -> Result<(), String> {
    for (_, member, node) in world.nodes() {
        let view = node.view();
        for partition in 0..node.store().len() as PartitionId {
            let row = view.row(partition);
            let locked = node.store().lock(partition);
            let Some(primary) = locked.as_primary().filter(|primary| primary.era == row.era) else {
                continue;
            };
            let is_wanted = |node: &NodeId| row.replica_set.contains(node) || row.holders.contains(node);
            if let Some(copy) = primary.copies.iter().find(|copy| !is_wanted(&copy.node)) {
                return Err(format!(
                    "I6: {} sends partition {partition} to {:?}, which is not to have it",
                    member.host.name, copy.node
                ));
            }
        }
    }
    Ok(())
}
