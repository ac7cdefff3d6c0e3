//! From rankings to replica sets: holes, weights, zones, bounded load (PLACEMENT.md §5 and §6).
//!
//! For: who should hold each partition, and the order in which its holders stand.
//! Not here: who does hold it (`map`); liveness enters only as "down for long".
//! Next: `map::view` keeps the result beside the map.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::choose_k::{Ranking, unit_seed};
use crate::id::NodeId;
use crate::map::view::NodeList;
use crate::map::{ClusterMap, NodeRecord, PartitionId};

/// A node's place in `Placement::nodes`.
type Ordinal = u16;

/// A few nodes of one partition.
type Chosen = SmallVec<[Ordinal; 8]>;

/// What the placement knows of one node.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: NodeId,
    /// Which of the zones of eligible nodes, from 0.
    zone: usize,
    weight: u64,
    eligible: bool,
}

/// What rankings and replica sets are computed from, made ready for fast walking.
#[derive(Clone, Debug)]
pub struct Placement {
    seed: u64,
    partitions: u32,
    balance_permille: u64,
    /// All nodes that own an index, by id.
    nodes: Vec<Candidate>,
    /// The owner of each index.
    owners: Vec<Option<Ordinal>>,
    zones: usize,
    quota: Quota,
}

/// How many of each zone a replica set has: "the R smallest by (earlier ones of the same zone, rank)"
/// takes every candidate that has fewer than `full` predecessors in its zone,
/// and the first `rest` of those that have exactly `full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota {
    copies: usize,
    full: usize,
    rest: usize,
}

impl Quota {
    fn new(replication: usize, zone_sizes: &[usize]) -> Self {
        let copies = replication.min(zone_sizes.iter().sum());
        let (mut full, mut rest) = (0, copies);
        loop {
            let level = zone_sizes.iter().filter(|&&size| size > full).count();
            if level == 0 || level > rest {
                return Self { copies, full, rest };
            }
            (full, rest) = (full + 1, rest - level);
        }
    }
}

impl Placement {
    /// What a map says about placement.
    #[must_use]
    pub fn of(map: &ClusterMap) -> Self {
        let mut ordinals = BTreeMap::new();
        for &owner in map.indices.iter().flatten() {
            ordinals.insert(owner, 0);
        }
        let mut zones: BTreeMap<&str, usize> = BTreeMap::new();
        let mut zone_sizes = Vec::new();
        let mut nodes = Vec::with_capacity(ordinals.len());
        for (&id, ordinal) in &mut ordinals {
            *ordinal = nodes.len() as Ordinal;
            let record = map.nodes.get(&id);
            let eligible = record.is_some_and(NodeRecord::is_eligible);
            let mut zone = 0;
            if let Some(record) = record.filter(|_| eligible) {
                let next = zones.len();
                zone = *zones.entry(&record.zone).or_insert(next);
                zone_sizes.resize(zones.len(), 0);
                zone_sizes[zone] += 1;
            }
            let weight = record.map_or(1, |record| u64::from(record.weight));
            nodes.push(Candidate { id, zone, weight, eligible });
        }
        let owners = map.indices.iter().map(|owner| owner.map(|owner| ordinals[&owner])).collect();
        Self {
            seed: map.placement_seed,
            partitions: map.partitions,
            balance_permille: u64::from(map.balance_permille),
            nodes,
            owners,
            zones: zone_sizes.len(),
            quota: Quota::new(usize::from(map.replication), &zone_sizes),
        }
    }

    /// All nodes that own an index, in ranking order.
    pub fn ranking(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> {
        self.walk(partition).map(|ordinal| self.nodes[usize::from(ordinal)].id)
    }

    /// The replica sets of all partitions, by partition number.
    #[must_use]
    pub fn replica_sets(&self) -> Vec<NodeList> {
        let plain = (0..self.partitions).map(|partition| self.choose(partition as PartitionId));
        if self.balance_permille == 0 {
            plain.map(|chosen| self.ids(&chosen)).collect()
        } else {
            self.bounded(plain.collect()).iter().map(|chosen| self.ids(chosen)).collect()
        }
    }

    /// Puts nodes into the order in which they serve: by ranking, except that the members of the
    /// replica set stand in the replica set's own order (bounded load may differ from the ranking).
    /// Nodes without an index are dropped.
    pub fn sort(&self, partition: PartitionId, replica_set: &[NodeId], nodes: &mut NodeList) {
        if sort_members(replica_set, nodes) {
            return;
        }
        let mut sorted: NodeList = self.pick(partition, |id| nodes.contains(&id), nodes.len());
        if self.balance_permille > 0 {
            // A member's key is the rank that its place in the replica set has among the members' ranks.
            let members: NodeList = self.pick(partition, |id| replica_set.contains(&id), replica_set.len());
            let place = |id: NodeId| replica_set.iter().position(|&member| member == id);
            let key = |id: NodeId| place(id).map_or(id, |place| members[place]);
            let keys: NodeList = sorted.iter().map(|&id| key(id)).collect();
            let order: NodeList = self.pick(partition, |id| keys.contains(&id), keys.len());
            sorted.sort_by_key(|&id| order.iter().position(|&other| other == key(id)));
        }
        *nodes = sorted;
    }

    /// The first `count` nodes of the ranking that are wanted.
    fn pick(&self, partition: PartitionId, wanted: impl Fn(NodeId) -> bool, count: usize) -> NodeList {
        self.ranking(partition).filter(|&id| wanted(id)).take(count).collect()
    }

    fn ids(&self, chosen: &Chosen) -> NodeList {
        chosen.iter().map(|&ordinal| self.nodes[usize::from(ordinal)].id).collect()
    }

    /// Owners of indices in ranking order: no holes, each node once, at its first index.
    fn walk(&self, partition: PartitionId) -> Walk<'_> {
        let seed = unit_seed(self.seed, u64::from(partition));
        Walk { placement: self, ranking: Ranking::new(seed, self.owners.len() as u32), seen: Chosen::new() }
    }

