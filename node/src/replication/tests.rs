//! A primary, its copies and lossy links under random schedules: writes, reads, breaks, pauses, deaths, cutovers
//! and maps that are passed over. Checks I2 at every step, and that everything comes to rest.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::id::{Epoch, Incarnation, NodeId, Position};
use korum_protocol::map::{MapChange, Move, Refusal, View};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::effect::{Effect, Effects};
use super::history::{History, Path};
use super::link::{Lane, Link};
use super::message::{self, Acknowledged, Body, Compared, Message};
use super::primary::{Admission, Offer, Offered, PeerCopy, Piece, Sent, Settlement, Stage, Waits};
use super::replica;
use super::transition::{LinkBook, Me, transition};
use crate::command::test_maps;
use crate::rebalance::plan;
use crate::store::{Garbage, Keyspace, Partition, Role, Source, StringRef, ValueRef};

const NODES: usize = 4;
const KEYS: u64 = 5;
/// Keys that come and go beside these.
const GUESTS: u64 = 3;
const PARTITION: u16 = 0;
/// From so many bytes on, a message goes to the large lane here.
const LARGE: usize = 400;

/// A process.
struct Process {
    partition: Partition,
    /// The map that it routes by, and the one whose roles its partition has: places in `Sim::views`.
    routed: usize,
    adopted: usize,
    run: Incarnation,
    /// The run that the last lease was granted to.
    leased: Option<Incarnation>,
    is_alive: bool,
    proposing: Option<Proposing>,
}

/// One connection, from the node that dialed.
struct Wire {
    from: usize,
    to: usize,
    link: Arc<Link>,
    /// Epoch, lane, last position, messages.
    frames: VecDeque<(Epoch, Lane, u64, Bytes)>,
    /// A frame of the large lane of which not all pieces are sent.
    cut: Option<(Epoch, Lane, u64, Bytes)>,
    /// How far the other end has come.
    applied: Acknowledged,
    answers: VecDeque<(Acknowledged, Vec<Compared>)>,
    is_superseded: bool,
}

/// A command that was executed and not yet answered.
struct Operation {
    node: usize,
    key: u64,
    value: u64,
    /// For a read: what had been acknowledged or seen when it was executed.
    floor: u64,
    era: Epoch,
    run: Incarnation,
    waits: Waits,
}

/// What the rebalancer's proposal task goes through.
struct Proposing {
    membership_epoch: Epoch,
    fresh: Vec<Move>,
    open: Vec<Move>,
    waits: Waits,
    is_settled: bool,
    stage: Proposal,
}

enum Proposal {
    Settling,
    Submitted(usize),
    Decided(Epoch),
}

struct Book<'a>(&'a [Wire], usize);

impl LinkBook for Book<'_> {
    fn link(&self, node: NodeId, incarnation: Incarnation) -> Option<Arc<Link>> {
        let to = node.0 as usize - 1;
        let mut wires = self.0.iter().filter(|wire| wire.from == self.1 && wire.to == to);
        wires
            .find(|wire| wire.link.incarnation == incarnation && !wire.link.is_broken())
            .map(|it| Arc::clone(&it.link))
    }
}

struct Sim {
    random: StdRng,
    /// Effects that a copy remembers.
    backlog_max: usize,
    views: Vec<Arc<View>>,
    nodes: Vec<Process>,
    wires: Vec<Wire>,
    operations: Vec<Operation>,
    /// Changes on their way to the log, by number; a number stays when the proposer has given up waiting.
    in_flight: BTreeMap<usize, (Option<usize>, MapChange)>,
    proposals: usize,
    next_value: u64,
    /// What was at each position that a copy has stood at.
    contents: BTreeMap<Position, Vec<u64>>,
    /// The newest value of each key that was acknowledged or shown.
    known: BTreeMap<u64, u64>,
    /// Runs that the map does not know yet.
    registering: [bool; NODES],
    answered: usize,
    cutovers: usize,
    /// Frames delivered, by lane; and frames of small messages that were delivered while a large one was cut.
    small: usize,
    large: usize,
    passed: usize,
    /// Copies that were repaired, and that were streamed.
    sent: [usize; 2],
}

