//! What a new map makes of a partition on this node.
//!
//! For: the one place where roles change. Called under the partition's lock, for each partition whose
//! row or whose nodes changed, before the new map is used for routing.
//! Not here: which map is in force (`node`), catching up (`rebalance`).

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{PartitionId, Row, View};

use super::link::Link;
use super::primary::{PeerCopy, Primary};
use crate::store::served::Served;
use crate::store::{Garbage, Partition, Role};

/// Who asks for its roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Me {
    /// This node.
    pub node: NodeId,
    /// Which run of it. What a map gives to another run is not this one's: a process that starts again reads a
    /// map from its disk in which its predecessor still holds what this one has not.
    pub run: Incarnation,
}

impl Me {
    fn is_in(self, view: &View) -> bool {
        view.map.nodes.get(&self.node).is_some_and(|record| record.incarnation == self.run)
    }
}

/// Where a fresh copy finds the link to its node.
pub trait LinkBook {
    /// The present link to this run of the node, if there is one.
    fn link(&self, node: NodeId, incarnation: Incarnation) -> Option<std::sync::Arc<Link>>;
}

/// Gives `partition` the role that `view` says. Returns content that is no longer wanted, to be
/// dropped outside the lock.
///
/// `has_gap`: maps were passed over, and the membership changed in them or since. A node may have ceased to be
/// wanted in one of them, and have given up its copy, and be wanted again now: those that are not holders
/// are asked again. (A holder cannot have come and gone unseen: only its primary proposes that.)
#[must_use]
pub fn transition(
    partition: &mut Partition,
    id: PartitionId,
    me: Me,
    view: &View,
    has_gap: bool,
    links: &dyn LinkBook,
) -> Option<Garbage> {
    let row = view.row(id);
    partition.newest_era = row.era.max(partition.newest_era);
    partition.history.keep(view.map.nodes.len() > 1 && view.map.replication > 1);
    if !me.is_in(view) || row.primary != Some(me.node) {
        partition.keyspace.keep_parts(|_| false);
    }
    if !me.is_in(view) {
        partition.role = Role::Absent;
        return None;
    }
    let me = me.node;
    if row.primary == Some(me) {
        return become_primary(partition, id, me, view, has_gap, links);
    }
    let Some(primary) = row.primary else {
        partition.role = Role::Absent;
        return None;
    };
    if row.holders.contains(&me) {
        partition.role = Role::Replica { primary, era: row.era };
        return None;
    }
    if partition.follows(primary, row.era) {
        partition.role = Role::Target { primary, era: row.era };
        return (!row.replica_set.contains(&me)).then(|| discard(partition));
    }
    partition.role = Role::Absent;
    // What a member of the replica set still has may spare it a stream; others free it.
    (!row.replica_set.contains(&me)).then(|| discard(partition))
}

fn discard(partition: &mut Partition) -> Garbage {
    partition.role = Role::Absent;
    partition.history.forget();
    partition.keyspace.served = Served::default();
    partition.keyspace.clear()
}

fn become_primary(
    partition: &mut Partition,
    id: PartitionId,
    me: NodeId,
    view: &View,
    has_gap: bool,
    links: &dyn LinkBook,
) -> Option<Garbage> {
    let row = view.row(id);
    let mut garbage = None;
    if partition.as_primary().is_none_or(|primary| primary.era != row.era) {
        let mut unfinished = Garbage::default();
        partition.keyspace.keep_parts(|_| false);
        partition.keyspace.drop_arriving(&mut unfinished);
        garbage = Some(unfinished).filter(|unfinished| !unfinished.is_empty());
        if view.map.emptied.get(&id) == Some(&row.era) {
            garbage.get_or_insert_default().absorb(&mut partition.keyspace.clear());
            partition.keyspace.served = Served::default();
            partition.history.forget();
        }
        partition.history.begin(row.era);
        partition.role = Role::Primary(Primary::new(row.era));
    }
    let Partition { role: Role::Primary(primary), history, .. } = partition else { return garbage };
    // A proposal that names an older membership epoch can no longer be applied.
    primary.frozen = primary.frozen.filter(|&epoch| epoch == view.map.membership_epoch);
    primary.membership_epoch = view.map.membership_epoch;
    keep_known_copies(primary, row, view);
    for &node in row.holders.iter().filter(|&&node| node != me) {
        let Some(record) = view.map.nodes.get(&node) else { continue };
        match primary.copies.iter_mut().find(|copy| copy.node == node) {
            Some(copy) => {
                // That it became a holder is the outcome of its proposal; one that only concerns the order
                // of the holders may still be open.
                if !copy.is_holder {
                    copy.proposed = None;
                }
                (copy.is_holder, copy.is_required) = (true, true);
            }
            None => {
                let mut copy = PeerCopy::new(node, record.incarnation, true);
                if let Some(link) = links.link(node, record.incarnation) {
                    copy.connect(id, row.era, history, &link);
                }
                primary.copies.push(copy);
            }
        }
    }
    let era = primary.era;
    for copy in primary.copies.iter_mut().filter(|copy| has_gap && !copy.is_holder) {
        copy.ask_again(id, era, history);
    }
    primary.thaw();
    garbage
}

/// Drops the copies of nodes that are gone, started again, or are no longer wanted; those that were
/// holders and are not any more are no longer waited for.
fn keep_known_copies(primary: &mut Primary, row: &Row, view: &View) {
    primary.copies.retain(|copy| {
        let is_same_run = view
            .map
            .nodes
            .get(&copy.node)
            .is_some_and(|record| record.is_up() && record.incarnation == copy.incarnation);
        let is_holder = row.holders.contains(&copy.node);
        let is_kept = is_same_run && (is_holder || row.replica_set.contains(&copy.node));
        copy.proposed = copy.proposed.filter(|&epoch| epoch == view.map.membership_epoch);
        copy.is_holder &= is_holder;
        if copy.is_required && !is_holder && copy.proposed.is_none() {
            copy.is_required = false;
            if let Some(link) = copy.link() {
                link.recheck();
            }
        }
        is_kept
    });
}
