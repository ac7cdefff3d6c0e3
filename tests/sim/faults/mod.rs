//! What breaks, when, and for how long.
//!
//! For: choosing faults by chance, undoing them, starting ended nodes again as a supervisor would.
//! Not here: how a host stops or a wire holds (`world`, `env::simulated`), what an operator does (`errands`).
//!
//! A write survives the loss of any R-1 nodes. So a run that is not wild breaks at most R-1 nodes between two moments
//! of health: whoever may be taken for dead counts, from then on until everything is whole again.

mod kinds;
mod wires;

use std::collections::{BTreeMap, BTreeSet};

use korum_node::env::simulated::network;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::ending::is_healthy;
use crate::errands::{Errand, Errands};
use crate::scenario::{Plan, Run};
use crate::world::World;
use crate::world::host::DISK_DELAY;
use wires::Wires;

/// Everything is whole again when it has looked so for this long: what was done shows with delay.
const WHOLE_US: u64 = 300_000;
/// A supervisor starts an ended process again after this.
const RESTART_MS: u64 = 300;
/// A node that ends by itself so often will not run any more.
const ENDS_MAX: usize = 30;

/// What happens later, without chance: faults end, or go into their next part.
enum Later {
    GoOn(usize),
    /// What is wrong with wires ends.
    Mend(u64),
    /// A connection goes on.
    Unstall(u64),
    /// A disk is as quick as others again.
    Disk(usize),
    /// A node says nothing to others any more.
    Mute {
        victim: usize,
        until: u64,
    },
    /// A node stops or goes on.
    Stutter {
        victim: usize,
        until: u64,
        run_ms: u64,
        stop_ms: u64,
    },
}

/// The faults of a run.
pub struct Faults {
    /// Faults so far.
    pub count: usize,
    chance: SmallRng,
    is_wild: bool,
    next_us: u64,
    gap_ms: (u64, u64),
    active: Vec<(u64, Later)>,
    wires: Wires,
    /// Nothing breaks any more.
    is_over: bool,
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
            wires: Wires::default(),
            is_over: false,
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
        self.is_over = true;
        for (until, _) in &mut self.active {
            *until = 0;
        }
        for at in self.down.values_mut() {
            *at = (*at).min(run.world.now_us);
        }
    }

    /// An operator has one more thing to do.
    pub fn add_errand(&mut self, errand: Errand, not_before_us: u64) {
        self.errands.add(not_before_us, errand);
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
            let (_, later) = self.active.remove(place);
            match later {
                Later::GoOn(victim) => run.world.members[victim].host.go_on(),
                Later::Mend(cause) => self.wires.end(cause),
                Later::Unstall(connection) => network(|network| network.go_on(connection)),
                Later::Disk(victim) => run.world.members[victim].host.disk.delay = DISK_DELAY,
                Later::Mute { .. } if self.is_over => {}
                Later::Mute { victim, until } => self.mute(run, victim, until),
                Later::Stutter { victim, until, run_ms, stop_ms } => {
                    let host = &mut run.world.members[victim].host;
                    let is_stopped = host.is_stopped();
                    if is_stopped || self.is_over {
                        host.go_on();
                    } else {
                        host.stop();
                    }
                    let next = now + 1_000 * if is_stopped { run_ms } else { stop_ms };
                    if !self.is_over && (next < until || !is_stopped) {
                        self.active.push((next, later));
                    }
                }
            }
        }
        self.supervise(run)?;
        self.errands.step(run);
        if now >= self.next_look_us {
            self.next_look_us = now + 50_000;
            let rests = self.active.iter().all(|(_, later)| matches!(later, Later::Disk(_)));
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
        match world.leader() {
            Some(number) if running.contains(&number) && self.chance.random_range(0..3) == 0 => Some(number),
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
}
