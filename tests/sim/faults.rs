//! What breaks, when, and for how long.
//!
//! For: choosing faults by chance, undoing them, starting ended nodes again as a supervisor would.
//! Not here: how a host stops or a wire holds (`world`, `env::simulated`), what an operator does (`errands`).
//!
//! A write survives the loss of any R-1 nodes. So a run that is not wild breaks at most R-1 nodes between two moments
//! of health: whoever may be taken for dead counts, from then on until everything is whole again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use korum_node::env::simulated::network;
use korum_node::env::simulated::network::Wire;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::ending::is_healthy;
use crate::errands::{Errand, Errands};
use crate::scenario::{Plan, Run};
use crate::world::World;

/// Most nodes of a run: a run must stay short.
const NODES_MAX: usize = 7;
/// A node that is stopped for less is not taken for dead: what is left of its lease is longer.
const HARMLESS_STOP_MS: u64 = 400;
/// Everything is whole again when it has looked so for this long: what was done shows with delay.
const WHOLE_US: u64 = 300_000;
/// A supervisor starts an ended process again after this.
const RESTART_MS: u64 = 300;
/// A node that ends by itself so often will not run any more.
const ENDS_MAX: usize = 30;

/// What is to be undone.
enum Undo {
    GoOn(usize),
    Wires(Vec<(Ipv4Addr, Ipv4Addr)>),
    Disk(usize),
}

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kill,
    PowerCut,
    LoseDisk,
    Stop,
    Isolate,
    Deafen,
    Mute,
    PartPair,
    Cut,
    SlowWires,
    SlowDisk,
    Terminate,
    Join,
    Drain,
    Replication,
}

const KINDS: &[(u32, Kind)] = &[
    (22, Kind::Kill),
    (8, Kind::PowerCut),
    (4, Kind::LoseDisk),
    (16, Kind::Stop),
    (8, Kind::Isolate),
    (5, Kind::Deafen),
    (5, Kind::Mute),
    (6, Kind::PartPair),
    (6, Kind::Cut),
    (6, Kind::SlowWires),
    (5, Kind::SlowDisk),
    (5, Kind::Terminate),
    (5, Kind::Join),
    (4, Kind::Drain),
    (3, Kind::Replication),
];

/// The faults of a run.
pub struct Faults {
    /// Faults so far.
    pub count: usize,
    chance: SmallRng,
    is_wild: bool,
    next_us: u64,
    gap_ms: (u64, u64),
    active: Vec<(u64, Undo)>,
    /// Nodes that may have been taken for dead since everything was whole. Beyond the nodes' numbers: pairs.
    affected: BTreeSet<usize>,
    /// The fewest copies that were asked for since then.
    fewest_copies: u8,
    /// When which node is started again.
    down: BTreeMap<usize, u64>,
    lost_disks: usize,
    ends: BTreeMap<usize, usize>,
    errands: Errands,
    next_look_us: u64,
    /// Since when everything has looked whole.
    whole_since_us: Option<u64>,
}

impl Faults {
    pub fn new(plan: &Plan) -> Self {
        let mut chance = SmallRng::seed_from_u64(plan.seed ^ 0x6661_756c);
        let gap_ms = [(50, 500), (200, 2_000), (500, 4_000)][chance.random_range(0..3)];
        Self {
            count: 0,
            chance,
            is_wild: plan.is_wild,
            next_us: 0,
            gap_ms,
            active: Vec::new(),
            affected: BTreeSet::new(),
            fewest_copies: plan.replication,
            down: BTreeMap::new(),
            lost_disks: 0,
            ends: BTreeMap::new(),
            errands: Errands::default(),
            next_look_us: 0,
            whole_since_us: None,
        }
    }

    /// Breaks something when it is time for it.
    pub fn step(&mut self, run: &mut Run) -> Result<(), String> {
        let now = run.world.now_us;
        if now >= self.next_us {
            self.next_us = now + 1_000 * self.chance.random_range(self.gap_ms.0..=self.gap_ms.1);
            let kind = self.kind();
            if self.inject(run, kind) {
                self.count += 1;
            }
        }
        self.tend(run)
    }

    /// Ends all faults: what is down is started, what is held is let go.
    pub fn stop(&mut self, run: &mut Run) {
        for (until, _) in &mut self.active {
            *until = 0;
        }
        for at in self.down.values_mut() {
            *at = (*at).min(run.world.now_us);
        }
    }

