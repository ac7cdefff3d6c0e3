//! The faults, one by one.
//!
//! For: what each of them does to a world, and whom it may cost a copy.
//! Not here: when one happens, and how many may at once (`faults`).

use std::time::Duration;

use korum_node::env::simulated::network;
use korum_node::env::simulated::network::Wire;
use rand::RngExt;

use super::wires::Way;
use super::{Faults, Later};
use crate::ending::is_healthy;
use crate::errands::Errand;
use crate::scenario::Run;

/// Most nodes of a run: a run must stay short.
const NODES_MAX: usize = 7;
/// A node that is stopped for less is not taken for dead: what is left of its lease is longer.
const HARMLESS_STOP_MS: u64 = 400;
/// Raft's requests are given up after 50 ms: a node behind slower wires follows nobody.
const HARMLESS_DELAY_MS: u64 = 5;
/// How late a leader's answers may be, milliseconds: a heartbeat is given up after a third of a lease.
const LATE_ANSWER_MS: std::ops::Range<u64> = 80..215;

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `kill -9`.
    Kill,
    /// The machine loses power; what it had sent may be lost, and what it had written and not synced.
    PowerCut,
    /// `kill -9`, and the data directory is gone.
    LoseDisk,
    /// `kill -STOP`, and `kill -CONT` later.
    Stop,
    /// Many short stops.
    Stutter,
    /// Nothing to or from a node arrives.
    Isolate,
    /// Nothing to a node arrives.
    Deafen,
    /// Nothing from a node arrives.
    Mute,
    /// Two nodes do not reach each other.
    PartPair,
    /// The leader's answers reach a node late, and then the node falls silent.
    LateAnswers,
    /// All connections between two nodes break.
    Cut,
    /// One connection between two nodes stands still.
    Stall,
    SlowWires,
    /// Packets are lost and sent again: what is sent on one connection overtakes what was sent on another.
    LossyWires,
    SlowDisk,
    /// `SIGTERM`.
    Terminate,
    Join,
    Drain,
    Replication,
}

/// How often which happens.
const KINDS: &[(u32, Kind)] = &[
    (22, Kind::Kill),
    (8, Kind::PowerCut),
    (4, Kind::LoseDisk),
    (16, Kind::Stop),
    (4, Kind::Stutter),
    (8, Kind::Isolate),
    (5, Kind::Deafen),
    (5, Kind::Mute),
    (6, Kind::PartPair),
    (6, Kind::LateAnswers),
    (6, Kind::Cut),
    (5, Kind::Stall),
    (6, Kind::SlowWires),
    (5, Kind::LossyWires),
    (5, Kind::SlowDisk),
    (5, Kind::Terminate),
    (5, Kind::Join),
    (4, Kind::Drain),
    (3, Kind::Replication),
];

impl Faults {
    pub(super) fn kind(&mut self) -> Kind {
        let total: u32 = KINDS.iter().map(|(weight, _)| weight).sum();
        let mut dice = self.chance.random_range(0..total);
        for &(weight, kind) in KINDS {
            if dice < weight {
                return kind;
            }
            dice -= weight;
        }
        unreachable!("the dice are below the sum")
    }

