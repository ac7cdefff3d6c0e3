//! Everything there is: processes, wires between them, the log of maps, what was promised.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::id::{Epoch, Incarnation, NodeId, Position};
use korum_protocol::map::{MapChange, Move, Refusal, View};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::command::test_maps;
use crate::replication::history::History;
use crate::replication::link::{Lane, Link};
use crate::replication::message::{Acknowledged, Compared};
use crate::replication::primary::{Piece, Sent, Waits};
use crate::replication::transition::{LinkBook, Me, transition};
use crate::store::served::Token;
use crate::store::{HashPosition, HashRange, Keyspace, Kind, Partition, StringRef, Value, ValueRef};

pub(super) const NODES: usize = 4;
pub(super) const KEYS: u64 = 5;
/// Keys that come and go beside these.
pub(super) const GUESTS: u64 = 3;
/// Sets in which each command that waited and was served leaves a member, and the clients that wait.
pub(super) const QUEUES: u64 = 2;
pub(super) const CLIENTS: u64 = 3;
pub(super) const PARTITION: u16 = 0;
/// From so many bytes on, a message goes to the large lane here.
pub(super) const LARGE: usize = 400;

/// A process.
pub(super) struct Process {
    pub(super) partition: Partition,
    /// The map that it routes by, and the one whose roles its partition has: places in `Sim::views`.
    pub(super) routed: usize,
    pub(super) adopted: usize,
    pub(super) run: Incarnation,
    /// The run that the last lease was granted to.
    pub(super) leased: Option<Incarnation>,
    pub(super) is_alive: bool,
    pub(super) proposing: Option<Proposing>,
}

/// One connection, from the node that dialed.
pub(super) struct Wire {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) link: Arc<Link>,
    /// Epoch, lane, last position, messages.
    pub(super) frames: VecDeque<(Epoch, Lane, u64, Bytes)>,
    /// A frame of the large lane of which not all pieces are sent.
    pub(super) cut: Option<(Epoch, Lane, u64, Bytes)>,
    /// How far the other end has come.
    pub(super) applied: Acknowledged,
    pub(super) answers: VecDeque<(Acknowledged, Vec<Compared>)>,
    pub(super) is_superseded: bool,
}

/// A command that was executed and not yet answered.
pub(super) struct Operation {
    pub(super) node: usize,
    pub(super) key: u64,
    pub(super) value: u64,
    /// For a read: what had been acknowledged or seen when it was executed.
    pub(super) floor: u64,
    pub(super) era: Epoch,
    pub(super) run: Incarnation,
    pub(super) waits: Waits,
}

/// What the rebalancer's proposal task goes through.
pub(super) struct Proposing {
    pub(super) membership_epoch: Epoch,
    pub(super) fresh: Vec<Move>,
    pub(super) open: Vec<Move>,
    pub(super) waits: Waits,
    pub(super) is_settled: bool,
    pub(super) stage: Proposal,
}

pub(super) enum Proposal {
    Settling,
    Submitted(usize),
    Decided(Epoch),
}

pub(super) struct Book<'a>(pub(super) &'a [Wire], pub(super) usize);

impl LinkBook for Book<'_> {
    fn link(&self, node: NodeId, incarnation: Incarnation) -> Option<Arc<Link>> {
        let to = node.0 as usize - 1;
        let mut wires = self.0.iter().filter(|wire| wire.from == self.1 && wire.to == to);
        wires
            .find(|wire| wire.link.incarnation == incarnation && !wire.link.is_broken())
            .map(|it| Arc::clone(&it.link))
    }
}

pub(super) struct Sim {
    pub(super) random: StdRng,
    /// Effects that a copy remembers.
    pub(super) backlog_max: usize,
    /// Bytes of a chunk, and of a part.
    pub(super) chunk_bytes: usize,
    pub(super) views: Vec<Arc<View>>,
    pub(super) nodes: Vec<Process>,
    pub(super) wires: Vec<Wire>,
    pub(super) operations: Vec<Operation>,
    /// Changes on their way to the log, by number; a number stays when the proposer has given up waiting.
    pub(super) in_flight: BTreeMap<usize, (Option<usize>, MapChange)>,
    pub(super) proposals: usize,
    pub(super) next_value: u64,
    /// What was at each position that a copy has stood at.
    pub(super) contents: BTreeMap<Position, Content>,
    /// Where each node's copy stood at the last look.
    pub(super) stood: [Option<Position>; NODES],
    pub(super) looks: u64,
    /// The newest value of each key that was acknowledged or shown.
    pub(super) known: BTreeMap<u64, u64>,
    /// Runs that the map does not know yet.
    pub(super) registering: [bool; NODES],
    pub(super) answered: usize,
    pub(super) cutovers: usize,
    /// Frames delivered, by lane; and frames of small messages that were delivered while a large one was cut.
    pub(super) small: usize,
    pub(super) large: usize,
    pub(super) passed: usize,
    /// Copies that were repaired, that were streamed, and parts of large collections.
    pub(super) sent: [usize; 3],
}

pub(super) fn count(sent: &mut [usize; 3], now: Option<Sent>) {
    match now.map(|sent| sent.what) {
        Some(Piece::Repair) => sent[0] += 1,
        Some(Piece::FirstChunk) => sent[1] += 1,
        Some(Piece::Part) => sent[2] += 1,
        Some(Piece::NextChunk) | None => {}
    }
}