    /// Nothing is left to be undone or done.
    ///
    /// # Errors
    /// What is.
    pub fn is_idle(&self) -> Result<(), String> {
        if !self.down.is_empty() {
            return Err(format!("nodes {:?} are down", self.down.keys()));
        }
        self.errands.is_idle()
    }

    /// Undoes what has lasted long enough.
    pub fn tend(&mut self, run: &mut Run) -> Result<(), String> {
        let now = run.world.now_us;
        while let Some(place) = self.active.iter().position(|(until, _)| *until <= now) {
            let (_, undo) = self.active.remove(place);
            match undo {
                Undo::GoOn(victim) => run.world.members[victim].host.go_on(),
                Undo::Wires(wires) => network(|network| {
                    wires.iter().for_each(|&(from, to)| network.set_wire(from, to, Wire::default()));
                }),
                Undo::Disk(victim) => run.world.members[victim].host.disk.delay = Duration::from_millis(1),
            }
        }
        self.supervise(run)?;
        self.errands.step(run);
        if now >= self.next_look_us {
            self.next_look_us = now + 50_000;
            let rests = self.active.iter().all(|(_, undo)| matches!(undo, Undo::Disk(_)));
            if !rests || self.is_idle().is_err() || is_healthy(&run.world).is_err() {
                self.whole_since_us = None;
            } else if now - *self.whole_since_us.get_or_insert(now) >= WHOLE_US {
                self.affected.clear();
                self.lost_disks = 0;
                let copies = run.world.nodes().map(|(_, _, node)| node.view().map.replication).min();
                self.fewest_copies = copies.unwrap_or(1);
            }
        }
        Ok(())
    }

    /// Starts what has ended.
    fn supervise(&mut self, run: &mut Run) -> Result<(), String> {
        let now = run.world.now_us;
        for number in 0..run.world.members.len() {
            let member = &mut run.world.members[number];
            let Some(end) = member.ended.take() else { continue };
            let name = member.host.name.clone();
            tracing::info!(name, ?end, "a node ended");
            if member.leaves && end.is_ok() {
                run.tell_clients();
                continue;
            }
            if let Err(why) = end {
                let ends = self.ends.entry(number).or_default();
                *ends += 1;
                if *ends > ENDS_MAX {
                    return Err(format!("{name} does not start any more: {why}"));
                }
            }
            self.down.entry(number).or_insert(now + RESTART_MS * 1_000);
        }
        let due: Vec<usize> =
            self.down.iter().filter(|(_, at)| **at <= now).map(|(&number, _)| number).collect();
        for number in due {
            self.down.remove(&number);
            let seeds = run.seeds();
            tracing::info!(name = run.world.members[number].host.name, "starts again");
            run.world.members[number].start(&seeds);
        }
        Ok(())
    }

    fn kind(&mut self) -> Kind {
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

    /// A running node; the leader more often than others.
    fn victim(&mut self, world: &World) -> Option<usize> {
        let running: Vec<usize> = world
            .members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.node().is_some() && !member.host.is_stopped())
            .map(|(number, _)| number)
            .collect();
        if running.is_empty() {
            return None;
        }
        let leader = world.nodes().find_map(|(_, _, node)| node.cluster().leader());
        let leader = leader.and_then(|id| world.nodes().find(|(_, _, node)| node.id() == id));
        match leader {
            Some((number, _, _)) if running.contains(&number) && self.chance.random_range(0..3) == 0 => {
                Some(number)
            }
            _ => Some(running[self.chance.random_range(0..running.len())]),
        }
    }

    /// May this one be taken for dead, too?
    fn affects(&mut self, run: &Run, victim: usize) -> bool {
        let members = run.world.members.iter().filter(|member| !member.leaves).count();
        let copies = usize::from(self.fewest_copies).min(members);
        let budget = if self.is_wild { members } else { copies.saturating_sub(1) };
        let is_counted = self.affected.contains(&victim);
        if !is_counted && self.affected.len() >= budget {
            return false;
        }
        self.affected.insert(victim);
        self.whole_since_us = None;
        true
    }

