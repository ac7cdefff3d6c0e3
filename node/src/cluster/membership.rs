//! Who belongs, and who votes.
//!
//! For: the Raft leader's next step: admitting, choosing voters, forgetting. Pure: map and what was seen, to one step.
//! Not here: carrying a step out (`coordinator`), liveness.
//! Rules: 1, 3 or 5 voters; present ones stay; a voter that was down for a while is replaced, one at a time, and
//! only by a node that is up; the number of voters shrinks only when voters leave the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{ClusterMap, Membership};

use korum_raft::Voters;

/// One step; the next is computed from what it led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Raft does not know a node of the map yet.
    AddLearner(NodeId),
    /// A joining node was heard: it takes its indices.
    Admit {
        /// Who.
        node: NodeId,
        /// Which run of it was heard.
        incarnation: Incarnation,
    },
    /// Other nodes should vote.
    SetVoters(BTreeSet<NodeId>),
    /// A leaving node holds nothing any more.
    Forget(NodeId),
    /// Raft still knows a node that is not in the map.
    Remove(NodeId),
}

/// What the leader knows besides the map.
pub struct Situation<'a> {
    /// The leader itself.
    pub me: NodeId,
    /// What was agreed.
    pub map: &'a ClusterMap,
    /// Whether a node holds any partition.
    pub holds: &'a dyn Fn(NodeId) -> bool,
    /// Whether a heartbeat of this run arrived at this leader.
    pub heard: &'a dyn Fn(NodeId, Incarnation) -> bool,
    /// How long a node has been down.
    pub down_for: &'a dyn Fn(NodeId) -> Duration,
    /// Raft's members.
    pub raft: &'a Voters,
    /// Nodes whose join is under way: Raft may know them before the map does.
    pub joining: &'a BTreeSet<NodeId>,
    /// A voter that is down for so long is replaced.
    pub voter_replace_after: Duration,
}

/// The next step, or none when all is as it should be.
#[must_use]
pub fn next_step(situation: &Situation<'_>) -> Option<Step> {
    let Situation { map, raft, .. } = situation;
    let in_raft = |node: &NodeId| raft.voters.contains(node) || raft.learners.contains(node);
    if let Some((&node, record)) = map.nodes.iter().find(|(node, record)| {
        record.membership == Membership::Joining
            && record.is_up()
            && (situation.heard)(**node, record.incarnation)
    }) {
        return Some(Step::Admit { node, incarnation: record.incarnation });
    }
    if let Some(node) = map.nodes.keys().find(|node| !in_raft(node)) {
        return Some(Step::AddLearner(*node));
    }
    let voters = choose_voters(situation);
    if voters != raft.voters {
        return Some(Step::SetVoters(one_less(situation, voters)));
    }
    let leaving = map.nodes.iter().find(|(node, record)| {
        let has_given_up = record.membership == Membership::Joining
            && !record.is_up()
            && (situation.down_for)(**node) >= situation.voter_replace_after;
        let is_leaving = record.membership == Membership::Leaving || has_given_up;
        is_leaving && map.nodes.len() > 1 && !(situation.holds)(**node)
    });
    if let Some((node, _)) = leaving
        && !raft.voters.contains(node)
    {
        return Some(Step::Forget(*node));
    }
    let stray =
        raft.learners.iter().find(|node| !map.nodes.contains_key(node) && !situation.joining.contains(node));
    stray.map(|node| Step::Remove(*node))
}

/// A goal that takes away at most one voter: first one that is down and no member any more, for it never comes back,
/// then another one that is down, then one that is there. Each set on the way must have a quorum of living nodes.
fn one_less(situation: &Situation<'_>, goal: BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let Situation { me, map, raft, .. } = situation;
    let is_up = |node: &NodeId| map.nodes.get(node).is_some_and(korum_protocol::map::NodeRecord::is_up);
    let first = raft
        .voters
        .difference(&goal)
        .copied()
        .min_by_key(|node| (node == me, is_up(node), belongs(map, node), *node));
    let mut next: BTreeSet<NodeId> = raft.voters.union(&goal).copied().collect();
    if let Some(first) = first {
        next.remove(&first);
    }
    next
}