    /// Breaks this; false if it cannot be now.
    pub(super) fn inject(&mut self, run: &mut Run, kind: Kind) -> bool {
        let Some(victim) = self.victim(&run.world) else { return false };
        let until = run.world.now_us + 1_000 * self.chance.random_range(100..4_000);
        let name = run.world.members[victim].host.name.clone();
        let done = match kind {
            Kind::Kill | Kind::PowerCut | Kind::LoseDisk => self.kill(run, victim, kind),
            Kind::Stop => self.stop_process(run, victim),
            Kind::Stutter => self.stutter(run, victim, until),
            Kind::Isolate | Kind::Deafen | Kind::Mute => self.silence(run, victim, kind, until),
            Kind::LateAnswers => self.late_answers(run, victim),
            Kind::PartPair | Kind::Cut | Kind::Stall => self.part(run, victim, kind, until),
            Kind::SlowWires | Kind::LossyWires => self.slow_wires(run, victim, kind, until),
            Kind::SlowDisk => {
                let most = [100, 100, 500][self.chance.random_range(0..3)];
                let delay = Duration::from_millis(self.chance.random_range(5..most));
                run.world.members[victim].host.disk.delay = delay;
                self.active.push((until, Later::Disk(victim)));
                true
            }
            Kind::Terminate => {
                let may = self.affects(run, victim);
                if may {
                    run.world.members[victim].terminate(run.world.now_us);
                }
                may
            }
            Kind::Join => {
                let number = run.world.members.len();
                if number < NODES_MAX {
                    run.add_member(number, true);
                }
                number < NODES_MAX
            }
            Kind::Drain => self.drain(run, victim),
            Kind::Replication => self.set_replication(run),
        };
        if done {
            tracing::info!(?kind, name, until_ms = until / 1_000, affected = ?self.affected, "fault");
            network(|network| network.note(format!("{kind:?} {name}").as_bytes()));
        }
        done
    }

    fn kill(&mut self, run: &mut Run, victim: usize, kind: Kind) -> bool {
        let now = run.world.now_us;
        let loses_disk = kind == Kind::LoseDisk;
        // A majority of the voters must keep what they have written.
        if loses_disk && (self.lost_disks > 0 || is_healthy(&run.world).is_err()) {
            return false;
        }
        if !self.affects(run, victim) {
            return false;
        }
        let member = &mut run.world.members[victim];
        let id = member.node().map(|node| node.id());
        let permille = self.chance.random_range(0..1000);
        let disk = &mut member.host.disk;
        (disk.torn_permille, disk.kept_permille) = (permille, Some(permille));
        member.kill(now, kind == Kind::PowerCut);
        if loses_disk {
            member.lose_disk();
            self.lost_disks += 1;
            if let Some(id) = id {
                self.errands.add(now + 1_500_000, Errand::Forget(id.to_string()));
            }
        }
        let away_ms = [self.chance.random_range(1..50), self.chance.random_range(50..5_000)];
        let away_ms = away_ms[self.chance.random_range(0..2)];
        self.down.insert(victim, now + away_ms * 1_000);
        true
    }

    fn stop_process(&mut self, run: &mut Run, victim: usize) -> bool {
        let length = self.chance.random_range(20..4_000);
        if length > HARMLESS_STOP_MS && !self.affects(run, victim) {
            return false;
        }
        run.world.members[victim].host.stop();
        self.active.push((run.world.now_us + length * 1_000, Later::GoOn(victim)));
        true
    }

    fn stutter(&mut self, run: &mut Run, victim: usize, until: u64) -> bool {
        if !self.affects(run, victim) {
            return false;
        }
        let (run_ms, stop_ms) = (self.chance.random_range(1..20), self.chance.random_range(5..200));
        self.active.push((run.world.now_us, Later::Stutter { victim, until, run_ms, stop_ms }));
        true
    }

    fn silence(&mut self, run: &mut Run, victim: usize, kind: Kind, until: u64) -> bool {
        if !self.affects(run, victim) {
            return false;
        }
        let with_clients = self.chance.random_range(0..2) == 0;
        let ip = run.world.members[victim].ip();
        let mut ways = ways(run, victim, kind != Kind::Deafen, kind != Kind::Mute);
        if with_clients {
            let clients = run.world.clients.iter().map(|client| client.ip);
            ways.extend(clients.flat_map(|client| {
                let out = (kind != Kind::Deafen).then_some((ip, client));
                out.into_iter().chain((kind != Kind::Mute).then_some((client, ip)))
            }));
        }
        self.hold(ways, until);
        true
    }

