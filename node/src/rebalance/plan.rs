//! What is to be moved, from whom to whom? Pure: a plan is computed from a map and never resumed.
//!
//! For: the work of one primary.
//! Not here: streams, throttles, proposals; the look ahead before an operator acts (`admin::forecast`).
//! Next: `execute` carries tasks out and makes no choices.

use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::{Move, PartitionId, View};

#[cfg(test)]
mod tests;

/// One thing that a primary has to do for one of its partitions: copy it to a node and cut over,
/// or, where the copies are complete, only cut over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// The partition.
    pub partition: PartitionId,
    /// The era of this node as its primary.
    pub era: Epoch,
    /// Who is to become a holder.
    pub target: NodeId,
    /// Which run of the target.
    pub incarnation: Incarnation,
    /// What the cutover must name.
    pub membership_epoch: Epoch,
    /// The target holds the partition already: there is nothing to copy. The cutover puts the holders in
    /// order, or takes this node, which is leaving, from among them.
    pub already_holds: bool,
    /// After this cutover, or this one together with others of the same partition that may be under way,
    /// this node is not the primary: it must freeze the partition before it proposes any of them.
    pub ends_my_primacy: bool,
}

impl Task {
    /// What the cutover says of this partition.
    #[must_use]
    pub fn as_move(&self) -> Move {
        Move { partition: self.partition, era: self.era, node: self.target, incarnation: self.incarnation }
    }
}

/// What node `me` has to do as a primary, by partition. Empty when all is as it should be.
#[must_use]
pub fn tasks(view: &View, me: NodeId) -> Vec<Task> {
    let mut tasks = Vec::new();
    let cutovers = view.cutovers();
    for (partition, row) in view.table.rows.iter().enumerate() {
        if row.primary != Some(me) || row.holders == row.replica_set {
            continue;
        }
        let partition = partition as PartitionId;
        let up = |id: &NodeId| view.map.nodes.get(id).is_some_and(|node| node.is_up());
        let members = || row.replica_set.iter().copied().filter(up);
        let missing: Vec<NodeId> = members().filter(|id| !row.holders.contains(id)).collect();
        let in_the_end = cutovers.holders_after(partition, &missing);
        let task = |target: NodeId, already_holds: bool| Task {
            partition,
            era: row.era,
            target,
            incarnation: view.map.nodes[&target].incarnation,
            membership_epoch: view.map.membership_epoch,
            already_holds,
            ends_my_primacy: in_the_end.first() != Some(&me),
        };
        if !missing.is_empty() {
            tasks.extend(missing.iter().map(|&target| task(target, false)));
        } else if in_the_end != row.holders {
            tasks.extend(members().next().map(|target| task(target, true)));
        }
    }
    tasks
}
