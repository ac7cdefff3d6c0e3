//! Judgements, step by step on a clock of the test's own.

use super::*;
use crate::cluster::testing::{map_of, record_of};

const TWO: NodeId = NodeId(2);
const RUN: Incarnation = Incarnation(1);

struct World {
    map: ClusterMap,
    watch: Watch,
    grants: Grants,
    timing: Timing,
    now: Tick,
}

impl World {
    /// A leader (node 1) of two nodes that was elected just now.
    fn new() -> Self {
        let now = Tick(5_000_000_000);
        let mut world = Self {
            map: map_of(2),
            watch: Watch::default(),
            grants: Grants::default(),
            timing: Timing::default(),
            now,
        };
        world.watch.lead(now);
        world.grants.lead(1, now);
        world
    }

    fn beat(&mut self, node: u64) -> bool {
        self.watch.heard(NodeId(node), RUN, Epoch(1), self.now);
        self.grants.grant(NodeId(node), RUN, &self.timing, self.now).is_some()
    }

    fn decide(&mut self) -> Vec<Decision> {
        self.watch.decide(&self.map, &self.grants, &self.timing, self.now)
    }

    /// Time passes with node 1 alive (and others as `each` says); the first decision, and how long it took.
    fn run(&mut self, ms: u64, mut each: impl FnMut(&mut Self)) -> Option<(Duration, Decision)> {
        let began = self.now;
        for _ in 0..ms / 10 {
            self.now = self.now + Duration::from_millis(10);
            self.grants.confirmed(1, self.now);
            self.beat(1);
            each(self);
            if let Some(decision) = self.decide().first() {
                return Some((self.now.since(began), *decision));
            }
        }
        None
    }
}

fn down(why: Why) -> Decision {
    Decision::MarkDown { node: TWO, incarnation: RUN, why }
}

#[test]
fn a_run_is_over_when_a_later_one_has_spoken_though_it_was_never_registered() {
    let mut world = World::new();
    assert_eq!(world.run(100, |world| assert!(world.beat(2))), None);
    world.watch.left(TWO, Incarnation(2));
    assert_eq!(world.run(1000, |_| ()).unwrap().1, down(Why::Gone));
}

#[test]
fn a_silent_node_is_down_when_its_lease_ran_out_and_not_before() {
    let mut world = World::new();
    assert_eq!(world.run(3000, |world| assert!(world.beat(2))), None);
    let (took, decision) = world.run(3000, |_| ()).unwrap();
    assert_eq!(decision, down(Why::Silent));
    assert!(took >= world.timing.lease_end() && took < world.timing.lease_end() + Duration::from_millis(20));
}

#[test]
fn a_new_leader_marks_a_silent_node_down_after_its_predecessors_leases() {
    let mut world = World::new();
    let (took, decision) = world.run(3000, |_| ()).unwrap();
    assert_eq!(decision, down(Why::Silent));
    assert!(took >= world.timing.takeover() && took <= Duration::from_millis(1000));
}

#[test]
fn a_proven_death_needs_no_wait_but_an_open_connection_or_a_heartbeat_contradicts_it() {
    let mut world = World::new();
    world.watch.link(TWO, RUN, true);
    world.beat(2);
    world.now = world.now + Duration::from_millis(5);
    world.watch.gone(TWO, RUN, world.now);
    assert_eq!(world.decide(), [], "its connection is still open");
    world.watch.link(TWO, RUN, false);
    assert_eq!(world.decide(), [down(Why::Gone)]);
    world.beat(2);
    assert_eq!(world.decide(), [], "it was heard after the dial");
    let dialed = world.now;
    world.now = world.now + Duration::from_millis(1);
    world.beat(2);
    world.watch.gone(TWO, RUN, dialed);
    assert_eq!(world.decide(), [], "it was heard after the dial began");
    world.watch.gone(TWO, RUN.next(), world.now);
    assert_eq!(world.decide(), [], "the proof is about another run");
}

