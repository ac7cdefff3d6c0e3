//! One run: a cluster forms, clients work while things break, everything heals, and the record is judged.
//!
//! For: what follows from a seed, and the order of a run.
//! Not here: the faults (`faults`), what is demanded (`invariants`, `ending`, `history`).

use korum_node::env::simulated::network;
use korum_protocol::placement::slot::slot_of;
use korum_tests::check::Kind;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::faults::Faults;
use crate::history::{self, Counts, WALL_SKEW_MAX_US};
use crate::invariants::Watch;
use crate::workload::{self, Habit, orders};
use crate::world::host::Host;
use crate::world::member::{self, CLIENT_PORT, CLUSTER_PORT, Member};
use crate::world::{World, client_ip, node_ip};
use crate::{chance, ending, library, reform, stranger};

/// Longest time for a cluster to form.
const FORM_MS: u64 = 30_000;
/// Longest time for everything to heal once the faults have stopped: Raft settles in two seconds, a voter is replaced
/// after five, a dead node's copies are made again after three, and a dropped connection is given up after some.
const HEAL_MS: u64 = 40_000;
/// Clock rates differ from the world's by at most so much: two of them by less than the five percent that are stated.
const DRIFT_PPM_MAX: i64 = 24_000;
/// Chunks of every other run: a collection of 400 bytes is a large one then.
const SMALL_CHUNK_BYTES: usize = 100;
/// Partitions: the fewest that a cluster may have.
const PARTITIONS: u32 = 64;

/// What a seed decides before anything runs.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub replication: u8,
    pub clients: usize,
    /// Clients that only wait for what others bring,
    pub waiters: usize,
    /// and those of whom nothing is judged but that all copies agree.
    pub noisy: usize,
    /// What each key is used for.
    pub kinds: Vec<Kind>,
    pub groups: usize,
    /// Keys of eight kilobytes that only fill, over all groups.
    pub filling: usize,
    /// Most bytes that one node streams to another each second.
    pub stream_bytes: u64,
    /// Bytes of a chunk: with few, collections are large ones, which are sent in parts.
    pub chunk_bytes: Option<usize>,
    pub pause_ms: (u64, u64),
    /// How long things break.
    pub faults_ms: u64,
    /// Do more nodes break at once than the copies allow? Then partitions may be lost, and say so.
    pub is_wild: bool,
    pub drifts: bool,
    /// Is a majority of the voters lost in the end, and the quorum re-formed?
    pub re_forms: bool,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut chance = SmallRng::seed_from_u64(seed ^ 0x706c_616e);
        let nodes = [3, 3, 3, 4, 5, 5, 6][chance.random_range(0..7)];
        let replication = [2, 2, 2, 3, 3][chance.random_range(0..5)];
        Self {
            seed,
            nodes,
            replication,
            clients: chance.random_range(2..=5),
            waiters: [0, 1, 2, 4][chance.random_range(0..4)],
            noisy: chance.random_range(0..=1),
            kinds: kinds(&mut chance),
            groups: [1, 2, 4, 24][chance.random_range(0..4)],
            filling: [0, 60, 150, 150][chance.random_range(0..4)],
            chunk_bytes: (!seed.is_multiple_of(2)).then_some(SMALL_CHUNK_BYTES),
            stream_bytes: [128 << 10, 512 << 10, 64 << 20][chance.random_range(0..3)],
            pause_ms: [(0, 0), (0, 10), (5, 60)][chance.random_range(0..3)],
            faults_ms: chance.random_range(4_000..12_000),
            is_wild: chance.random_range(0..5) == 0,
            drifts: chance.random_range(0..2) == 0,
            re_forms: chance.random_range(0..12) == 0,
        }
    }
}

/// Some seeds have strings only, some hardly any; queues and what goes through them come more often than others, since
/// more can go wrong.
fn kinds(chance: &mut SmallRng) -> Vec<Kind> {
    let keys = [4, 8, 8, 24][chance.random_range(0..4)];
    let texts_permille = [1_000, 600, 300, 50][chance.random_range(0..4)];
    let kind = |number: usize| {
        if chance.random_range(0..1_000) < texts_permille {
            return Kind::TEXTS[number % Kind::TEXTS.len()];
        }
        let most = if chance.random_range(0..3) == 0 { 2 } else { Kind::OTHERS.len() };
        Kind::OTHERS[chance.random_range(0..most)]
    };
    (0..keys).map(kind).collect()
}