pub(super) fn id(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

pub(super) fn empty_partition(backlog_max: usize) -> Partition {
    Partition::new(Keyspace::new(1), History::new(backlog_max))
}

pub(super) fn name(key: u64) -> [u8; 1] {
    [b'a' + key as u8]
}

/// All that a copy has.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Content {
    values: Vec<u64>,
    /// Whatever is kept at each other key.
    others: Vec<Option<Value>>,
    /// Place, client and number of what was served.
    services: Vec<(HashPosition, u64, u64)>,
}

/// The key of the collection of a kind.
pub(super) fn collection(kind: Kind) -> [u8; 1] {
    name(KEYS + GUESTS + QUEUES + kind as u64)
}

/// The content of a copy.
pub(super) fn content(keyspace: &Keyspace) -> Content {
    let queues = (0..QUEUES).map(|queue| service(queue, 0, 0).0);
    let others = queues.chain(Kind::ALL.into_iter().map(collection));
    let others = others.map(|key| keyspace.peek(&key, 0).map(|entry| entry.to_value())).collect();
    let services = keyspace.served.within(HashRange::ALL).into_iter();
    let mut services: Vec<_> =
        services.map(|service| (service.place, service.token.client, service.token.number)).collect();
    services.sort_unstable();
    let values = (0..KEYS + GUESTS).map(|key| value_of(keyspace, key)).collect();
    Content { values, others, services }
}

/// The key of a queue, a client that waits there, and the command of it that was served.
pub(super) fn service(queue: u64, client: u64, number: u64) -> ([u8; 1], String, Token) {
    (name(KEYS + GUESTS + queue), format!("{client}:{number}"), Token { node: 1, client, number })
}

/// A command that was served is known, if and only if what it did is there. (That holds for copies on the way too.)
pub(super) fn check_services(keyspace: &Keyspace) {
    for queue in 0..QUEUES {
        let (key, _, _) = service(queue, 0, 0);
        let mut done = [None; CLIENTS as usize];
        if let Some(ValueRef::Set(set)) = keyspace.peek(&key, 0).map(|entry| entry.value()) {
            for member in set.iter() {
                let member = String::from_utf8(member.bytes().into_owned()).unwrap();
                let (client, number) = member.split_once(':').unwrap();
                let newest = &mut done[client.parse::<usize>().unwrap()];
                *newest = (*newest).max(number.parse::<u64>().ok());
            }
        }
        let known = keyspace.served.at(&[keyspace.hash_position(&key)]);
        for (client, done) in (0..CLIENTS).zip(done) {
            let known = known.iter().find(|service| service.token.client == client);
            assert_eq!(known.map(|service| service.token.number), done, "client {client} at queue {queue}");
            assert!(done.is_none_or(|number| keyspace.served.has(service(queue, client, number).2)));
        }
    }
}

pub(super) fn value_of(keyspace: &Keyspace, key: u64) -> u64 {
    match keyspace.peek(&name(key), 0).map(|entry| entry.value()) {
        Some(ValueRef::String(StringRef::Integer(number))) => number as u64,
        Some(ValueRef::String(StringRef::Bytes(bytes))) => {
            std::str::from_utf8(bytes).unwrap().trim_end().parse().unwrap()
        }
        Some(other) => panic!("{other:?}"),
        None => 0,
    }
}

impl Sim {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let view = test_maps::single(64);
        let view =
            (2..=NODES as u16).fold(view, |view, number| test_maps::after(&view, &test_maps::join(number)));
        let replication = random.random_range(2..=3);
        let view = view.apply(&MapChange::SetReplication { replication }).unwrap_or(view);
        let view = Arc::new(test_maps::caught_up(&view));
        let backlog_max = [0, 12, 256][random.random_range(0..3)];
        let chunk_bytes = [1, 60][random.random_range(0..2)];
        let node = |at: usize| Process {
            partition: empty_partition(backlog_max),
            routed: 0,
            adopted: 0,
            run: view.map.nodes[&id(at)].incarnation,
            leased: None,
            is_alive: true,
            proposing: None,
        };
        let nodes = (0..NODES).map(node).collect();
        let mut sim = Self {
            random,
            backlog_max,
            chunk_bytes,
            views: vec![view],
            nodes,
            wires: Vec::new(),
            operations: Vec::new(),
            in_flight: BTreeMap::new(),
            proposals: 0,
            next_value: 0,
            contents: BTreeMap::new(),
            stood: [None; NODES],
            looks: 0,
            known: BTreeMap::new(),
            registering: [false; NODES],
            answered: 0,
            cutovers: 0,
            small: 0,
            large: 0,
            passed: 0,
            sent: [0; 3],
        };
        for at in 0..NODES {
            let view = Arc::clone(&sim.views[0]);
            let me = Me { node: id(at), run: sim.nodes[at].run };
            let _ = transition(&mut sim.nodes[at].partition, PARTITION, me, &view, false, &Book(&[], at));
        }
        sim
    }

    pub(super) fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_range(0..one_in) == 0
    }

    pub(super) fn any_node(&mut self) -> usize {
        self.random.random_range(0..NODES)
    }

    pub(super) fn latest(&self) -> &Arc<View> {
        self.views.last().unwrap()
    }

    pub(super) fn leased_run(&self, at: usize) -> Option<Incarnation> {
        let node = &self.nodes[at];
        let me = self.views[node.routed].map.nodes.get(&id(at))?;
        (node.is_alive && me.is_up() && me.incarnation == node.run && node.leased == Some(node.run))
            .then_some(node.run)
    }

    pub(super) fn commit(&mut self, change: &MapChange) -> Result<Epoch, Refusal> {
        let next = self.latest().apply(change)?;
        let epoch = next.map.epoch;
        self.views.push(Arc::new(next));
        Ok(epoch)
    }
}