fn count(sent: &mut [usize; 2], now: Option<Sent>) {
    match now.map(|sent| sent.what) {
        Some(Piece::Repair) => sent[0] += 1,
        Some(Piece::FirstChunk) => sent[1] += 1,
        Some(Piece::NextChunk) | None => {}
    }
}

fn id(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

fn empty_partition(backlog_max: usize) -> Partition {
    Partition::new(Keyspace::new(1), History::new(backlog_max))
}

fn name(key: u64) -> [u8; 1] {
    [b'a' + key as u8]
}

/// The values of all keys.
fn content(keyspace: &Keyspace) -> Vec<u64> {
    (0..KEYS + GUESTS).map(|key| value_of(keyspace, key)).collect()
}

fn value_of(keyspace: &Keyspace, key: u64) -> u64 {
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
    fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let view = test_maps::single(64);
        let view =
            (2..=NODES as u16).fold(view, |view, number| test_maps::after(&view, &test_maps::join(number)));
        let replication = random.random_range(2..=3);
        let view = view.apply(&MapChange::SetReplication { replication }).unwrap_or(view);
        let view = Arc::new(test_maps::caught_up(&view));
        let backlog_max = [0, 3, 64][random.random_range(0..3)];
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
            views: vec![view],
            nodes,
            wires: Vec::new(),
            operations: Vec::new(),
            in_flight: BTreeMap::new(),
            proposals: 0,
            next_value: 0,
            contents: BTreeMap::new(),
            known: BTreeMap::new(),
            registering: [false; NODES],
            answered: 0,
            cutovers: 0,
            small: 0,
            large: 0,
            passed: 0,
            sent: [0; 2],
        };
        for at in 0..NODES {
            let view = Arc::clone(&sim.views[0]);
            let me = Me { node: id(at), run: sim.nodes[at].run };
            let _ = transition(&mut sim.nodes[at].partition, PARTITION, me, &view, false, &Book(&[], at));
        }
        sim
    }

    fn chance(&mut self, one_in: u32) -> bool {
        self.random.random_range(0..one_in) == 0
    }

    fn any_node(&mut self) -> usize {
        self.random.random_range(0..NODES)
    }

    fn latest(&self) -> &Arc<View> {
        self.views.last().unwrap()
    }

    fn leased_run(&self, at: usize) -> Option<Incarnation> {
        let node = &self.nodes[at];
        let me = self.views[node.routed].map.nodes.get(&id(at))?;
        (node.is_alive && me.is_up() && me.incarnation == node.run && node.leased == Some(node.run))
            .then_some(node.run)
    }

    fn commit(&mut self, change: &MapChange) -> Result<Epoch, Refusal> {
        let next = self.latest().apply(change)?;
        let epoch = next.map.epoch;
        self.views.push(Arc::new(next));
        Ok(epoch)
    }

    /// Takes the roles of a newer map; routing follows in a later step.
    fn adopt(&mut self, at: usize) {
        let node = &self.nodes[at];
        if !node.is_alive || node.adopted != node.routed || node.adopted + 1 == self.views.len() {
            return;
        }
        let newest = self.views.len() - 1;
        let next = if self.chance(2) { self.nodes[at].adopted + 1 } else { newest };
        let node = &mut self.nodes[at];
        let (old, view) = (Arc::clone(&self.views[node.routed]), Arc::clone(&self.views[next]));
        node.adopted = next;
        let is_membership = view.map.membership_epoch != old.map.membership_epoch;
        let has_gap = is_membership && view.map.epoch != old.map.epoch.next();
        if is_membership || view.row(PARTITION) != old.row(PARTITION) {
            let me = Me { node: id(at), run: node.run };
            let _ = transition(&mut node.partition, PARTITION, me, &view, has_gap, &Book(&self.wires, at));
        }
    }

    fn route(&mut self, at: usize) {
        self.nodes[at].routed = self.nodes[at].adopted;
        let view = Arc::clone(&self.views[self.nodes[at].routed]);
        let is_gone = |wire: &Wire| {
            let record = &view.map.nodes[&wire.link.peer];
            wire.from == at && (!record.is_up() || record.incarnation != wire.link.incarnation)
        };
        let gone: Vec<_> =
            self.wires.iter().filter(|wire| is_gone(wire)).map(|it| Arc::clone(&it.link)).collect();
        gone.iter().for_each(|link| self.close(link));
    }

    /// The dialing end gives a connection up. What it sent may still lie at the other end.
    fn close(&mut self, link: &Arc<Link>) {
        link.break_off();
        for wire in self.wires.iter_mut().filter(|wire| Arc::ptr_eq(&wire.link, link)) {
            wire.answers.clear();
            if let Some(primary) = self.nodes[wire.from].partition.as_primary_mut() {
                let is_on =
                    |copy: &&mut PeerCopy| copy.link().is_some_and(|present| Arc::ptr_eq(present, link));
                primary.copies.iter_mut().filter(is_on).for_each(PeerCopy::unlink);
            }
        }
    }

    fn open(&mut self, from: usize, to: usize) {
        let view = &self.views[self.nodes[from].routed];
        let record = &view.map.nodes[&id(to)];
        let is_present = self.wires.iter().any(|it| it.from == from && it.to == to && !it.link.is_broken());
        let fits = self.nodes[to].is_alive && self.nodes[to].run == record.incarnation && record.is_up();
        if from == to || !self.nodes[from].is_alive || is_present || !fits {
            return;
        }
        let link = Arc::new(Link::with_large_bytes(id(to), record.incarnation, LARGE));
        for wire in self.wires.iter_mut().filter(|wire| wire.from == from && wire.to == to) {
            wire.is_superseded = true;
        }
        self.wires.retain(|wire| !wire.is_superseded || !wire.link.is_broken());
        self.wires.push(Wire {
            from,
            to,
            link: Arc::clone(&link),
            frames: VecDeque::new(),
            cut: None,
            applied: Acknowledged::default(),
            answers: VecDeque::new(),
            is_superseded: false,
        });
        let partition = &mut self.nodes[from].partition;
        if let Partition { role: Role::Primary(primary), history, .. } = partition {
            let era = primary.era;
            for copy in &mut primary.copies {
                if copy.node == link.peer && copy.incarnation == link.incarnation {
                    copy.connect(PARTITION, era, history, &link);
                }
            }
        }
    }

    fn send(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let speaking = self.views[self.nodes[wire.from].adopted].map.epoch;
        if wire.link.is_broken() {
            return;
        }
        if let Some((last, messages)) = wire.link.try_take() {
            wire.frames.push_back((speaking, Lane::Small, last, messages.into_bytes()));
            self.passed += usize::from(wire.cut.is_some());
        } else if wire.cut.is_none()
            && let Some((last, messages)) = wire.link.try_take_large()
        {
            wire.cut = Some((speaking, Lane::Large, last, messages.into_bytes()));
            self.say_something_else(at);
        }
    }

    /// The link carries other partitions too.
    fn say_something_else(&mut self, at: usize) {
        let body = Body::Compare { question: 0, path: Path::new() };
        self.wires[at].link.append(&Message { partition: PARTITION + 1, era: Epoch(0), body });
    }

    /// The last piece of a large frame is sent.
    fn send_last_piece(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        if !wire.link.is_broken() {
            wire.frames.extend(wire.cut.take());
        }
    }

    fn deliver(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let (from, to) = (wire.from, wire.to);
        let Some((epoch, lane, last, bytes)) = wire.frames.front().cloned() else { return };
        let view = Arc::clone(&self.views[self.nodes[to].routed]);
        let messages = || {
            let mut input = &bytes[..];
            std::iter::from_fn(move || (!input.is_empty()).then(|| message::decode(&mut input).unwrap()))
                .filter(|message| message.partition == PARTITION)
        };
        if !wire.is_superseded
            && (view.map.epoch < epoch || messages().any(|message| message.era > view.map.epoch))
        {
            return;
        }
        wire.frames.pop_front();
        if wire.is_superseded || !self.nodes[to].is_alive {
            return;
        }
        let (mut compared, mut garbage) = (Vec::new(), Garbage::default());
        for message in messages() {
            let partition = &mut self.nodes[to].partition;
            let (row, source) = (view.row(PARTITION), Source::of(bytes.clone()));
            match replica::receive(partition, id(to), id(from), row, &message, &source, &mut garbage) {
                Ok(answer) => compared.extend(answer),
                Err(_) => {
                    let wire = &mut self.wires[at];
                    wire.frames.clear();
                    let link = Arc::clone(&wire.link);
                    return self.close(&link);
                }
            }
        }
        let wire = &mut self.wires[at];
        match lane {
            Lane::Small => (wire.applied.small, self.small) = (last, self.small + 1),
            Lane::Large => (wire.applied.large, self.large) = (last, self.large + 1),
        }
        if !wire.link.is_broken() {
            wire.answers.push_back((wire.applied, compared));
        }
    }

    fn hear(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let Some((last, compared)) = wire.answers.pop_front() else { return };
        let link = Arc::clone(&wire.link);
        for answer in compared {
            let Partition { role, keyspace, history, .. } = &mut self.nodes[wire.from].partition;
            let Some(primary) = role.primary_mut().filter(|primary| primary.era == answer.era) else { continue };
            if primary.compared(link.peer, &link, answer) {
                let sent = primary.catch_up(PARTITION, history, keyspace, link.peer, 1);
                count(&mut self.sent, sent);
            }
        }
        link.acknowledge(last).unwrap();
    }

    fn execute(&mut self, at: usize, is_write: bool) {
        let Some(run) = self.leased_run(at) else { return };
        let key = self.random.random_range(0..KEYS);
        let partition = &mut self.nodes[at].partition;
        let Some(primary) = partition.role.primary_mut() else { return };
        if primary.admits(is_write) != Admission::Ready {
            return;
        }
        let keyspace = &mut partition.keyspace;
        let floor = self.known.get(&key).copied().unwrap_or(0);
        if is_write {
            self.next_value += 1;
            let word = name(key);
            // Padded, some are large.
            let padded = format!("{:<width$}", self.next_value, width = LARGE);
            let value = match self.random.random_range(0..4) {
                0 => ValueRef::String(StringRef::Bytes(padded.as_bytes())),
                _ => ValueRef::String(StringRef::Integer(self.next_value as i64)),
            };
            let mut effects = Effects::new(primary.is_followed());
            effects.set(keyspace.place(&word), value, None);
            let effect = Effect::Set { key: &word, value, deadline_ms: None };
            keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
            let guest = name(KEYS + self.random.random_range(0..GUESTS));
            match self.random.random_range(0..4) {
                0 => {
                    keyspace.apply(&Effect::Delete { key: &guest }, &Source::none(), &mut Garbage::default());
                    effects.delete(keyspace.place(&guest));
                }
                1 => {
                    let effect = Effect::Set { key: &guest, value, deadline_ms: None };
                    keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
                    effects.set(keyspace.place(&guest), value, None);
                }
                _ => {}
            }
            primary.replicate(PARTITION, &mut partition.history, &effects);
        }
        let value = value_of(keyspace, key);
        assert!(is_write || value >= floor, "a read at {:?} found {value}, {floor} was known", id(at));
        let mut waits = Waits::default();
        primary.settlement(&mut waits);
        let era = primary.era;
        self.operations.push(Operation { node: at, key, value, floor, era, run, waits });
    }

    /// As a batch is settled: answered, failed or still waiting.
    fn settle(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        for mut operation in operations {
            let is_leased = self.leased_run(operation.node) == Some(operation.run);
            if !is_leased {
                continue; // the outcome is unknown
            }
            if !operation.waits.are_acknowledged() {
                let mut waits = Waits::default();
                let primary = self.nodes[operation.node].partition.as_primary();
                let Some(primary) = primary.filter(|primary| primary.era == operation.era) else { continue };
                if primary.settlement(&mut waits) != Settlement::Done {
                    // A real batch looks again only when a link broke; looking more often is no different.
                    operation.waits = waits;
                    self.operations.push(operation);
                    continue;
                }
            }
            assert!(operation.value >= operation.floor);
            let known = self.known.entry(operation.key).or_default();
            *known = (*known).max(operation.value);
            self.answered += 1;
        }
    }

    /// I2: what was acknowledged, or shown, is on every holder. I11: copies at the same position are equal.
    fn check(&mut self) {
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(position) = node.partition.history.position() else { continue };
            let content = content(&node.partition.keyspace);
            let known = self.contents.entry(position).or_insert_with(|| content.clone());
            assert_eq!(*known, content, "{:?} has something else at {position:?}", id(at));
        }
        for &holder in &self.latest().row(PARTITION).holders {
            let node = &self.nodes[holder.0 as usize - 1];
            if node.run != self.latest().map.nodes[&holder].incarnation {
                continue; // that run is gone, and nobody has noticed yet
            }
            for (&key, &known) in &self.known {
                let found = value_of(&node.partition.keyspace, key);
                assert!(found >= known, "{holder:?} holds {found} for key {key}, {known} was acknowledged");
            }
        }
    }

    /// The rebalancer's look.
    fn look(&mut self, at: usize) {
        if self.leased_run(at).is_none() {
            return;
        }
        let view = Arc::clone(&self.views[self.nodes[at].routed]);
        let tasks: Vec<_> =
            plan::tasks(&view, id(at)).into_iter().filter(|it| it.partition == PARTITION).collect();
        let book = Book(&self.wires, at);
        let node = &mut self.nodes[at];
        let partition = &mut node.partition;
        let Partition { role: Role::Primary(primary), history, keyspace, .. } = partition else { return };
        if view.row(PARTITION).primary != Some(id(at)) || primary.era != view.row(PARTITION).era {
            return;
        }
        for task in &tasks {
            let is_known = primary.copies.iter().any(|copy| copy.node == task.target);
            if !is_known && book.link(task.target, task.incarnation).is_some() {
                primary.copies.push(PeerCopy::new(task.target, task.incarnation, false));
            }
        }
        let (era, mut ready, mut streamed) = (primary.era, Vec::<&plan::Task>::new(), Vec::new());
        for copy in &mut primary.copies {
            if copy.link().is_some_and(|link| link.is_broken()) {
                copy.unlink();
            }
            if copy.link().is_none()
                && let Some(link) = book.link(copy.node, copy.incarnation)
            {
                copy.connect(PARTITION, era, history, &link);
            }
            let is_ready = |task: &&plan::Task| {
                task.target == copy.node
                    && (copy.is_complete()
                        || task.already_holds
                        || copy.proposed == Some(task.membership_epoch))
            };
            ready.extend(tasks.iter().find(is_ready));
            if copy.is_catching_up() {
                streamed.push(copy.node);
            }
        }
        for target in streamed {
            let sent = primary.catch_up(PARTITION, history, keyspace, target, 1);
            count(&mut self.sent, sent);
        }
        if ready.is_empty() || node.proposing.is_some() {
            return;
        }
        let membership_epoch = view.map.membership_epoch;
        let (mut fresh, mut open, mut waits, mut is_settled) =
            (Vec::new(), Vec::new(), Waits::default(), true);
        for task in ready {
            let offer = Offer { already_holds: task.already_holds, ends_my_primacy: task.ends_my_primacy };
            match primary.offer(task.target, membership_epoch, offer) {
                Offered::No => {}
                Offered::First => {
                    is_settled &= primary.settlement(&mut waits) != Settlement::Agreement;
                    fresh.push(task.as_move());
                }
                Offered::Again => open.push(task.as_move()),
            }
        }
        let stage = Proposal::Settling;
        node.proposing = Some(Proposing { membership_epoch, fresh, open, waits, is_settled, stage });
    }

    /// One step of a node's proposal.
    fn propose(&mut self, at: usize) {
        let has_timed_out = self.chance(4);
        let node = &mut self.nodes[at];
        let Some(mut proposing) = node.proposing.take() else { return };
        match proposing.stage {
            Proposal::Settling => {
                let is_done = proposing.is_settled && proposing.waits.are_acknowledged();
                if !is_done && proposing.is_settled && !has_timed_out {
                    node.proposing = Some(proposing);
                    return;
                }
                if !is_done {
                    let fresh = std::mem::take(&mut proposing.fresh);
                    self.withdraw(at, &fresh, proposing.membership_epoch);
                }
                proposing.fresh.append(&mut proposing.open);
                if proposing.fresh.is_empty() {
                    return;
                }
                let membership_epoch = proposing.membership_epoch;
                let change = MapChange::Cutover { membership_epoch, moves: proposing.fresh.clone() };
                self.proposals += 1;
                self.in_flight.insert(self.proposals, (Some(at), change));
                proposing.stage = Proposal::Submitted(self.proposals);
                self.nodes[at].proposing = Some(proposing);
            }
            Proposal::Submitted(number) => {
                if has_timed_out {
                    // The outcome stays open; the change may still reach the log.
                    if let Some((waiting, _)) = self.in_flight.get_mut(&number) {
                        *waiting = None;
                    }
                } else {
                    node.proposing = Some(proposing);
                }
            }
            Proposal::Decided(epoch) => {
                if self.views[node.routed].map.epoch >= epoch {
                    let moves = std::mem::take(&mut proposing.fresh);
                    self.withdraw(at, &moves, proposing.membership_epoch);
                } else {
                    node.proposing = Some(proposing);
                }
            }
        }
    }

    fn withdraw(&mut self, at: usize, moves: &[Move], membership_epoch: Epoch) {
        for entry in moves {
            let primary = self.nodes[at].partition.as_primary_mut();
            if let Some(primary) = primary.filter(|primary| primary.era == entry.era) {
                primary.withdraw(entry.node, membership_epoch);
            }
        }
    }

    /// A change reaches the log, or is lost on the way.
    fn log(&mut self) {
        let Some(nth) = self.in_flight.len().checked_sub(1) else { return };
        let nth = self.random.random_range(0..=nth);
        let number = *self.in_flight.keys().nth(nth).unwrap();
        let (waiting, change) = self.in_flight.remove(&number).unwrap();
        if waiting.is_none() && self.chance(2) {
            return;
        }
        if matches!(change, MapChange::DropHolders { .. }) && self.would_end_the_last(&change) {
            return; // that would be the loss of all copies, after which nothing is promised
        }
        let outcome = match self.commit(&change) {
            Ok(epoch) => {
                self.cutovers += usize::from(matches!(change, MapChange::Cutover { .. }));
                epoch
            }
            Err(Refusal::Outdated { at, .. }) => at,
            Err(other) => panic!("{change:?}: {other}"),
        };
        if let Some(at) = waiting
            && let Some(proposing) = &mut self.nodes[at].proposing
            && matches!(proposing.stage, Proposal::Submitted(mine) if mine == number)
        {
            proposing.stage = Proposal::Decided(outcome);
        }
    }

    fn drop_lagging(&mut self, at: usize) {
        if self.leased_run(at).is_none() {
            return;
        }
        let Some(primary) = self.nodes[at].partition.as_primary() else { return };
        let lags = |copy: &&PeerCopy| copy.is_required && copy.proposed.is_none() && !copy.is_acknowledged();
        let Some(copy) = primary.copies.iter().find(lags) else { return };
        let entry =
            Move { partition: PARTITION, era: primary.era, node: copy.node, incarnation: copy.incarnation };
        self.proposals += 1;
        self.in_flight.insert(self.proposals, (None, MapChange::DropHolders { drops: vec![entry] }));
    }

    fn would_end_the_last(&self, change: &MapChange) -> bool {
        self.latest().apply(change).is_ok_and(|next| self.living_holders(&next, NODES) == 0)
    }

    fn living_holders_beside(&self, at: usize) -> usize {
        self.living_holders(self.latest(), at)
    }

    fn living_holders(&self, view: &View, at: usize) -> usize {
        let lives = |holder: &&NodeId| {
            let node = &self.nodes[holder.0 as usize - 1];
            **holder != id(at) && node.is_alive && node.run == view.map.nodes[*holder].incarnation
        };
        view.row(PARTITION).holders.iter().filter(lives).count()
    }

    /// The membership changes: a node is marked down (if its data is elsewhere too), comes back, is excluded,
    /// or gets another weight.
    fn change_membership(&mut self) {
        let at = self.any_node();
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        let change = match self.random.random_range(0..5) {
            0 | 1 if record.is_up() && others > 0 => {
                // Not before its lease has run out.
                self.nodes[at].leased = None;
                if self.chance(2) {
                    self.die(at);
                    if self.chance(2) {
                        return; // it may be back before anyone has missed it
                    }
                }
                MapChange::MarkDown { node: id(at), incarnation: record.incarnation }
            }
            2 if !record.is_up() => MapChange::Exclude { node: id(at), incarnation: record.incarnation },
            3 => MapChange::SetWeight { node: id(at), weight: self.random.random_range(1..4) },
            _ => return self.come_back(at),
        };
        let _ = self.commit(&change);
    }

    fn die(&mut self, at: usize) {
        self.registering[at] = false;
        let node = &mut self.nodes[at];
        node.is_alive = false;
        node.proposing = None;
        node.leased = None;
        self.operations.retain(|operation| operation.node != at);
        for (waiting, _) in self.in_flight.values_mut() {
            *waiting = waiting.filter(|&waiting| waiting != at);
        }
        let lost: Vec<_> = self
            .wires
            .iter()
            .filter(|it| it.from == at || it.to == at)
            .map(|it| Arc::clone(&it.link))
            .collect();
        lost.iter().for_each(|link| self.close(link));
        // What a dead node sent may still arrive; what was sent to it may not.
        self.wires.retain(|wire| wire.to != at);
    }

    /// A run that was marked down begins a new one; a dead process starts again, with nothing but the map that it
    /// knew, and registers at once if nobody has missed it.
    fn come_back(&mut self, at: usize) {
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        if record.is_up() && (self.nodes[at].is_alive || others == 0) {
            return;
        }
        let node = &mut self.nodes[at];
        if !node.is_alive {
            node.run = node.run.max(record.incarnation).next();
            node.leased = None;
            node.partition = empty_partition(self.backlog_max);
            (node.adopted, node.is_alive) = (node.routed, true);
            let view = Arc::clone(&self.views[node.routed]);
            let me = Me { node: id(at), run: node.run };
            let book = Book(&self.wires, at);
            let _ = transition(&mut self.nodes[at].partition, PARTITION, me, &view, false, &book);
            self.registering[at] = true;
            return;
        }
        if !self.registering[at] {
            node.run = record.incarnation.next();
            node.leased = None;
            self.registering[at] = true;
        }
    }

    fn register(&mut self, at: usize) {
        if !std::mem::take(&mut self.registering[at]) || !self.nodes[at].is_alive {
            return;
        }
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        if others == 0 {
            self.registering[at] = true;
            return;
        }
        let registration = korum_protocol::map::Registration {
            incarnation: self.nodes[at].run,
            weight: record.weight,
            ..test_maps::registration(at as u16 + 1)
        };
        self.commit(&MapChange::Register { node: id(at), registration }).unwrap();
    }

    /// Heartbeats: every run that the log shows up gets a lease, whatever its own map shows.
    fn grant(&mut self, at: usize) {
        let record = &self.latest().map.nodes[&id(at)];
        let granted = record.is_up().then_some(record.incarnation);
        let node = &mut self.nodes[at];
        if node.is_alive && granted == Some(node.run) {
            node.leased = Some(node.run);
        }
    }

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
            for wire in (0..self.wires.len()).cycle().take(3 * self.wires.len()) {
                self.send(wire);
                self.send_last_piece(wire);
                self.deliver(wire);
                self.hear(wire);
            }
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
        for wire in (0..self.wires.len()).cycle().take(3 * self.wires.len()) {
            self.send(wire);
            self.send_last_piece(wire);
            self.deliver(wire);
            self.hear(wire);
        }
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
    let mut counts = [0; 7];
    for seed in first..first + seeds {
        let run = std::panic::catch_unwind(|| {
            let mut sim = Sim::new(seed);
            for _ in 0..3_000 {
                sim.step();
                sim.check();
            }
            sim.rest();
            let [repaired, streamed] = sim.sent;
            [sim.answered, sim.cutovers, sim.small, sim.large, sim.passed, repaired, streamed]
        });
        let Ok(run) = run else { panic!("with seed {seed}") };
        counts.iter_mut().zip(run).for_each(|(count, of_run)| *count += of_run);
    }
    let [answered, cutovers, small, large, passed, repaired, streamed] = counts;
    println!("{seeds} schedules, {answered} answers, {cutovers} cutovers");
    println!("{repaired} copies were repaired, {streamed} streamed");
    println!("{small} small frames, {large} large ones, {passed} small ones between their pieces");
    assert!(answered as u64 > 20 * seeds, "the schedules hardly answer anything: {answered}");
    assert!(cutovers as u64 > seeds, "the schedules hardly move anything: {cutovers}");
    assert!(large as u64 > seeds, "the schedules hardly send anything large: {large}");
    assert!(repaired as u64 > seeds, "the schedules hardly repair anything: {repaired}");
    assert!(streamed as u64 > seeds, "the schedules hardly stream anything: {streamed}");
    assert!(4 * passed as u64 > seeds, "hardly anything passes between pieces: {passed}");
}
