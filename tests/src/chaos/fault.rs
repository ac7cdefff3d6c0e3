//! What goes wrong: the list, and how each is done and undone.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::harness::cluster::{Cluster, PATIENCE};
use crate::harness::network::Way;

/// A fault; [`Fault::about`] says what happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is told in `about`")]
pub enum Fault {
    Kill,
    KillLeader,
    KillEmpty,
    KillTwo,
    PauseShort,
    PauseLong,
    PauseLeader,
    Terminate,
    JoinKill,
    DrainPause,
    Isolate,
    IsolateLeader,
    IsolateCut,
    OneWayOut,
    OneWayIn,
    Pair,
    Halves,
    Slow,
}

/// What happened when.
pub struct Event {
    /// The fault began.
    pub begin: Instant,
    /// Its causes ended.
    pub end: Instant,
}

/// Whom it hits, chosen before the load starts.
pub struct Victims {
    /// Nodes that die, sleep or are cut off.
    pub nodes: Vec<usize>,
    random: StdRng,
}

/// Longer than any lease and any failover.
const LONG: Duration = Duration::from_millis(2_500);
/// Longer than it takes to drop a replica that does not acknowledge (`replica_timeout`, at most 2 s).
const VERY_LONG: Duration = Duration::from_secs(4);
/// How long a process is gone.
const GONE: Duration = Duration::from_millis(1_500);
/// Shorter than a lease (700 ms).
const SHORT: Duration = Duration::from_millis(400);

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 18] = [
        Fault::Kill,
        Fault::KillLeader,
        Fault::KillEmpty,
        Fault::KillTwo,
        Fault::PauseShort,
        Fault::PauseLong,
        Fault::PauseLeader,
        Fault::Terminate,
        Fault::JoinKill,
        Fault::DrainPause,
        Fault::Isolate,
        Fault::IsolateLeader,
        Fault::IsolateCut,
        Fault::OneWayOut,
        Fault::OneWayIn,
        Fault::Pair,
        Fault::Halves,
        Fault::Slow,
    ];

    /// Its name on the command line, and what happens, in one line.
    #[must_use]
    pub fn about(self) -> (&'static str, &'static str) {
        match self {
            Fault::Kill => ("kill", "kill -9 of a follower, back after 1.5 s"),
            Fault::KillLeader => ("kill-leader", "kill -9 of Raft's leader, back after 1.5 s"),
            Fault::KillEmpty => ("kill-empty", "kill -9, back at once with an empty disk"),
            Fault::KillTwo => {
                ("kill-two", "kill -9 of two nodes at once, the leader among them (R=3, 5 nodes)")
            }
            Fault::PauseShort => ("pause-short", "SIGSTOP for 0.4 s, shorter than a lease"),
            Fault::PauseLong => ("pause-long", "SIGSTOP of a follower for 2.5 s"),
            Fault::PauseLeader => ("pause-leader", "SIGSTOP of Raft's leader for 2.5 s"),
            Fault::Terminate => ("terminate", "SIGTERM, back after 1.5 s"),
            Fault::JoinKill => ("join-kill", "a node joins, and another is killed meanwhile"),
            Fault::DrainPause => ("drain-pause", "a node is drained, and another sleeps for 1.5 s meanwhile"),
            Fault::Isolate => ("isolate", "a follower hears and is heard by nobody for 2.5 s, silently"),
            Fault::IsolateLeader => ("isolate-leader", "the same for Raft's leader"),
            Fault::IsolateCut => {
                ("isolate-cut", "a node's connections are reset, and new ones too, for 2.5 s")
            }
            Fault::OneWayOut => ("one-way-out", "a node is not heard for 2.5 s, but hears"),
            Fault::OneWayIn => ("one-way-in", "a node hears nothing for 2.5 s, but is heard"),
            Fault::Pair => ("pair", "two nodes do not hear each other for 4 s; the third hears both"),
            Fault::Halves => ("halves", "two of five nodes are split off for 2.5 s (R=3)"),
            Fault::Slow => ("slow", "everything to and from a node takes 30 ms longer for 1.5 s"),
        }
    }

    /// The fault of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.about().0 == name)
    }

    /// A cluster for it, with more nodes where the fault needs them; `flags` are given to every node.
    #[must_use]
    pub fn cluster(self, nodes: usize, flags: &[&str]) -> Cluster {
        // Two of five nodes go at once: three copies, or their loss is allowed.
        let many = [&["--replication", "3"], flags].concat();
        match self {
            Fault::KillTwo => Cluster::start_with(nodes.max(5), &many),
            Fault::DrainPause => Cluster::start_with(nodes.max(3) + 1, flags),
            Fault::Halves => Cluster::start_networked(nodes.max(5), &many),
            Fault::Kill
            | Fault::KillLeader
            | Fault::KillEmpty
            | Fault::PauseShort
            | Fault::PauseLong
            | Fault::PauseLeader
            | Fault::Terminate
            | Fault::JoinKill => Cluster::start_with(nodes.max(3), flags),
            Fault::Isolate
            | Fault::IsolateLeader
            | Fault::IsolateCut
            | Fault::OneWayOut
            | Fault::OneWayIn
            | Fault::Pair
            | Fault::Slow => Cluster::start_networked(nodes.max(3), flags),
        }
    }

    /// Chooses whom it hits.
    ///
    /// # Panics
    /// When the cluster has no leader.
    #[must_use]
    pub fn choose(self, cluster: &Cluster, seed: u64) -> Victims {
        let mut random = StdRng::seed_from_u64(seed);
        let leader = cluster.leader().expect("a cluster that is ready has a leader");
        let mut others: Vec<usize> = cluster.running().into_iter().filter(|&node| node != leader).collect();
        let mut draw = || others.swap_remove(random.random_range(0..others.len()));
        let nodes = match self {
            Fault::KillLeader | Fault::PauseLeader | Fault::IsolateLeader => vec![leader],
            Fault::KillTwo => vec![leader, draw()],
            Fault::DrainPause | Fault::Pair | Fault::Halves => vec![draw(), draw()],
            Fault::Kill | Fault::PauseLong | Fault::JoinKill | Fault::Isolate => vec![draw()],
            Fault::KillEmpty
            | Fault::PauseShort
            | Fault::Terminate
            | Fault::IsolateCut
            | Fault::OneWayOut
            | Fault::OneWayIn
            | Fault::Slow => {
                let all = cluster.running();
                vec![all[random.random_range(0..all.len())]]
            }
        };
        Victims { nodes, random }
    }

    /// The nodes that hear or are heard by nobody of the majority from its begin to its end: they may acknowledge nothing
    /// once their lease is over.
    #[must_use]
    pub fn severs(self, victims: &Victims) -> &[usize] {
        match self {
            Fault::Isolate
            | Fault::IsolateLeader
            | Fault::IsolateCut
            | Fault::OneWayOut
            | Fault::OneWayIn
            | Fault::Halves => &victims.nodes,
            Fault::Kill
            | Fault::KillLeader
            | Fault::KillEmpty
            | Fault::KillTwo
            | Fault::PauseShort
            | Fault::PauseLong
            | Fault::PauseLeader
            | Fault::Terminate
            | Fault::JoinKill
            | Fault::DrainPause
            | Fault::Pair
            | Fault::Slow => &[],
        }
    }

    /// Makes it happen, waits, and ends its causes.
    ///
    /// # Panics
    /// When the system does not do what is asked of it.
    #[must_use]
    pub fn happen(self, cluster: &mut Cluster, victims: &mut Victims) -> Event {
        let begin = Instant::now();
        let first = victims.nodes[0];
        let rest: Vec<usize> =
            cluster.running().into_iter().filter(|node| !victims.nodes.contains(node)).collect();
        let mut lifted = None;
        match self {
            Fault::Kill | Fault::KillLeader | Fault::KillTwo => {
                victims.nodes.iter().for_each(|&node| cluster.kill(node));
                std::thread::sleep(GONE);
                victims.nodes.iter().for_each(|&node| cluster.launch_again(node, false));
            }
            Fault::KillEmpty => cluster.launch_again(first, true),
            Fault::PauseShort => pause(cluster, first, SHORT),
            Fault::PauseLong | Fault::PauseLeader => pause(cluster, first, LONG),
            Fault::Terminate => {
                assert!(cluster.terminate(first), "SIGTERM is a clean end: exit code 0");
                std::thread::sleep(GONE);
                cluster.launch_again(first, false);
            }
            Fault::JoinKill => {
                let _ = cluster.add();
                std::thread::sleep(Duration::from_millis(victims.random.random_range(100..1_500)));
                cluster.kill(first);
                std::thread::sleep(GONE);
                cluster.launch_again(first, false);
            }
            Fault::DrainPause => {
                let id = cluster.id(first);
                let told = cluster.client(rest[0]).call(&format!("KORUM DRAIN {id}")).expect("a reply");
                assert!(told.error().is_none(), "KORUM DRAIN: {told:?}");
                std::thread::sleep(Duration::from_millis(victims.random.random_range(0..600)));
                pause(cluster, victims.nodes[1], Duration::from_millis(1_500));
                assert!(cluster.wait_ended(first, PATIENCE), "a drained node ends with exit code 0");
            }
            Fault::Isolate | Fault::IsolateLeader | Fault::Halves => {
                lifted = disturb(cluster, LONG, || {
                    cluster.network().set_between(&victims.nodes, &rest, Way::Stalled)
                });
            }
            Fault::IsolateCut => {
                lifted =
                    disturb(cluster, LONG, || cluster.network().set_between(&victims.nodes, &rest, Way::Cut));
            }
            Fault::OneWayOut => {
                lifted = disturb(cluster, LONG, || {
                    rest.iter().for_each(|&other| cluster.network().set(first, other, Way::Stalled));
                });
            }
            Fault::OneWayIn => {
                lifted = disturb(cluster, LONG, || {
                    rest.iter().for_each(|&other| cluster.network().set(other, first, Way::Stalled));
                });
            }
            Fault::Pair => {
                let other = victims.nodes[1];
                lifted = disturb(cluster, VERY_LONG, || {
                    cluster.network().set_between(&[first], &[other], Way::Stalled);
                });
            }
            Fault::Slow => {
                let way = Way::Slow(Duration::from_millis(30));
                lifted = disturb(cluster, Duration::from_millis(1_500), || {
                    cluster.network().set_between(&[first], &rest, way);
                });
            }
        }
        Event { begin, end: lifted.unwrap_or_else(Instant::now) }
    }
}

fn pause(cluster: &Cluster, node: usize, time: Duration) {
    cluster.pause(node);
    std::thread::sleep(time);
    cluster.resume(node);
}

/// When it ended: what was held arrives from that moment on.
fn disturb(cluster: &Cluster, time: Duration, start: impl FnOnce()) -> Option<Instant> {
    start();
    std::thread::sleep(time);
    let end = Instant::now();
    cluster.network().heal();
    Some(end)
}
