//! Steps to the right set of voters and members.

use korum_protocol::map::Liveness;
use proptest::prelude::*;

use super::*;
use crate::cluster::testing::{map_of, record_of};

const LONG: Duration = Duration::from_secs(60);

fn set(nodes: impl IntoIterator<Item = u64>) -> BTreeSet<NodeId> {
    nodes.into_iter().map(NodeId).collect()
}

fn step(map: &ClusterMap, voters: &[u64], holds: &dyn Fn(NodeId) -> bool) -> Option<Step> {
    let voters = set(voters.iter().copied());
    let learners = map.nodes.keys().copied().filter(|node| !voters.contains(node)).collect();
    next_step(&Situation {
        me: NodeId(1),
        map,
        holds,
        heard: &|_, _| true,
        down_for: &|_| LONG,
        raft: &Voters { voters, learners },
        joining: &BTreeSet::new(),
        voter_replace_after: Duration::from_secs(5),
    })
}

fn voters_after(map: &ClusterMap, voters: &[u64]) -> Option<BTreeSet<NodeId>> {
    match step(map, voters, &|_| true) {
        None => None,
        Some(Step::SetVoters(voters)) => Some(voters),
        other => panic!("{other:?}"),
    }
}

#[test]
fn voters_grow_with_the_cluster_by_odd_numbers() {
    assert_eq!(voters_after(&map_of(1), &[1]), None);
    assert_eq!(voters_after(&map_of(2), &[1]), None);
    assert_eq!(voters_after(&map_of(3), &[1]), Some(set([1, 2, 3])));
    assert_eq!(voters_after(&map_of(4), &[1, 2, 3]), None);
    assert_eq!(voters_after(&map_of(7), &[1, 2, 3]), Some(set(1..=5)));
}

#[test]
fn voters_stand_in_different_zones() {
    let mut map = map_of(5);
    for node in 1..=3 {
        record_of(&mut map, node).zone = "a".into();
    }
    map.nodes.remove(&NodeId(2));
    assert_eq!(voters_after(&map, &[1]), Some(set([1, 4, 5])));
}

#[test]
fn a_voter_that_is_away_is_replaced_when_another_node_can_vote_and_kept_otherwise() {
    let mut map = map_of(4);
    record_of(&mut map, 2).liveness = Liveness::Down { excluded: false };
    assert_eq!(voters_after(&map, &[1, 2, 3]), Some(set([1, 3, 4])));
    record_of(&mut map, 4).liveness = Liveness::Down { excluded: true };
    assert_eq!(voters_after(&map, &[1, 2, 3]), None);
}

#[test]
fn a_fourth_or_second_node_that_cannot_complete_a_set_changes_nothing() {
    let mut map = map_of(5);
    record_of(&mut map, 5).liveness = Liveness::Down { excluded: false };
    assert_eq!(voters_after(&map, &[1, 2, 3]), None);
    let mut map = map_of(3);
    record_of(&mut map, 3).liveness = Liveness::Down { excluded: false };
    assert_eq!(voters_after(&map, &[1]), None);
}

#[test]
fn a_leaving_node_stops_voting_then_is_forgotten_when_it_holds_nothing() {
    let mut map = map_of(4);
    record_of(&mut map, 2).membership = Membership::Leaving;
    assert_eq!(voters_after(&map, &[1, 2, 3]), Some(set([1, 3, 4])));
    assert_eq!(step(&map, &[1, 3, 4], &|_| true), None);
    assert_eq!(step(&map, &[1, 3, 4], &|node| node != NodeId(2)), Some(Step::Forget(NodeId(2))));
}

#[test]
fn forgotten_voters_go_before_living_ones_so_that_every_step_has_a_quorum() {
    let mut map = map_of(3);
    map.nodes.remove(&NodeId(3));
    assert_eq!(voters_after(&map, &[1, 2, 3]), Some(set([1, 2])));
    assert_eq!(voters_after(&map, &[1, 2]), Some(set([1])));
}

/// Otherwise the leader is left with a voter that never comes back, and nothing is agreed ever again.
#[test]
fn voters_that_never_come_back_go_before_those_that_are_down_and_may() {
    let mut map = map_of(3);
    record_of(&mut map, 2).liveness = Liveness::Down { excluded: false };
    // The disk of 3 was lost: another node has joined at its address.
    record_of(&mut map, 3).liveness = Liveness::Down { excluded: true };
    record_of(&mut map, 3).membership = Membership::Leaving;
    assert_eq!(voters_after(&map, &[1, 2, 3]), Some(set([1, 2])));
    map.nodes.remove(&NodeId(3));
    assert_eq!(voters_after(&map, &[1, 2, 3]), Some(set([1, 2])));
}

#[test]
fn a_joining_node_is_admitted_when_it_was_heard() {
    let mut map = map_of(2);
    record_of(&mut map, 2).membership = Membership::Joining;
    assert_eq!(
        step(&map, &[1], &|_| true),
        Some(Step::Admit { node: NodeId(2), incarnation: Incarnation(1) })
    );
}

proptest! {
    /// From any state the steps end, in an odd set of members that contains every living voter that may stay.
    #[test]
    fn voters_converge(states in proptest::collection::vec((0u8..4, 0u8..3), 1..9), votes in 0usize..6) {
        let mut map = map_of(states.len() as u64);
        for (node, (state, zone)) in (2..).zip(states.iter().skip(1)) {
            let record = record_of(&mut map, node);
            record.zone = zone.to_string();
            match state {
                0 => record.liveness = Liveness::Down { excluded: false },
                1 => record.membership = Membership::Leaving,
                _ => {}
            }
        }
        let mut voters: Vec<u64> = (1..=states.len() as u64).take(votes.max(1)).collect();
        let mut steps = 0;
        while let Some(next) = voters_after(&map, &voters) {
            let removed: Vec<u64> = voters.iter().copied().filter(|node| !next.contains(&NodeId(*node))).collect();
            prop_assert!(next.contains(&NodeId(1)) && removed.len() <= 1, "{voters:?} to {next:?}");
            voters = next.into_iter().map(|node| node.0).collect();
            steps += 1;
            prop_assert!(steps < 10);
        }
        prop_assert!(voters.len() % 2 == 1, "{voters:?}");
    }
}