#[test]
fn a_leader_without_a_quorum_for_a_while_hears_nodes_again_before_it_judges() {
    let mut world = World::new();
    assert_eq!(world.run(2000, |world| assert!(world.beat(2))), None);
    // No confirmation for two seconds: nobody gets a lease, but both are heard.
    for _ in 0..200 {
        world.now = world.now + Duration::from_millis(10);
        world.watch.heard(NodeId(1), RUN, Epoch(1), world.now);
        world.watch.heard(TWO, RUN, Epoch(1), world.now);
        assert_eq!(world.decide(), []);
    }
}

/// Otherwise what it decided while it was cut off is agreed when it is back, and everybody is marked down at once.
#[test]
fn a_leader_that_was_cut_off_judges_nobody_before_it_has_listened_again() {
    let mut world = World::new();
    assert_eq!(world.run(2000, |world| assert!(world.beat(2))), None);
    for _ in 0..200 {
        world.now = world.now + Duration::from_millis(10);
        world.watch.heard(NodeId(1), RUN, Epoch(1), world.now);
        assert_eq!(world.decide(), [], "it hears nobody, and no quorum hears it");
    }
    let back = world.now;
    let mut hears = |world: &mut World| {
        if world.now.since(back) >= Duration::from_millis(300) {
            world.beat(2);
        }
    };
    assert_eq!(world.run(3000, &mut hears), None, "the other node beats a moment after both are back");
}

#[test]
fn a_leader_that_was_stopped_listens_before_it_judges() {
    let mut world = World::new();
    assert_eq!(world.run(2000, |world| assert!(world.beat(2))), None);
    world.now = world.now + Duration::from_secs(20);
    assert_eq!(world.decide(), []);
    world.beat(1);
    world.beat(2);
    assert_eq!(world.run(2000, |world| assert!(world.beat(2))), None);
}

#[test]
fn a_run_that_has_just_been_registered_gets_time_to_heartbeat() {
    let mut world = World::new();
    assert_eq!(world.run(3000, |world| assert!(world.beat(2))), None);
    record_of(&mut world.map, 2).incarnation = RUN.next();
    let (took, decision) = world.run(3000, |_| ()).unwrap();
    assert_eq!(decision, Decision::MarkDown { node: TWO, incarnation: RUN.next(), why: Why::Silent });
    assert!(took >= world.timing.lease_end());
}

#[test]
fn a_node_that_left_is_down_at_once() {
    let mut world = World::new();
    world.beat(2);
    world.watch.left(TWO, RUN);
    assert_eq!(world.decide(), [down(Why::Left)]);
}

#[test]
fn a_node_down_for_long_is_excluded_once() {
    let mut world = World::new();
    record_of(&mut world.map, 2).liveness = Liveness::Down { excluded: false };
    let (took, decision) = world.run(60_000, |_| ()).unwrap();
    assert_eq!(decision, Decision::Exclude { node: TWO, incarnation: RUN });
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(31));
    record_of(&mut world.map, 2).liveness = Liveness::Down { excluded: true };
    assert_eq!(world.run(60_000, |_| ()), None);
}

#[test]
fn evidence_is_kept_for_a_while_and_told_once() {
    let (mut log, now) = (EvidenceLog::default(), Tick(50_000_000_000));
    assert!(log.add(TWO, RUN, now));
    assert!(!log.add(TWO, RUN, now + Duration::from_secs(1)));
    assert!(log.add(TWO, RUN.next(), now + Duration::from_secs(1)));
    assert!(log.holds(TWO, RUN.next(), now + Duration::from_secs(2)));
    assert!(!log.holds(TWO, RUN, now));
    assert_eq!(log.recent(now + Duration::from_secs(3))[0].age_ms, 2000);
    assert!(log.recent(now + Duration::from_secs(30)).is_empty());
}
