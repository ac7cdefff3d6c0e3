//! Is a view what it must be? Derives every relation again, from the map alone.
//!
//! For: tests and simulation after each step, and maps that come from elsewhere.
//! Not here: repairing anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{ClusterMap, LossPolicy, Membership, NodeRecord, PartitionId, Row, View};
use crate::id::NodeId;
use crate::limits::REPLICATION_MAX;
use crate::placement::indices::INDICES_MAX;
use crate::placement::table::Placement;

/// Everything that is wrong with a view, in words; empty never.
pub type Violations = Vec<String>;

impl View {
    /// The view of a map that comes from elsewhere: from a snapshot or from a peer.
    /// Nothing is computed before the map's numbers are known to be in range.
    ///
    /// # Errors
    /// When the map breaks a rule; each breach is named.
    pub fn checked(map: ClusterMap) -> Result<Self, Violations> {
        report(check_map(&map))?;
        let view = Self::new(map);
        report(check_rows(&view))?;
        Ok(view)
    }
}

/// Checks a view.
///
/// # Errors
/// All breaches that were found.
pub fn check(view: &View) -> Result<(), Violations> {
    report(check_map(&view.map))?;
    let mut wrong = check_rows(view);
    if View::new(view.map.clone()).table != view.table {
        wrong.push("the table is not the one that follows from the map".to_owned());
    }
    report(wrong)
}

fn report(wrong: Violations) -> Result<(), Violations> {
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// What must hold of the map by itself.
fn check_map(map: &ClusterMap) -> Violations {
    let mut wrong = Violations::new();
    let mut demand = |holds: bool, what: &dyn Fn() -> String| {
        if !holds {
            wrong.push(what());
        }
    };
    let partitions = map.partitions;
    demand((64..=16384).contains(&partitions) && partitions.is_power_of_two(), &|| {
        format!("{partitions} partitions")
    });
    demand((1..=REPLICATION_MAX).contains(&map.replication), &|| format!("{} copies", map.replication));
    demand(map.primary_since.len() == partitions as usize, &|| {
        format!("{} eras for {partitions} partitions", map.primary_since.len())
    });
    demand(map.membership_epoch <= map.epoch, &|| "the membership epoch is in the future".to_owned());
    let in_future = map.primary_since.iter().chain(map.emptied.values()).any(|&epoch| epoch > map.epoch);
    demand(!in_future, &|| "an era is in the future".to_owned());
    let last = map.holders.last_key_value().map(|(&partition, _)| partition);
    let last = last.max(map.emptied.last_key_value().map(|(&partition, _)| partition));
    demand(last.is_none_or(|last| u32::from(last) < partitions), &|| format!("no partition {last:?}"));

    demand(map.indices.len() <= INDICES_MAX, &|| format!("{} indices", map.indices.len()));
    demand(matches!(map.indices.last(), Some(Some(_))), &|| "the last index has no owner".to_owned());
    let mut owned: BTreeMap<NodeId, usize> = BTreeMap::new();
    for owner in map.indices.iter().flatten() {
        *owned.entry(*owner).or_default() += 1;
        demand(map.nodes.contains_key(owner), &|| format!("an index belongs to the unknown node {owner}"));
    }
    for (id, node) in &map.nodes {
        demand((1..=16).contains(&node.weight), &|| format!("node {id} has weight {}", node.weight));
        let expected = if node.membership == Membership::Joining { 0 } else { usize::from(node.weight) };
        let owned = owned.get(id).copied().unwrap_or(0);
        demand(owned == expected, &|| format!("node {id} owns {owned} indices instead of {expected}"));
    }
    wrong
}

/// What must hold of each partition.
fn check_rows(view: &View) -> Violations {
    let map = &view.map;
    let mut wrong = Violations::new();
    if view.table.rows.len() != map.partitions as usize {
        wrong.push(format!("{} rows for {} partitions", view.table.rows.len(), map.partitions));
        return wrong;
    }
    let placement = Placement::of(map);
    for (number, row) in view.table.rows.iter().enumerate() {
        let partition = number as PartitionId;
        for breach in check_row(view, &placement, partition, row) {
            wrong.push(format!("partition {partition}: {breach} ({row:?})"));
        }
    }
    wrong
}

fn check_row(view: &View, placement: &Placement, partition: PartitionId, row: &Row) -> Vec<&'static str> {
    let map = &view.map;
    let up = |id: &NodeId| map.nodes.get(id).is_some_and(NodeRecord::is_up);
    let eligible = |id: &NodeId| map.nodes.get(id).is_some_and(NodeRecord::is_eligible);
    let count = map.nodes.values().filter(|node| node.is_eligible()).count();
    let exception = map.holders.get(&partition);
    let complete = !row.replica_set.is_empty() && row.replica_set.iter().all(|id| row.holders.contains(id));
    let distinct = |ids: &[NodeId]| ids.iter().collect::<BTreeSet<_>>().len() == ids.len();
    let rules = [
        (row.primary == row.holders.first().copied(), "the primary is not the first holder"),
        (row.holders.iter().all(up), "a holder is not up"),
        (distinct(&row.holders), "a holder stands twice"),
        (in_order(placement, map.balance_permille > 0, partition, row), "holders are not in ranking order"),
        (row.replica_set.iter().all(eligible), "a member of the replica set is not eligible"),
        (distinct(&row.replica_set), "a member of the replica set stands twice"),
        (
            row.replica_set.len() == count.min(usize::from(map.replication)),
            "the replica set has a wrong size",
        ),
        (row.era == map.primary_since[usize::from(partition)], "the era is not the map's"),
        (exception.is_none_or(|holders| holders[..] != row.replica_set[..]), "a stored exception is none"),
        (
            exception.map_or(row.holders == row.replica_set, |holders| holders[..] == row.holders[..]),
            "the holders are not the map's",
        ),
        (
            !row.holders.is_empty() || map.loss_policy == LossPolicy::Refuse || !someone_could(map),
            "nobody started the lost partition",
        ),
        (
            !complete || row.holders.iter().skip(1).all(|id| row.replica_set.contains(id)),
            "a surplus holder is left although the replica set is complete",
        ),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, breach)| breach).collect()
}

/// Is there any node that could start a lost partition?
fn someone_could(map: &ClusterMap) -> bool {
    map.indices.iter().flatten().any(|owner| map.nodes[owner].is_up())
}

/// Do the holders after the primary stand as the ranking says? (A living primary stays first until it hands
/// over.) With bounded load, members of the replica set keep the replica set's own order among themselves.
fn in_order(placement: &Placement, bounded: bool, partition: PartitionId, row: &Row) -> bool {
    let ranking: Vec<NodeId> = placement.ranking(partition).collect();
    let rank = |id: &NodeId| ranking.iter().position(|other| other == id);
    let mut ranks: Vec<_> = row.replica_set.iter().map(rank).collect();
    if !bounded && !ranks.is_sorted() {
        return false;
    }
    ranks.sort_unstable();
    let key = |id: &NodeId| {
        let member = row.replica_set.iter().position(|other| other == id);
        member.map_or_else(|| rank(id), |place| ranks[place])
    };
    row.holders.iter().skip(1).is_sorted_by_key(key) && row.holders.iter().all(|id| rank(id).is_some())
}