    fn late_answers(&mut self, run: &mut Run, victim: usize) -> bool {
        let Some(leader) = run.world.leader().filter(|leader| *leader != victim) else { return false };
        if !self.affects(run, victim) {
            return false;
        }
        let delay_us = 1_000 * self.chance.random_range(LATE_ANSWER_MS);
        let silent_at = run.world.now_us + 1_000 * self.chance.random_range(300..1_200);
        let until = silent_at + 1_000 * self.chance.random_range(900..3_000);
        let way = (run.world.members[leader].ip(), run.world.members[victim].ip());
        self.break_wires(vec![way], Wire { delay_us, ..Wire::default() }, until);
        self.active.push((silent_at, Later::Mute { victim, until }));
        true
    }

    fn part(&mut self, run: &mut Run, victim: usize, kind: Kind, until: u64) -> bool {
        let Some(other) = self.victim(&run.world).filter(|other| *other != victim) else { return false };
        let (one, two) = (run.world.members[victim].ip(), run.world.members[other].ip());
        if kind == Kind::Cut {
            network(|network| network.cut(one, two));
            return true;
        }
        // Either may be given up by the other, but not both.
        if !self.affects(run, 1_000 + victim * 100 + other) {
            return false;
        }
        if kind == Kind::PartPair {
            self.hold(vec![(one, two), (two, one)], until);
        } else if let Some(connection) = network(|network| network.stall(one, two)) {
            self.active.push((until, Later::Unstall(connection)));
        }
        true
    }

    fn slow_wires(&mut self, run: &mut Run, victim: usize, kind: Kind, until: u64) -> bool {
        let most = (kind == Kind::SlowWires).then(|| [HARMLESS_DELAY_MS, 30][self.chance.random_range(0..2)]);
        if most.is_none_or(|most| most > HARMLESS_DELAY_MS) && !self.affects(run, victim) {
            return false;
        }
        let wire = match most {
            Some(most) => Wire {
                delay_us: 1_000 * self.chance.random_range(1..=most),
                jitter_us: 1_000 * self.chance.random_range(1..=most),
                ..Wire::default()
            },
            None => Wire {
                late_permille: self.chance.random_range(20..300),
                late_us: 1_000 * self.chance.random_range(50..400),
                ..Wire::default()
            },
        };
        self.break_wires(ways(run, victim, true, true), wire, until);
        true
    }

    /// Nothing passes.
    fn hold(&mut self, ways: Vec<Way>, until: u64) {
        self.break_wires(ways, Wire { held: true, ..Wire::default() }, until);
    }

    fn break_wires(&mut self, ways: Vec<Way>, wire: Wire, until: u64) {
        let cause = self.wires.begin(ways, wire);
        self.active.push((until, Later::Mend(cause)));
    }

    /// The node says nothing to other nodes any more.
    pub(super) fn mute(&mut self, run: &Run, victim: usize, until: u64) {
        self.hold(ways(run, victim, true, false), until);
    }

    fn drain(&mut self, run: &mut Run, victim: usize) -> bool {
        let stay = run.world.members.iter().filter(|member| !member.leaves).count();
        if stay <= 3 || run.world.members[victim].leaves || self.errands.is_idle().is_err() {
            return false;
        }
        let Some(node) = run.world.members[victim].node() else { return false };
        self.errands.add(run.world.now_us, Errand::Drain { number: victim, id: node.id().to_string() });
        true
    }

    fn set_replication(&mut self, run: &Run) -> bool {
        if self.errands.is_idle().is_err() {
            return false;
        }
        let copies = self.chance.random_range(1..=3);
        // What has broken already must still be covered by the copies that remain.
        if !self.is_wild && usize::from(copies) <= self.affected.len() {
            return false;
        }
        self.fewest_copies = self.fewest_copies.min(copies);
        self.errands.add(run.world.now_us, Errand::Replication(copies));
        true
    }
}

/// The wires between a node and all others.
fn ways(run: &Run, victim: usize, out: bool, into: bool) -> Vec<Way> {
    let ip = run.world.members[victim].ip();
    let others = run.world.members.iter().map(|member| member.ip()).filter(|other| *other != ip);
    let both = others.flat_map(|other| [(out, (ip, other)), (into, (other, ip))]);
    both.filter(|(broken, _)| *broken).map(|(_, way)| way).collect()
}
