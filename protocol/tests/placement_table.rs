//! Replica sets of whole clusters (PLACEMENT.md §5 to §7): against a slow oracle, and statistically.

mod map_support;

use std::collections::{BTreeMap, BTreeSet};

use korum_protocol::id::NodeId;
use korum_protocol::map::{ClusterMap, MapChange, Membership, NodeList, PartitionId, View};
use korum_protocol::placement::choose_k::{Ranking, unit_seed};
use korum_protocol::placement::indices;
use korum_protocol::placement::table::{Placement, rank_of_nodes};
use map_support::{admit, apply, cluster, create, join, settle};
use proptest::prelude::*;

/// A node in a few words: weight, zone, is it eligible.
type Spec = (u8, u8, bool);

/// A map with these nodes, numbered from 1; ids in `removed` leave holes behind.
fn map_of(specs: &[Spec], replication: u8, seed: u64, removed: &[usize]) -> ClusterMap {
    let mut map = View::create(&create(64, replication, seed)).unwrap().map;
    let template = map.nodes[&NodeId(1)].clone();
    map.nodes.clear();
    map.indices.clear();
    for (number, &(weight, zone, eligible)) in specs.iter().enumerate() {
        let id = NodeId(number as u64 + 1);
        let mut node = template.clone();
        node.weight = weight;
        node.zone = format!("zone-{zone}");
        node.membership = if eligible { Membership::Member } else { Membership::Leaving };
        map.nodes.insert(id, node);
        indices::add(&mut map.indices, id, usize::from(weight)).unwrap();
    }
    for &number in removed {
        let id = NodeId((number % specs.len()) as u64 + 1);
        map.nodes.remove(&id);
        indices::remove(&mut map.indices, id);
    }
    map
}

/// §6 word by word: all candidates, sorted by (occ, rank), the first R, back in order of rank.
fn replica_set_by_definition(map: &ClusterMap, partition: PartitionId) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = Vec::new();
    for index in Ranking::new(unit_seed(map.placement_seed, u64::from(partition)), map.indices.len() as u32) {
        if let Some(node) = map.indices[index as usize].filter(|node| !nodes.contains(node)) {
            nodes.push(node);
        }
    }
    assert_eq!(nodes, rank_of_nodes(map, partition));
    nodes.retain(|node| map.nodes[node].is_eligible());
    let mut occupied: BTreeMap<&str, usize> = BTreeMap::new();
    let mut keyed: Vec<(usize, usize, NodeId)> = Vec::new();
    for (rank, &node) in nodes.iter().enumerate() {
        let earlier = occupied.entry(&map.nodes[&node].zone).or_default();
        keyed.push((*earlier, rank, node));
        *earlier += 1;
    }
    keyed.sort();
    keyed.truncate(usize::from(map.replication));
    keyed.sort_by_key(|&(_, rank, _)| rank);
    keyed.into_iter().map(|(_, _, node)| node).collect()
}

