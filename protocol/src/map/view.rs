//! A map together with the table that is computed from it.
//!
//! For: asking who holds and who serves a partition, in one array read.
//! Not here: how replica sets are computed (`placement::table`).

use std::cell::OnceCell;

use smallvec::SmallVec;

use super::apply::{create, decide};
use super::settle::{arrange, settle};
use super::{ClusterMap, MapChange, PartitionId, Refusal};
use crate::id::{Epoch, NodeId};
use crate::placement::table::Placement;

/// A few nodes, in ranking order, without an allocation up to four.
pub type NodeList = SmallVec<[NodeId; 4]>;

/// A map and its table. Immutable; readers hold a snapshot and never wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// What was agreed.
    pub map: ClusterMap,
    /// What follows from it.
    pub table: Table,
}

/// Placement of all partitions at one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Table {
    /// By partition number.
    pub rows: Vec<Row>,
}

/// Placement of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Who serves it: the first holder. `None` when it is lost and the policy is to refuse.
    pub primary: Option<NodeId>,
    /// Who holds it, in ranking order; all are up.
    pub holders: NodeList,
    /// Who should hold it, in ranking order.
    pub replica_set: NodeList,
    /// The epoch at which the primary became primary.
    pub era: Epoch,
}

/// What cutovers will lead to. The placement is computed once, when it is first asked for.
pub struct Cutovers<'a> {
    view: &'a View,
    placement: OnceCell<Placement>,
}

impl Cutovers<'_> {
    /// Who will hold a partition after a cutover that adds these nodes, in order: surplus holders are
    /// dropped if that completes it. Adding nobody tells what is only a matter of order and surplus.
    #[must_use]
    pub fn holders_after(&self, partition: PartitionId, added: &[NodeId]) -> NodeList {
        let row = self.view.row(partition);
        let mut holders = row.holders.clone();
        holders.extend(added.iter().copied().filter(|node| !row.holders.contains(node)));
        let placement = || self.placement.get_or_init(|| Placement::of(&self.view.map));
        let sort = |nodes: &mut NodeList| placement().sort(partition, &row.replica_set, nodes);
        arrange(sort, &row.replica_set, row.primary, true, &mut holders);
        holders
    }
}

impl View {
    /// Computes the table of a map.
    #[must_use]
    pub fn new(map: ClusterMap) -> Self {
        let replica_sets = Placement::of(&map).replica_sets();
        let rows = replica_sets.into_iter().zip(&map.primary_since).enumerate();
        let rows = rows.map(|(partition, (replica_set, &era))| {
            let exception = map.holders.get(&(partition as PartitionId));
            let holders =
                exception.map_or_else(|| replica_set.clone(), |holders| NodeList::from_slice(holders));
            Row { primary: holders.first().copied(), holders, replica_set, era }
        });
        let rows = rows.collect();
        Self { map, table: Table { rows } }
    }

    /// The view after `change`; what the change does not touch is not computed again.
    /// It equals `View::new` of its map.
    ///
    /// # Errors
    /// When the change assumes what no longer holds, or is not allowed.
    pub fn apply(&self, change: &MapChange) -> Result<View, Refusal> {
        let decided = decide(self, change).map_err(|refusal| match refusal {
            Refusal::Outdated { reason, .. } => Refusal::Outdated { at: self.map.epoch, reason },
            Refusal::Forbidden(_) => refusal,
        })?;
        Ok(settle(self, decided))
    }

    /// The first view of a cluster, from a `Create`.
    ///
    /// # Errors
    /// When the change is another one, or its numbers are out of range.
    pub fn create(change: &MapChange) -> Result<View, Refusal> {
        Ok(Self::new(create(change)?))
    }

    /// All nodes that own an index, in the order in which they are candidates for a partition.
    #[must_use]
    pub fn candidates(&self, partition: PartitionId) -> Vec<NodeId> {
        Placement::of(&self.map).ranking(partition).collect()
    }

    /// For asking what cutovers of many partitions will lead to.
    #[must_use]
    pub fn cutovers(&self) -> Cutovers<'_> {
        Cutovers { view: self, placement: OnceCell::new() }
    }

    /// Would a cutover that adds nobody leave the holders as they are?
    #[must_use]
    pub fn is_settled(&self, partition: PartitionId) -> bool {
        let row = self.row(partition);
        row.holders == row.replica_set || self.cutovers().holders_after(partition, &[]) == row.holders
    }

    /// The partition of a slot.
    #[must_use]
    pub fn partition_of_slot(&self, slot: u16) -> PartitionId {
        slot >> (14 - self.map.partitions.trailing_zeros())
    }

    /// Placement of one partition.
    #[must_use]
    pub fn row(&self, partition: PartitionId) -> &Row {
        &self.table.rows[usize::from(partition)]
    }
}
