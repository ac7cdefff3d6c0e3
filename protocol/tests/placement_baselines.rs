//! One suite for all ways of placing data: choose-k and what it is compared against.

use std::collections::{BTreeMap, BTreeSet};

use korum_protocol::id::NodeId;
use korum_protocol::placement::baselines::{Anchor, ChooseK, Jump, Placer, Rendezvous, Ring, Site};
use proptest::prelude::*;

const UNITS: u64 = 8192;

fn sites(weights: &[u8]) -> Vec<Site> {
    let site = |(number, &weight): (usize, &u8)| Site {
        id: NodeId(number as u64 + 1),
        weight,
        zone: format!("zone-{}", number % 3),
    };
    weights.iter().enumerate().map(site).collect()
}

fn all(sites: &[Site]) -> Vec<Box<dyn Placer>> {
    vec![
        Box::new(ChooseK::new(sites)),
        Box::new(Ring::new(sites)),
        Box::new(Rendezvous::new(sites)),
        Box::new(Jump::new(sites)),
        Box::new(Anchor::new(sites)),
    ]
}

fn loads(placer: &dyn Placer) -> BTreeMap<NodeId, u64> {
    let mut loads = BTreeMap::new();
    for unit in 0..UNITS {
        *loads.entry(placer.replicas(unit, 1)[0]).or_default() += 1;
    }
    loads
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn copies_are_distinct_and_as_many_as_can_be(
        weights in proptest::collection::vec(1u8..4, 1..9), copies in 1usize..6,
    ) {
        let sites = sites(&weights);
        for placer in all(&sites) {
            for unit in 0..50 {
                let nodes = placer.replicas(unit, copies);
                let different: BTreeSet<_> = nodes.iter().collect();
                prop_assert_eq!(nodes.len(), copies.min(sites.len()), "{}", placer.name());
                prop_assert_eq!(different.len(), nodes.len(), "{}", placer.name());
                prop_assert_eq!(placer.replicas(unit, 1)[0], nodes[0], "{}", placer.name());
            }
        }
    }

    #[test]
    fn last_node_removed_moves_only_what_it_had(weights in proptest::collection::vec(1u8..4, 2..9)) {
        let more = sites(&weights);
        let (gone, fewer) = more.split_last().unwrap();
        for (before, after) in all(&more).iter().zip(all(fewer)).filter(|(before, _)| before.name() != "anchor") {
            for unit in 0..300 {
                let (old, new) = (before.replicas(unit, 1)[0], after.replicas(unit, 1)[0]);
                prop_assert!(old == new || old == gone.id, "{}: unit {unit}", before.name());
            }
        }
    }

    #[test]
    fn anchor_moves_only_what_it_must_whoever_goes_and_comes(
        count in 2usize..9, goes in any::<prop::sample::Index>(),
    ) {
        let sites = sites(&vec![1; count]);
        let gone = sites[goes.index(count)].id;
        let before = Anchor::new(&sites);
        let mut after = before.clone();
        after.remove(gone);
        let mut again = after.clone();
        prop_assert!(again.add(NodeId(99)));
        prop_assert!(again.add(NodeId(100)));
        for unit in 0..500 {
            let [old, less, more] = [&before, &after, &again].map(|anchor| anchor.replicas(unit, 1)[0]);
            prop_assert!(less != gone && (old == less || old == gone));
            let heir = if old == gone { NodeId(99) } else { old };
            prop_assert!(more == heir || more == NodeId(100));
        }
    }
}

#[test]
fn load_follows_weight() {
    let sites = sites(&[1, 2, 3, 1, 2, 3, 1, 2, 3, 2]);
    let total = 20.0;
    for placer in all(&sites) {
        let loads = loads(&*placer);
        for site in &sites {
            let expected = UNITS as f64 * f64::from(site.weight) / total;
            let ratio = loads[&site.id] as f64 / expected;
            // A ring with 150 virtual nodes is uneven by about 1/sqrt(150) = 8 % for weight 1.
            let bound = if placer.name() == "ring" { 0.45 } else { 5.0 / expected.sqrt() };
            assert!((ratio - 1.0).abs() < bound, "{}: {:?} has {ratio} of its share", placer.name(), site.id);
        }
    }
}

#[test]
fn ring_spreads_copies_over_zones_and_bounds_loads() {
    let sites = sites(&[1; 10]);
    let ring = Ring::new(&sites);
    let zone = |id: NodeId| sites[id.0 as usize - 1].zone.clone();
    for unit in 0..500 {
        let zones: BTreeSet<_> = ring.replicas(unit, 4).into_iter().map(zone).collect();
        assert_eq!(zones.len(), 3);
    }
    let mut loads: BTreeMap<NodeId, u64> = BTreeMap::new();
    let primaries = ring.bounded(1000, 100);
    assert_eq!(primaries.len(), 1000);
    primaries.into_iter().for_each(|id| *loads.entry(id).or_default() += 1);
    assert!(loads.values().all(|&load| load <= 110), "{loads:?}");
}