    fn inject(&mut self, run: &mut Run, kind: Kind) -> bool {
        let Some(victim) = self.victim(&run.world) else { return false };
        let now = run.world.now_us;
        let until = now + 1_000 * self.chance.random_range(100..4_000);
        let name = run.world.members[victim].host.name.clone();
        let done = match kind {
            Kind::Kill | Kind::PowerCut | Kind::LoseDisk => self.kill(run, victim, kind),
            Kind::Stop => {
                let length = self.chance.random_range(20..4_000);
                if length > HARMLESS_STOP_MS && !self.affects(run, victim) {
                    return false;
                }
                run.world.members[victim].host.stop();
                self.active.push((now + length * 1_000, Undo::GoOn(victim)));
                true
            }
            Kind::Isolate | Kind::Deafen | Kind::Mute => {
                if !self.affects(run, victim) {
                    return false;
                }
                let with_clients = self.chance.random_range(0..2) == 0;
                let ip = run.world.members[victim].ip();
                let mut others: Vec<Ipv4Addr> =
                    run.world.members.iter().map(|member| member.ip()).filter(|other| *other != ip).collect();
                if with_clients {
                    others.extend(run.world.clients.iter().map(|client| client.ip));
                }
                let out = others.iter().filter(|_| kind != Kind::Deafen).map(|&other| (ip, other));
                let into = others.iter().filter(|_| kind != Kind::Mute).map(|&other| (other, ip));
                let wires: Vec<_> = out.chain(into).collect();
                self.hold(wires, until);
                true
            }
            Kind::PartPair => {
                let Some(other) = self.victim(&run.world).filter(|other| *other != victim) else {
                    return false;
                };
                // Either may be given up by the other, but not both.
                if !self.affects(run, 1_000 + victim * 100 + other) {
                    return false;
                }
                let (one, other) = (run.world.members[victim].ip(), run.world.members[other].ip());
                self.hold(vec![(one, other), (other, one)], until);
                true
            }
            Kind::Cut => {
                let Some(other) = self.victim(&run.world).filter(|other| *other != victim) else {
                    return false;
                };
                let (one, other) = (run.world.members[victim].ip(), run.world.members[other].ip());
                network(|network| network.cut(one, other));
                true
            }
            Kind::SlowWires => {
                let most = [5, 30][self.chance.random_range(0..2)];
                let wire = Wire {
                    delay_us: 1_000 * self.chance.random_range(1..=most),
                    jitter_us: 1_000 * self.chance.random_range(1..=most),
                    held: false,
                };
                // Raft's requests are given up after 50 ms: a node behind such wires follows nobody.
                if most > 5 && !self.affects(run, victim) {
                    return false;
                }
                let ip = run.world.members[victim].ip();
                let others = run.world.members.iter().map(|member| member.ip()).filter(|other| *other != ip);
                let wires: Vec<_> = others.flat_map(|other| [(ip, other), (other, ip)]).collect();
                network(|network| wires.iter().for_each(|&(from, to)| network.set_wire(from, to, wire)));
                self.active.push((until, Undo::Wires(wires)));
                true
            }
            Kind::SlowDisk => {
                let delay = Duration::from_millis(self.chance.random_range(5..100));
                run.world.members[victim].host.disk.delay = delay;
                self.active.push((until, Undo::Disk(victim)));
                true
            }
            Kind::Terminate => {
                if !self.affects(run, victim) {
                    return false;
                }
                run.world.members[victim].terminate(now);
                true
            }
            Kind::Join => {
                let number = run.world.members.len();
                if number >= NODES_MAX {
                    return false;
                }
                run.add_member(number, true);
                true
            }
            Kind::Drain => {
                let stay = run.world.members.iter().filter(|member| !member.leaves).count();
                if stay <= 3 || run.world.members[victim].leaves || !self.errands.is_idle().is_ok() {
                    return false;
                }
                let Some(node) = run.world.members[victim].node() else { return false };
                self.errands.add(now, Errand::Drain { number: victim, id: node.id().to_string() });
                true
            }
            Kind::Replication => {
                if !self.errands.is_idle().is_ok() {
                    return false;
                }
                let copies = self.chance.random_range(1..=3);
                // What has broken already must still be covered by the copies that remain.
                if !self.is_wild && usize::from(copies) <= self.affected.len() {
                    return false;
                }
                self.fewest_copies = self.fewest_copies.min(copies);
                self.errands.add(now, Errand::Replication(copies));
                true
            }
        };
        if done {
            tracing::info!(?kind, name, until_ms = until / 1_000, affected = ?self.affected, "fault");
            network(|network| network.note(format!("{kind:?} {name}").as_bytes()));
        }
        done
    }

    fn hold(&mut self, wires: Vec<(Ipv4Addr, Ipv4Addr)>, until: u64) {
        network(|network| {
            for &(from, to) in &wires {
                let wire = Wire { held: true, ..network.wire(from, to) };
                network.set_wire(from, to, wire);
            }
        });
        self.active.push((until, Undo::Wires(wires)));
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
        member.host.disk.torn_permille = self.chance.random_range(0..1000);
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
}