fn specs(nodes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Spec>> {
    proptest::collection::vec((1u8..5, 0u8..4, proptest::bool::weighted(0.85)), nodes)
}

proptest! {
    #[test]
    fn replica_sets_equal_their_definition(
        specs in specs(1..12), replication in 1u8..9, seed: u64, removed in proptest::collection::vec(0usize..12, 0..4),
    ) {
        let map = map_of(&specs, replication, seed, &removed);
        let sets = Placement::of(&map).replica_sets();
        prop_assert_eq!(sets.len(), 64);
        for (partition, set) in sets.iter().enumerate() {
            let expected = replica_set_by_definition(&map, partition as PartitionId);
            prop_assert_eq!(&set[..], &expected[..]);
            let zones: BTreeSet<&str> = set.iter().map(|id| map.nodes[id].zone.as_str()).collect();
            let all: BTreeSet<&str> =
                map.nodes.values().filter(|node| node.is_eligible()).map(|node| node.zone.as_str()).collect();
            prop_assert_eq!(zones.len(), all.len().min(set.len()), "as many zones as there can be");
        }
    }

    #[test]
    fn changing_one_node_changes_at_most_one_member(
        specs in specs(2..10), replication in 1u8..6, seed: u64, zone in 0u8..4,
    ) {
        let mut more = specs.clone();
        more.push((2, zone, true));
        let (old, new) = (map_of(&specs, replication, seed, &[]), map_of(&more, replication, seed, &[]));
        let newcomer = NodeId(more.len() as u64);
        for (old, new) in Placement::of(&old).replica_sets().iter().zip(Placement::of(&new).replica_sets()) {
            let lost = old.iter().filter(|id| !new.contains(id)).count();
            let gained: Vec<_> = new.iter().filter(|id| !old.contains(id)).collect();
            prop_assert!(lost <= 1 && gained.len() <= 1 && gained.iter().all(|id| **id == newcomer));
            prop_assert!(lost == 0 || gained.len() == 1);
        }
    }

    #[test]
    fn bounded_load_is_bounded_distinct_and_spread(
        specs in proptest::collection::vec((1u8..4, 0u8..3, Just(true)), 1..12),
        replication in 1u8..5, permille in 1u16..400, seed: u64,
    ) {
        let mut map = map_of(&specs, replication, seed, &[]);
        let plain = Placement::of(&map).replica_sets();
        map.balance_permille = permille;
        let placement = Placement::of(&map);
        let bounded = placement.replica_sets();
        for (partition, (plain, bounded)) in plain.iter().zip(&bounded).enumerate() {
            let zones = |set: &NodeList| set.iter().map(|id| map.nodes[id].zone.clone()).collect::<Vec<_>>();
            prop_assert_eq!(zones(plain), zones(bounded), "it stays within each zone");
            prop_assert_eq!(bounded.iter().collect::<BTreeSet<_>>().len(), bounded.len());
            // The order of the whole ranking agrees with the replica set's own.
            let mut all: NodeList = rank_of_nodes(&map, partition as PartitionId).into_iter().collect();
            placement.sort(partition as PartitionId, bounded, &mut all);
            let members: Vec<_> = all.iter().filter(|id| bounded.contains(id)).collect();
            prop_assert!(members.into_iter().eq(bounded.iter()));
            prop_assert_eq!(all.len(), map.nodes.len());
            // Sorting a part gives a part of the sorted whole.
            let mut part: NodeList = all.iter().copied().step_by(2).collect();
            let expected = part.clone();
            part.reverse();
            placement.sort(partition as PartitionId, bounded, &mut part);
            prop_assert_eq!(part, expected);
        }
    }
}

/// How many partitions have each node as their primary, and as any member.
fn loads(sets: &[NodeList]) -> BTreeMap<NodeId, (u64, u64)> {
    let mut loads = BTreeMap::new();
    for set in sets {
        for (place, &id) in set.iter().enumerate() {
            let load: &mut (u64, u64) = loads.entry(id).or_default();
            load.0 += u64::from(place == 0);
            load.1 += 1;
        }
    }
    loads
}

#[test]
fn bounded_load_keeps_every_node_below_its_cap() {
    let specs: Vec<Spec> = (0..30).map(|_| (1, 0, true)).collect();
    let mut map = map_of(&specs, 3, 5, &[]);
    map.partitions = 4096;
    map.balance_permille = 100;
    for (primaries, copies) in loads(&Placement::of(&map).replica_sets()).into_values() {
        // 1.1 * 4096 / 30 = 150.2, and three times that for all copies.
        assert!(primaries <= 151 && copies <= 451, "{primaries} {copies}");
    }
    // Two zones of 10 and 20 nodes: each zone holds one copy of everything, so its nodes have unequal shares.
    let specs: Vec<Spec> = (0..30).map(|number| (1, u8::from(number >= 10), true)).collect();
    let mut map = map_of(&specs, 2, 5, &[]);
    map.partitions = 4096;
    map.balance_permille = 100;
    for (id, (_, copies)) in loads(&Placement::of(&map).replica_sets()) {
        let cap = if id.0 <= 10 { 451 } else { 226 };
        assert!(copies <= cap, "{id:?}: {copies}");
    }
}

#[test]
fn weights_give_primaries_in_proportion() {
    let specs: Vec<Spec> = [1, 2, 3, 4, 1, 2, 3, 4].iter().map(|&weight| (weight, 0, true)).collect();
    let mut map = map_of(&specs, 2, 9, &[]);
    map.partitions = 16384;
    for (id, (primaries, _)) in loads(&Placement::of(&map).replica_sets()) {
        let chance = f64::from(map.nodes[&id].weight) / 20.0;
        let expected = 16384.0 * chance;
        let deviation = (expected * (1.0 - chance)).sqrt();
        assert!((primaries as f64 - expected).abs() < 5.0 * deviation, "{id:?}: {primaries} of {expected}");
    }
}

#[test]
fn zones_leave_primaries_uniform() {
    let specs: Vec<Spec> = (0..9).map(|number| (1, number % 3, true)).collect();
    let mut map = map_of(&specs, 3, 2, &[]);
    map.partitions = 16384;
    for (id, (primaries, _)) in loads(&Placement::of(&map).replica_sets()) {
        let (expected, deviation) = (16384.0 / 9.0, (16384.0 * 8.0 / 81.0f64).sqrt());
        assert!((primaries as f64 - expected).abs() < 5.0 * deviation, "{id:?}: {primaries}");
    }
}

/// Partitions whose set changed, and whose primary changed.
fn moved(old: &View, new: &View) -> (u64, u64) {
    let rows = old.table.rows.iter().zip(&new.table.rows);
    rows.fold((0, 0), |(copies, primaries), (old, new)| {
        let (old, new) = (&old.replica_set, &new.replica_set);
        (copies + u64::from(old != new), primaries + u64::from(old.first() != new.first()))
    })
}

fn assert_share(count: u64, trials: f64, chance: f64, what: &str) {
    let (expected, deviation) = (trials * chance, (trials * chance * (1.0 - chance)).sqrt());
    assert!((count as f64 - expected).abs() < 5.0 * deviation, "{what}: {count}, expected {expected}");
}

#[test]
fn membership_changes_move_what_they_must_and_no_more() {
    let (nodes, replicas, seeds) = (10.0, 3.0, 8u32);
    let trials = f64::from(seeds) * 1024.0;
    let (mut added, mut lost) = ((0, 0), (0, 0));
    for seed in 0..u64::from(seeds) {
        let mut view = cluster(1, 1024, 3, seed);
        for node in 2..=10 {
            view = settle(apply(&apply(&view, &join(node)), &admit(node)));
        }
        let more = apply(&apply(&view, &join(11)), &admit(11));
        let (copies, primaries) = moved(&view, &more);
        added = (added.0 + copies, added.1 + primaries);
        for (old, new) in view.table.rows.iter().zip(&more.table.rows) {
            // What changes, changes for the newcomer alone, and in its favour.
            let rest: Vec<_> = new.replica_set.iter().filter(|id| **id != NodeId(11)).collect();
            assert!(
                rest.into_iter()
                    .eq(old.replica_set.iter().take(3 - usize::from(old.replica_set != new.replica_set)))
            );
        }
        let less = apply(&view, &MapChange::Drain { node: NodeId(4) });
        let (copies, primaries) = moved(&view, &less);
        lost = (lost.0 + copies, lost.1 + primaries);
        for (old, new) in view.table.rows.iter().zip(&less.table.rows) {
            // The heir of every place is the old next.
            let rest: Vec<_> = old.replica_set.iter().filter(|id| **id != NodeId(4)).collect();
            assert!(rest.iter().zip(&new.replica_set).all(|(old, new)| *old == new));
        }
        // Replacing: the new node takes over exactly what the forgotten one had.
        let gone = apply(&settle(less), &MapChange::Forget { node: NodeId(4) });
        let replaced = apply(&apply(&gone, &join(12)), &admit(12));
        for (old, new) in view.table.rows.iter().zip(&replaced.table.rows) {
            let renamed = old.replica_set.iter().map(|&id| if id == NodeId(4) { NodeId(12) } else { id });
            assert!(renamed.eq(new.replica_set.iter().copied()));
        }
    }
    assert_share(added.0, trials, replicas / (nodes + 1.0), "copies moved by an added node");
    assert_share(added.1, trials, 1.0 / (nodes + 1.0), "primaries moved by an added node");
    assert_share(lost.0, trials, replicas / nodes, "copies moved by a lost node");
    assert_share(lost.1, trials, 1.0 / nodes, "primaries moved by a lost node");
}