fn choose_voters(situation: &Situation<'_>) -> BTreeSet<NodeId> {
    let Situation { me, map, raft, .. } = situation;
    let belongs = |node: &NodeId| belongs(map, node);
    let is_up = |node: &NodeId| map.nodes.get(node).is_some_and(korum_protocol::map::NodeRecord::is_up);
    let members = map.nodes.keys().filter(|node| belongs(node)).count();
    let wanted = match members {
        0..3 => 1,
        3..5 => 3,
        _ => 5,
    };
    let mut chosen: BTreeSet<NodeId> = raft.voters.iter().copied().filter(belongs).collect();
    let mut candidates: BTreeSet<NodeId> = map
        .nodes
        .iter()
        .filter(|(node, record)| {
            belongs(node)
                && is_up(node)
                && !chosen.contains(node)
                && (situation.heard)(**node, record.incarnation)
        })
        .map(|(node, _)| *node)
        .collect();
    // One voter that has been away for long gives its place to a node that is there.
    let away = chosen.iter().copied().find(|node| {
        node != me && !is_up(node) && (situation.down_for)(*node) >= situation.voter_replace_after
    });
    if let Some(away) = away
        && !candidates.is_empty()
        && chosen.len() >= wanted
    {
        chosen.remove(&away);
    }
    while chosen.len() < wanted {
        let Some(next) = most_apart(map, &chosen, &candidates) else { break };
        candidates.remove(&next);
        chosen.insert(next);
    }
    // An even number has no use for the last one; more than wanted happens when voters have left.
    while chosen.len() > wanted || chosen.len().is_multiple_of(2) {
        let Some(last) = least_needed(map, &chosen, &raft.voters, *me) else { break };
        chosen.remove(&last);
    }
    if chosen.is_empty() {
        return raft.voters.clone();
    }
    chosen
}

fn belongs(map: &ClusterMap, node: &NodeId) -> bool {
    map.nodes.get(node).is_some_and(|record| record.membership == Membership::Member)
}

/// The candidate whose zone has the fewest voters; the smallest id among equals.
fn most_apart(map: &ClusterMap, chosen: &BTreeSet<NodeId>, candidates: &BTreeSet<NodeId>) -> Option<NodeId> {
    let crowd = crowds(map, chosen);
    candidates.iter().copied().min_by_key(|node| (crowd.get(zone(map, *node)).copied().unwrap_or(0), *node))
}

/// The voter to do without: one that does not vote yet, else one that is down, else one of the fullest zone;
/// never the leader.
fn least_needed(
    map: &ClusterMap,
    chosen: &BTreeSet<NodeId>,
    present: &BTreeSet<NodeId>,
    me: NodeId,
) -> Option<NodeId> {
    let crowd = crowds(map, chosen);
    let is_up = |node: &NodeId| map.nodes.get(node).is_some_and(korum_protocol::map::NodeRecord::is_up);
    chosen.iter().copied().filter(|node| *node != me).max_by_key(|node| {
        (!present.contains(node), !is_up(node), crowd.get(zone(map, *node)).copied().unwrap_or(0), *node)
    })
}

fn crowds<'a>(map: &'a ClusterMap, chosen: &BTreeSet<NodeId>) -> BTreeMap<&'a str, usize> {
    let mut crowds = BTreeMap::new();
    for node in chosen {
        *crowds.entry(zone(map, *node)).or_default() += 1;
    }
    crowds
}

fn zone(map: &ClusterMap, node: NodeId) -> &str {
    map.nodes.get(&node).map_or("", |record| record.zone.as_str())
}

#[cfg(test)]
mod tests;
