//! I7: holders lose a partition only after its replica set is complete, or the partition was declared lost.
//!
//! A node drops a copy when its map calls it a holder no more (`i8_copies`), so the maps are looked at.

use korum_protocol::id::NodeId;
use korum_protocol::map::{MapChange, PartitionId};
use korum_raft::simulated::Applied;

use super::agreed::name;

/// A holder that lives stays one until all members of the replica set are holders. One exception is the contract's: a
/// primary drops a copy that does not keep up.
pub fn check(step: &Applied) -> Result<(), String> {
    let Some(before) = &step.before else { return Ok(()) };
    let after = &step.after;
    let lives = |node: &NodeId| {
        let (was, is) = (&before.map.nodes.get(node), after.map.nodes.get(node));
        was.zip(is).is_some_and(|(was, is)| is.is_up() && is.incarnation == was.incarnation)
    };
    let mut lost = 0;
    for partition in 0..after.map.partitions as PartitionId {
        let (was, is) = (before.row(partition), after.row(partition));
        let is_complete =
            !is.replica_set.is_empty() && is.replica_set.iter().all(|node| is.holders.contains(node));
        let is_dropped = |node: NodeId| {
            matches!(&step.change, MapChange::DropHolders { drops }
                if drops.iter().any(|drop| drop.partition == partition && drop.node == node))
        };
        for &node in was.holders.iter().filter(|node| lives(node)) {
            if !is.holders.contains(&node) && !is_complete && !is_dropped(node) {
                return Err(format!("I7: {} took partition {partition} from {node:?}", name(&step.change)));
            }
        }
        let survives = was.holders.iter().any(lives);
        let is_emptied = after.map.emptied.get(&partition) == Some(&after.map.epoch);
        if !survives && !is.holders.is_empty() && !is_emptied {
            return Err(format!(
                "I7: {} left no copy of partition {partition}, and does not say so",
                name(&step.change)
            ));
        }
        lost += u64::from(!survives && !was.holders.is_empty());
    }
    let said = after.map.lost_total - before.map.lost_total;
    if lost != said {
        return Err(format!("I7: {} lost {lost} partitions and says {said}", name(&step.change)));
    }
    Ok(())
}