/// What a run gives.
#[derive(Clone, Debug)]
pub struct Summary {
    pub plan: Plan,
    pub trace: u64,
    pub delivered: u64,
    pub virtual_ms: u64,
    pub healed_ms: u64,
    pub faults: usize,
    pub lost: u64,
    pub counts: Counts,
}

/// A world that runs, and what watches it.
pub struct Run {
    pub world: World,
    pub plan: Plan,
    watch: Watch,
    chance: SmallRng,
}

/// Runs a seed.
///
/// # Errors
/// What did not hold.
pub fn run(seed: u64) -> Result<Summary, String> {
    chance::seed(seed);
    history::clear();
    let plan = Plan::of(seed);
    let mut run = Run {
        world: World::new(seed ^ 0x6e65_7477),
        watch: Watch::default(),
        chance: SmallRng::seed_from_u64(seed ^ 0x776f_726c),
        plan,
    };
    let result = run.all();
    result.map_err(|what| {
        format!("at {}.{:03} s: {what}", run.world.now_us / 1_000_000, run.world.now_us / 1000 % 1000)
    })
}

impl Run {
    fn all(&mut self) -> Result<Summary, String> {
        let plan = self.plan.clone();
        tracing::info!(?plan, "begins");
        for number in 0..plan.nodes {
            self.add_member(number, number > 0);
        }
        self.until(FORM_MS, "the cluster did not form", ending::is_whole)?;
        self.start_clients()?;
        let mut faults = Faults::new(&plan);
        let end = self.world.now_us + plan.faults_ms * 1_000;
        while self.world.now_us < end {
            faults.step(self)?;
            self.step()?;
        }
        faults.stop(self);
        tracing::info!("the faults have stopped");
        let healing = self.world.now_us;
        self.heal(&mut faults)?;
        let healed_ms = (self.world.now_us - healing) / 1_000;
        tracing::info!(healed_ms, "healed");
        if plan.re_forms {
            reform::lose_majority(self, &mut faults)?;
            self.heal(&mut faults)?;
        }
        self.stop_clients()?;
        self.read_everything()?;
        // Keys run out and are removed everywhere; nothing else changes any more.
        self.until(5_000, "copies differ in the end", ending::is_whole)?;
        let lost = self.lost();
        self.judge()?;
        Ok(Summary {
            trace: network(|network| network.trace),
            delivered: network(|network| network.delivered),
            virtual_ms: self.world.now_us / 1_000,
            healed_ms,
            faults: faults.count,
            lost,
            counts: history::counts(),
            plan,
        })
    }

    /// A step, and all looks after it.
    fn step(&mut self) -> Result<(), String> {
        self.world.step();
        self.watch.look(&self.world)?;
        if !self.plan.is_wild && self.lost() > 0 {
            return Err("partitions were lost although fewer nodes broke than there are copies".to_owned());
        }
        orders(|orders| orders.nonsense.first().cloned())
            .map_or(Ok(()), |text| Err(format!("nonsense: {text}")))
    }

    pub fn until(
        &mut self,
        limit_ms: u64,
        otherwise: &str,
        check: impl Fn(&World) -> Result<(), String>,
    ) -> Result<(), String> {
        let end = self.world.now_us + limit_ms * 1_000;
        loop {
            for _ in 0..20 {
                self.step()?;
            }
            match check(&self.world) {
                Ok(()) => return Ok(()),
                Err(why) if self.world.now_us >= end => {
                    return Err(format!("{otherwise} within {limit_ms} ms: {why}"));
                }
                Err(_) => {}
            }
        }
    }

    fn heal(&mut self, faults: &mut Faults) -> Result<(), String> {
        self.tend_until(faults, HEAL_MS, "not healed", |world, faults| {
            faults.is_idle().and_then(|()| ending::is_healthy(world))
        })
    }

    /// The same, while faults are undone and errands done.
    pub fn tend_until(
        &mut self,
        faults: &mut Faults,
        limit_ms: u64,
        otherwise: &str,
        check: impl Fn(&World, &Faults) -> Result<(), String>,
    ) -> Result<(), String> {
        let end = self.world.now_us + limit_ms * 1_000;
        loop {
            for _ in 0..20 {
                faults.tend(self)?;
                self.step()?;
            }
            match check(&self.world, faults) {
                Ok(()) => return Ok(()),
                Err(why) if self.world.now_us >= end => {
                    return Err(format!("{otherwise} within {limit_ms} ms: {why}"));
                }
                Err(_) => {}
            }
        }
    }

