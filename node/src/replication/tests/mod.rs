//! A primary, its copies and lossy links under random schedules: writes, reads, breaks, pauses, deaths, cutovers
//! and maps that are passed over. Checks I2 at every step, and that everything comes to rest.
//!
//! Reading order: what there is (`world`), what it says (`traffic`) and does (`commands`, `moves`), how it changes
//! (`maps`, `membership`).

mod commands;
mod maps;
mod membership;
mod moves;
mod traffic;
mod world;

use std::sync::Arc;

use korum_protocol::id::NodeId;
use rand::RngExt;

use self::world::{NODES, PARTITION, Sim, content, id};
use super::primary::{PeerCopy, Stage};

impl Sim {
    fn step(&mut self) {
        let at = self.any_node();
        let wire = (!self.wires.is_empty()).then(|| self.random.random_range(0..self.wires.len()));
        match (self.random.random_range(0..100), wire) {
            (0..12, _) => self.execute(at, true),
            (12..18, _) => self.execute(at, false),
            (18..26, _) => self.settle(),
            (26..34, Some(wire)) => self.send(wire),
            (34..36, Some(wire)) => self.send_last_piece(wire),
            (36..50, Some(wire)) => self.deliver(wire),
            (50..60, Some(wire)) => self.hear(wire),
            (60..62, Some(wire)) => self.say_something_else(wire),
            (62..66, _) => self.look(at),
            (66..71, _) => self.propose(at),
            (71..74, _) => self.log(),
            (74..80, _) => self.adopt(at),
            (80..86, _) => self.route(at),
            (86..92, _) => {
                let to = self.any_node();
                self.open(at, to);
            }
            (92..96, _) => self.grant(at),
            (99, _) => self.register(at),
            (96, Some(wire)) => {
                let link = Arc::clone(&self.wires[wire].link);
                self.close(&link);
            }
            (97, _) => self.drop_lagging(at),
            (98, _) => self.change_membership(),
            _ => {}
        }
    }

    fn describe(&self) -> String {
        let mut text = format!("epoch {} {:?}", self.latest().map.epoch, self.latest().row(PARTITION));
        for (at, node) in self.nodes.iter().enumerate() {
            let epoch = self.views[node.routed].map.epoch;
            text += &format!("\n{:?} run {:?} at {epoch}, lease {:?}", id(at), node.run, self.leased_run(at));
            if let Some(primary) = node.partition.as_primary() {
                text += &format!(", frozen {:?}", primary.frozen);
                for copy in &primary.copies {
                    let stage = match &copy.stage {
                        Stage::Unlinked => "unlinked",
                        Stage::Comparing { .. } => "comparing",
                        Stage::Behind { .. } => "behind",
                        Stage::Streaming { .. } => "streaming",
                        Stage::Live { .. } => "live",
                    };
                    text += &format!(
                        "; {:?} {stage} required {} proposed {:?}",
                        copy.node, copy.is_required, copy.proposed
                    );
                }
            }
        }
        text
    }

    /// Whatever is under way arrives, and is answered.
    fn carry(&mut self) {
        for wire in (0..self.wires.len()).cycle().take(3 * self.wires.len()) {
            self.send(wire);
            self.send_last_piece(wire);
            self.deliver(wire);
            self.hear(wire);
        }
    }

    /// Nothing more happens but what is under way: everything must come to rest, whole and equal.
    fn rest(&mut self) {
        for _ in 0..400 {
            for at in 0..NODES {
                self.come_back(at);
                self.register(at);
                self.grant(at);
                self.adopt(at);
                self.route(at);
                (0..NODES).for_each(|to| self.open(at, to));
                self.look(at);
                self.propose(at);
                self.log();
            }
            self.carry();
            self.settle();
            self.check();
        }
        let row = self.latest().row(PARTITION).clone();
        assert_eq!(row.holders, row.replica_set, "the copies are not complete: {}", self.describe());
        let primary = row.primary.unwrap().0 as usize - 1;
        let copies =
            &self.nodes[primary].partition.as_primary().expect("the primary knows that it is").copies;
        assert!(copies.iter().all(PeerCopy::is_acknowledged), "a copy is not in step");
        let before = self.answered;
        self.execute(primary, true);
        self.carry();
        self.settle();
        assert!(self.answered > before, "a write is not answered");
        let content = |at: NodeId| content(&self.nodes[at.0 as usize - 1].partition.keyspace);
        for &holder in &row.holders {
            assert_eq!(content(holder), content(row.holders[0]), "the copy of {holder:?} differs");
        }
    }
}

#[test]
fn i2_acknowledged_writes_are_on_every_holder_under_random_faults() {
    let seeds: u64 = std::env::var("KORUM_TEST_SCHEDULES").ok().and_then(|it| it.parse().ok()).unwrap_or(100);
    let first: u64 = std::env::var("KORUM_TEST_FIRST").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut counts = [0; 8];
    for seed in first..first + seeds {
        let run = std::panic::catch_unwind(|| {
            let mut sim = Sim::new(seed);
            for _ in 0..3_000 {
                sim.step();
                sim.check();
            }
            sim.rest();
            let [repaired, streamed, parts] = sim.sent;
            [sim.answered, sim.cutovers, sim.small, sim.large, sim.passed, repaired, streamed, parts]
        });
        let Ok(run) = run else { panic!("with seed {seed}") };
        counts.iter_mut().zip(run).for_each(|(count, of_run)| *count += of_run);
    }
    let [answered, cutovers, small, large, passed, repaired, streamed, parts] = counts;
    println!("{seeds} schedules, {answered} answers, {cutovers} cutovers");
    println!("{repaired} copies were repaired, {streamed} streamed, with {parts} parts of collections");
    println!("{small} small frames, {large} large ones, {passed} small ones between their pieces");
    assert!(answered as u64 > 20 * seeds, "the schedules hardly answer anything: {answered}");
    assert!(cutovers as u64 > seeds, "the schedules hardly move anything: {cutovers}");
    assert!(large as u64 > seeds, "the schedules hardly send anything large: {large}");
    assert!(repaired as u64 > seeds, "the schedules hardly repair anything: {repaired}");
    assert!(streamed as u64 > seeds, "the schedules hardly stream anything: {streamed}");
    assert!(parts as u64 > 10 * seeds, "the schedules hardly send anything in parts: {parts}");
    assert!(4 * passed as u64 > seeds, "hardly anything passes between pieces: {passed}");
}
