//! What a change means for holders, primaries and eras: the same rules after every change.
//!
//! For: the next view from an `Edit`, reusing what the change does not touch.
//! Not here: whether the change is allowed (`apply`).
//!
//! The rules, partition by partition:
//! 1. A node that is gone leaves the holders. If that leaves none, the partition is lost, and counted once.
//! 2. A partition without holders is started empty by the first up candidate, if the policy says so.
//! 3. Once the whole replica set holds it, surplus holders are dropped; not before, so that copies are
//!    never lost to a plan (I7).
//! 4. Holders stand in ranking order; the first is the primary. A new primary begins a new era,
//!    and so does a partition that was started empty.
//! 5. But a living primary stays the primary, and a holder, until a cutover that it proposed itself:
//!    it must stop serving before another starts. (Only a changed weight, compaction, bounded load
//!    or a drained primary make this differ from 3 and 4, and only for as long as that cutover takes.)
//!    It hands over to a member of the replica set only. So whether a partition's cutovers, in any order,
//!    end its primacy can be told from the last of them: surplus holders never come in between.

use super::apply::Edit;
use super::view::NodeList;
use super::{ClusterMap, LossPolicy, NodeRecord, PartitionId, Row, Table, View};
use crate::id::{Epoch, NodeId};
use crate::placement::table::{Placement, sort_members};

/// Epochs that a new formation leaves out. Those who are lost may have agreed on maps that no survivor has heard of; whoever
/// saw them, a client say, must not take a survivor's map for one of these. More changes than can be agreed in the
/// moments in which a cluster loses its majority.
const EPOCHS_LEFT_OUT: u64 = 1_000_000;

pub(super) fn settle(old: &View, edit: Edit) -> View {
    let Edit { mut map, membership, gone, mut copies, hands_over } = edit;
    map.epoch = if map.formation() == old.map.formation() {
        old.map.epoch.next()
    } else {
        Epoch(old.map.epoch.0 + EPOCHS_LEFT_OUT)
    };
    if membership {
        map.membership_epoch = map.epoch;
    }
    let placement = Placement::of(&map);
    let moved = !same_placement(&old.map, &map);
    let replica_sets = if moved { placement.replica_sets() } else { Vec::new() };
    let mut rows = old.table.rows.clone();
    for (number, row) in rows.iter_mut().enumerate() {
        let partition = number as PartitionId;
        let replica_set = replica_sets.get(number).unwrap_or(&row.replica_set).clone();
        let proposed = copies.remove(&partition);
        let untouched = proposed.is_none()
            && !row.holders.is_empty()
            && !row.holders.iter().any(|holder| gone.contains(holder))
            && (!moved || (row.holders == row.replica_set && row.replica_set == replica_set));
        if !untouched {
            let frozen = hands_over && proposed.is_some();
            let mut holders = proposed.unwrap_or_else(|| row.holders.clone());
            holders.retain(|holder| !gone.contains(holder));
            *row = settle_row(&mut map, &placement, partition, row, Next { holders, replica_set, frozen });
        }
    }
    View { map, table: Table { rows } }
}

/// What a change leaves of a partition's holders, before the rules are applied.
struct Next {
    holders: NodeList,
    replica_set: NodeList,
    /// The primary froze the partition and proposed this itself.
    frozen: bool,
}

/// Applies the rules to one partition, and writes down what becomes of it.
fn settle_row(
    map: &mut ClusterMap,
    placement: &Placement,
    partition: PartitionId,
    old: &Row,
    next: Next,
) -> Row {
    let Next { mut holders, replica_set, frozen } = next;
    let mut emptied = false;
    if holders.is_empty() {
        map.lost_total += u64::from(!old.holders.is_empty());
        holders.extend(start_empty(map, placement, partition, &replica_set));
        emptied = !holders.is_empty();
    }
    let sort = |nodes: &mut NodeList| placement.sort(partition, &replica_set, nodes);
    arrange(sort, &replica_set, old.primary, frozen, &mut holders);
    let primary = holders.first().copied();
    let era = if emptied || primary != old.primary { map.epoch } else { old.era };
    map.primary_since[usize::from(partition)] = era;
    if emptied {
        map.emptied.insert(partition, era);
    }
    if holders == replica_set {
        map.holders.remove(&partition);
    } else {
        map.holders.insert(partition, holders.to_vec());
    }
    Row { primary, holders, replica_set, era }
}

/// Drops surplus holders of a complete partition and puts the others in order (rules 3 to 5).
/// `primary` is the one before, if there was one; `frozen` tells that it proposed this;
/// `sort` asks the ranking, which is rarely needed.
pub(super) fn arrange(
    sort: impl FnOnce(&mut NodeList),
    replica_set: &[NodeId],
    primary: Option<NodeId>,
    frozen: bool,
    holders: &mut NodeList,
) {
    // An empty replica set (no eligible node is left) is complete for nobody.
    if !replica_set.is_empty() && replica_set.iter().all(|member| holders.contains(member)) {
        holders.retain(|holder| replica_set.contains(holder) || (!frozen && primary == Some(*holder)));
    }
    if !sort_members(replica_set, holders) {
        sort(holders);
    }
    let to_member = holders.first().is_some_and(|first| replica_set.contains(first));
    if let Some(place) = holders.iter().position(|holder| primary == Some(*holder))
        && !(frozen && to_member)
    {
        holders[..=place].rotate_right(1);
    }
}

/// The node that starts a lost partition empty: the first up member of its replica set, else the first
/// up candidate, eligible if there is one.
fn start_empty(
    map: &ClusterMap,
    placement: &Placement,
    partition: PartitionId,
    replica_set: &[NodeId],
) -> Option<NodeId> {
    if map.loss_policy == LossPolicy::Refuse {
        return None;
    }
    let is = |id: &NodeId, what: fn(&NodeRecord) -> bool| map.nodes.get(id).is_some_and(what);
    let up = |id: &NodeId| is(id, NodeRecord::is_up);
    let first = replica_set.iter().copied().find(up);
    let first =
        first.or_else(|| placement.ranking(partition).find(|id| up(id) && is(id, NodeRecord::is_eligible)));
    first.or_else(|| placement.ranking(partition).find(up))
}

/// Do two maps have the same rankings and replica sets?
fn same_placement(old: &ClusterMap, new: &ClusterMap) -> bool {
    let about = |map: &ClusterMap| (map.replication, map.balance_permille);
    let same_node = |id: &NodeId| {
        let about = |map: &ClusterMap| map.nodes.get(id).map(|n| (n.zone.clone(), n.weight, n.is_eligible()));
        about(old) == about(new)
    };
    about(old) == about(new) && old.indices == new.indices && new.indices.iter().flatten().all(same_node)
}