    /// Adds a node and starts it.
    pub fn add_member(&mut self, number: usize, joins: bool) {
        let boot_ns = self.chance.random_range(1_000_000_000..1_000_000_000_000);
        let mut host = Host::new(format!("node{number}"), node_ip(number), boot_ns);
        if self.plan.drifts {
            host.drift_ppm = self.chance.random_range(-DRIFT_PPM_MAX..=DRIFT_PPM_MAX);
        }
        host.wall_skew_us = self.chance.random_range(-WALL_SKEW_MAX_US..=WALL_SKEW_MAX_US);
        let flags = member::flags(self.plan.replication, PARTITIONS, self.plan.stream_bytes);
        let mut member = Member::new(host, &self.world.directory, flags, self.plan.chunk_bytes);
        let seeds = if joins { self.seeds() } else { Vec::new() };
        member.start(&seeds);
        self.world.members.push(member);
        self.tell_clients();
    }

    /// Addresses that a node may join at.
    pub fn seeds(&self) -> Vec<std::net::Ipv4Addr> {
        self.world.members.iter().filter(|member| !member.leaves).map(Member::ip).collect()
    }

    /// Which nodes clients may ask.
    pub fn tell_clients(&self) {
        let addresses = |port| self.seeds().iter().map(|ip| format!("{ip}:{port}")).collect();
        orders(|orders| {
            orders.client_ports = addresses(CLIENT_PORT);
            orders.cluster_ports = addresses(CLUSTER_PORT);
        });
    }

    fn start_clients(&mut self) -> Result<(), String> {
        orders(|orders| {
            orders.pause_ms = self.plan.pause_ms;
            orders.kinds.clone_from(&self.plan.kinds);
            orders.groups = self.plan.groups;
            orders.filling = self.plan.filling / self.plan.groups;
        });
        let mut loader = Host::new("loader".into(), client_ip(100), 1);
        loader.boot(workload::fill());
        self.world.clients.push(loader);
        let end = self.world.now_us + 30_000_000;
        while !self.world.clients[0].is_idle() {
            self.step()?;
            if self.world.now_us > end {
                return Err("a healthy cluster did not take every write within 30 s".to_owned());
            }
        }
        self.world.clients.clear();
        for number in 0..self.plan.clients {
            let mut host = Host::new(format!("client{number}"), client_ip(number), 1);
            let seed = self.chance.random();
            if number % 3 == 2 {
                host.boot(library::run(number, seed));
            } else {
                host.boot(workload::run(number, Habit::Works, seed));
            }
            self.world.clients.push(host);
        }
        let first = self.plan.clients;
        for number in first..first + self.plan.waiters {
            let mut host = Host::new(format!("waiter{number}"), client_ip(number), 1);
            host.boot(workload::run(number, Habit::Waits, self.chance.random()));
            self.world.clients.push(host);
        }
        for number in 0..self.plan.noisy {
            let mut host = Host::new(format!("noise{number}"), client_ip(120 + number), 1);
            host.boot(workload::make_noise(number, self.chance.random()));
            self.world.clients.push(host);
        }
        let mut host = Host::new("stranger".into(), client_ip(101), 1);
        host.boot(stranger::run(self.chance.random()));
        self.world.clients.push(host);
        Ok(())
    }

    fn stop_clients(&mut self) -> Result<(), String> {
        orders(|orders| orders.stop = true);
        let end = self.world.now_us + 30_000_000;
        while self.world.clients.iter().any(|client| !client.is_idle()) {
            self.step()?;
            if self.world.now_us > end {
                return Err("a client got no answer, and did not give up".to_owned());
            }
        }
        Ok(())
    }

    /// Every key once more, so that a lost write shows.
    fn read_everything(&mut self) -> Result<(), String> {
        let number = self.world.clients.len();
        let mut host = Host::new("reader".into(), client_ip(number), 1);
        host.boot(workload::read_all(number));
        self.world.clients.push(host);
        let end = self.world.now_us + 10_000_000;
        while !self.world.clients[number].is_idle() {
            self.step()?;
            if self.world.now_us > end {
                return Err("a healthy cluster did not answer every read within 10 s".to_owned());
            }
        }
        Ok(())
    }

    fn lost(&self) -> u64 {
        self.world.nodes().map(|(_, _, node)| node.view().map.lost_total).max().unwrap_or(0)
    }

    fn judge(&self) -> Result<(), String> {
        let Some((_, _, node)) = self.world.nodes().next() else { return Err("nobody runs".to_owned()) };
        let view = node.view();
        let was_lost = |key: &str| {
            let partition = view.partition_of_slot(slot_of(key.as_bytes()));
            view.map.emptied.contains_key(&partition)
        };
        history::judge(was_lost)
    }
}