    /// Eligible owners in ranking order.
    fn eligible(&self, partition: PartitionId) -> impl Iterator<Item = Ordinal> {
        self.walk(partition).filter(|&ordinal| self.nodes[usize::from(ordinal)].eligible)
    }

    /// The replica set of one partition, spread over zones, in ranking order, without bounded load.
    fn choose(&self, partition: PartitionId) -> Chosen {
        let Quota { copies, full, mut rest } = self.quota;
        let mut chosen = Chosen::new();
        if copies == 0 {
            return chosen;
        }
        if self.zones == 1 {
            return self.eligible(partition).take(copies).collect();
        }
        let mut occupied: SmallVec<[usize; 16]> = SmallVec::from_elem(0, self.zones);
        for ordinal in self.eligible(partition) {
            let earlier = &mut occupied[self.nodes[usize::from(ordinal)].zone];
            if *earlier < full {
                chosen.push(ordinal);
            } else if *earlier == full && rest > 0 {
                chosen.push(ordinal);
                rest -= 1;
            }
            *earlier += 1;
            if chosen.len() == copies {
                break;
            }
        }
        chosen
    }

    /// Bounded load, in rounds with a cumulative cap. Round j of a partition stays in the zone of
    /// the j-th plain choice, and a zone's cap is its nodes' share of what the zone gets by then;
    /// with one zone this is the cap of PLACEMENT.md §6.
    fn bounded(&self, plain: Vec<Chosen>) -> Vec<Chosen> {
        let mut zone_weights = vec![0; self.zones];
        for node in self.nodes.iter().filter(|node| node.eligible) {
            zone_weights[node.zone] += node.weight;
        }
        let mut walks: Vec<Walk<'_>> = (0..plain.len()).map(|p| self.walk(p as PartitionId)).collect();
        let mut loads = vec![0u64; self.nodes.len()];
        let mut zone_loads = vec![0u64; self.zones];
        let mut chosen = vec![Chosen::new(); plain.len()];
        for round in 0..self.quota.copies {
            let zone_of = |partition: usize| self.nodes[usize::from(plain[partition][round])].zone;
            for partition in 0..plain.len() {
                zone_loads[zone_of(partition)] += 1;
            }
            let cap = |node: &Candidate| {
                let share = (1000 + self.balance_permille) * zone_loads[node.zone] * node.weight;
                share.div_ceil(1000 * zone_weights[node.zone])
            };
            for partition in 0..plain.len() {
                let zone = zone_of(partition);
                let taken = &chosen[partition];
                let fits = |ordinal: Ordinal| {
                    let node = &self.nodes[usize::from(ordinal)];
                    node.eligible && node.zone == zone && !taken.contains(&ordinal)
                };
                let with_room = |ordinal: Ordinal| {
                    fits(ordinal) && loads[usize::from(ordinal)] < cap(&self.nodes[usize::from(ordinal)])
                };
                let walk = &mut walks[partition];
                let next = walk.find_from_start(with_room).or_else(|| walk.find_from_start(fits));
                if let Some(ordinal) = next {
                    loads[usize::from(ordinal)] += 1;
                    chosen[partition].push(ordinal);
                }
            }
        }
        chosen
    }
}

/// Puts nodes in order without a ranking, which can be done if all are members of the replica set.
pub fn sort_members(replica_set: &[NodeId], nodes: &mut NodeList) -> bool {
    let place = |node: &NodeId| replica_set.iter().position(|member| member == node);
    let all = nodes.iter().all(|node| place(node).is_some());
    if all {
        nodes.sort_by_key(place);
    }
    all
}

/// All nodes of the map that own an index, in the order in which they are candidates for a partition.
#[must_use]
pub fn rank_of_nodes(map: &ClusterMap, partition: PartitionId) -> Vec<NodeId> {
    Placement::of(map).ranking(partition).collect()
}

/// Walks the owners of a ranking; remembers whom it has met.
#[derive(Clone, Debug)]
struct Walk<'a> {
    placement: &'a Placement,
    ranking: Ranking,
    seen: Chosen,
}

impl Walk<'_> {
    /// The first node of the whole walk, from its start, that is wanted.
    fn find_from_start(&mut self, wanted: impl Fn(Ordinal) -> bool) -> Option<Ordinal> {
        let known = self.seen.iter().copied().find(|&ordinal| wanted(ordinal));
        known.or_else(|| self.find(|&ordinal| wanted(ordinal)))
    }
}

impl Iterator for Walk<'_> {
    type Item = Ordinal;

    fn next(&mut self) -> Option<Ordinal> {
        if self.seen.len() == self.placement.nodes.len() {
            return None;
        }
        loop {
            let index = self.ranking.next()?;
            if let Some(ordinal) = self.placement.owners[index as usize]
                && !self.seen.contains(&ordinal)
            {
                self.seen.push(ordinal);
                return Some(ordinal);
            }
        }
    }
}
