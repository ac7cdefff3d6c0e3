//! Carries moves out: every partition of which this node is primary gets the copies it should have.
//!
//! For: one loop that looks at all of this node's partitions whenever something changed, and does the
//! next step of each: start a copy, send a chunk, propose the cutover. It keeps no plan: what to do
//! next follows from the map and from how far each copy is, so nothing is ever left to resume.
//! Not here: which copies are missing (`plan`), what a copy goes through (`replication::primary`).
//!
//! A cutover that ends this node's primacy freezes the partition first: its requests wait until the
//! outcome is in this node's map.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::{MapChange, Move, NodeRecord, PartitionId, Refusal, View};
use tokio::task::JoinHandle;

use super::plan::{self, Task};
use super::silence::{Seen, Silences};
use super::throttle::Throttle;
use super::window::Window;
use crate::env::Tick;
use crate::node::Node;
use crate::replication::history::History;
use crate::replication::primary::{Offer, Offered, PeerCopy, Primary, Settlement, Waits};
use crate::replication::transition::LinkBook;
use crate::store::{Keyspace, Partition, Role};
use korum_raft::ProposeError;

/// Longest pause between two looks, well below `silence::OWN_SILENCE`; changes wake the loop at once.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// The same, while a peer owes acknowledgements: each partition that is written then waits for a look.
const LOOK_AT_SUSPECTS: Duration = Duration::from_millis(20);
/// Bytes of chunks that one look reads before other tasks of its thread get their turn: less than a millisecond of work.
const SLICE_BYTES: usize = 128 << 10;
/// Shortest pause between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// The pause is so many times as long as the look before it: streams take a fourth of one thread's time, and less
/// on a busy machine, where a look takes longer. Clients go first.
const PAUSE_FACTOR: u32 = 3;
/// Cutovers of one proposal: as many partitions are frozen together, for one commit.
const CUTOVERS_MAX: usize = 64;
/// Pause after a proposal, unless enough is ready for a full one: every map costs all nodes a millisecond or two.
const CUTOVER_PAUSE: Duration = Duration::from_millis(25);
/// How long a proposal may take.
const PROPOSE_WAIT: Duration = Duration::from_secs(3);
/// How long the last writes before a freeze may take to be acknowledged.
const FREEZE_WAIT: Duration = Duration::from_secs(1);

/// The loop's own memory: what cannot be read off the partitions.
struct Rebalancer {
    node: Arc<Node>,
    throttle: Throttle,
    window: Window,
    /// What the map of this epoch asks for.
    planned: Epoch,
    missing: HashMap<PartitionId, Vec<Task>>,
    cutover: Option<JoinHandle<()>>,
    /// When the last one was seen under way.
    cutover_at: Tick,
    drop: Option<JoinHandle<()>>,
    silences: Silences,
}

/// What one look found.
#[derive(Default)]
struct Found {
    has_more_chunks: bool,
    chunk_bytes: usize,
    /// Partitions that are being brought to each node.
    under_way: HashMap<NodeId, usize>,
    ready: Vec<Task>,
    lagging: Vec<Move>,
}

/// Runs until the task is dropped.
pub async fn run(node: Arc<Node>) {
    let settings = &node.config().rebalance;
    let throttle = Throttle::new(settings.bytes_per_second, node.clock().now());
    let mut rebalancer = Rebalancer {
        node,
        throttle,
        window: Window::default(),
        planned: Epoch(0),
        missing: HashMap::new(),
        cutover: None,
        cutover_at: Tick::default(),
        drop: None,
        silences: Silences::default(),
    };
    loop {
        let began = rebalancer.node.clock().now();
        let has_more = rebalancer.look();
        if has_more {
            let worked = rebalancer.node.clock().now().since(began);
            tokio::time::sleep((worked * PAUSE_FACTOR).clamp(PAUSE, LOOK_AGAIN)).await;
        } else {
            let has_suspects = rebalancer.silences.has_suspects(rebalancer.node.clock().now());
            let wait = if has_suspects { LOOK_AT_SUSPECTS } else { LOOK_AGAIN };
            rebalancer.node.changed_within(wait).await;
        }
    }
}

impl Rebalancer {
    /// One look at every partition of which this node is primary. True if there is more to stream now.
    fn look(&mut self) -> bool {
        let now = self.node.clock().now();
        let is_leased = self.node.is_leased();
        self.silences.begin_look(now, is_leased);
        if !is_leased {
            return false;
        }
        let view = self.node.view();
        self.throttle.refill(now);
        self.window.forget_broken();
        let missing = self.plan(&view);
        let stalled = self.stalled_peers(&view, now);
        let mut found = Found::default();
        for (id, tasks) in &missing {
            let partition = self.node.store().lock(*id);
            let primary = partition.as_primary().filter(|primary| primary.era == view.row(*id).era);
            let copies = primary.map(|primary| &primary.copies[..]).unwrap_or_default();
            for task in tasks.iter().filter(|task| copies.iter().any(|copy| copy.node == task.target)) {
                *found.under_way.entry(task.target).or_default() += 1;
            }
        }
        for id in 0..self.node.store().len() as PartitionId {
            if view.row(id).primary != Some(self.node.id()) {
                continue;
            }
            let tasks = missing.get(&id).map_or(&[][..], Vec::as_slice);
            self.look_at(id, &view, tasks, &stalled, &mut found);
        }
        self.missing = missing;
        self.drop_lagging(found.lagging);
        let has_cutovers = self.cut_over(&view, found.ready);
        found.has_more_chunks || has_cutovers
    }

    /// What is to be done, by partition: taken from the last look if the map has stayed. To be put back.
    fn plan(&mut self, view: &View) -> HashMap<PartitionId, Vec<Task>> {
        let mut missing = std::mem::take(&mut self.missing);
        if self.planned != view.map.epoch {
            self.planned = view.map.epoch;
            missing.clear();
            for task in plan::tasks(view, self.node.id()) {
                missing.entry(task.partition).or_default().push(task);
            }
        }
        missing
    }

    fn look_at(
        &mut self,
        id: PartitionId,
        view: &View,
        tasks: &[Task],
        stalled: &[NodeId],
        found: &mut Found,
    ) {
        let mut guard = self.node.store().lock(id);
        let partition = &mut *guard;
        let Partition { role: Role::Primary(primary), history, keyspace, .. } = partition else { return };
        if primary.era != view.row(id).era {
            return;
        }
        for task in tasks {
            let limit = self.node.config().rebalance.concurrent_partitions as usize;
            let known = primary.copies.iter().any(|copy| copy.node == task.target);
            let under_way = found.under_way.entry(task.target).or_default();
            let is_linked = || self.node.links().link(task.target, task.incarnation).is_some();
            if !known && *under_way < limit && is_linked() {
                primary.copies.push(PeerCopy::new(task.target, task.incarnation, false));
                *under_way += 1;
            }
        }
        let era = primary.era;
        for copy in &mut primary.copies {
            if copy.link().is_some_and(|link| link.is_broken()) {
                copy.unlink();
            }
            if copy.link().is_none()
                && let Some(link) = self.node.links().link(copy.node, copy.incarnation)
            {
                copy.connect(id, era, history, &link);
            }
            if let Some(task) = tasks.iter().find(|task| task.target == copy.node)
                && (copy.is_complete() || task.already_holds || copy.proposed == Some(task.membership_epoch))
            {
                found.ready.push(*task);
            }
            if copy.is_required
                && copy.proposed.is_none()
                && stalled.contains(&copy.node)
                && !copy.is_acknowledged()
            {
                found.lagging.push(Move {
                    partition: id,
                    era,
                    node: copy.node,
                    incarnation: copy.incarnation,
                });
            }
        }
        self.catch_up(id, primary, history, keyspace, found);
    }

    /// Sends a repair or a chunk to each copy that is not in step and has room for it.
    fn catch_up(
        &self,
        id: PartitionId,
        primary: &mut Primary,
        history: &History,
        keyspace: &mut Keyspace,
        found: &mut Found,
    ) {
        let waiting = primary.copies.iter().filter(|copy| copy.is_catching_up());
        let nodes: Vec<NodeId> = waiting.map(|copy| copy.node).collect();
        let chunk_bytes = self.node.config().rebalance.chunk_bytes;
        for node in nodes {
            found.has_more_chunks = true;
            let link = primary.copies.iter().find(|copy| copy.node == node).and_then(PeerCopy::link).cloned();
            if let Some(link) = link
                && found.chunk_bytes < SLICE_BYTES
                && self.throttle.has_room()
                && self.window.has_room(&link)
                && let Some(sent) = primary.catch_up(id, history, keyspace, node, chunk_bytes)
            {
                found.chunk_bytes += sent.bytes;
                self.throttle.take(sent.bytes);
                self.window.add(&link, sent.place, sent.bytes);
                self.node.count_sent(&sent);
            }
        }
    }

    /// Peers that owe acknowledgements and have been silent for too long.
    fn stalled_peers(&mut self, view: &View, now: Tick) -> Vec<NodeId> {
        let timeout = self.node.config().cluster.replica_timeout;
        let lease = self.node.config().timing.lease;
        let mut stalled = Vec::new();
        self.silences.keep(|id| view.map.nodes.get(&id).is_some_and(NodeRecord::is_up));
        let is_peer = |(id, record): &(&NodeId, &NodeRecord)| **id != self.node.id() && record.is_up();
        for (&id, record) in view.map.nodes.iter().filter(is_peer) {
            let link = self.node.links().link(id, record.incarnation);
            let seen = link.map(|link| Seen {
                link: link.number,
                progress: link.progress(),
                heard: link.heard(),
                owes: !link.is_settled(),
            });
            if self.silences.is_stalled(id, seen, now, timeout, lease) {
                stalled.push(id);
            }
        }
        stalled
    }

    fn drop_lagging(&mut self, drops: Vec<Move>) {
        let is_under_way = self.drop.as_ref().is_some_and(|drop| !drop.is_finished());
        if drops.is_empty() || is_under_way {
            return;
        }
        let node = Arc::clone(&self.node);
        tracing::warn!(
            partitions = drops.len(),
            "replicas do not acknowledge: they stop being holders until they have caught up"
        );
        self.drop = Some(self.node.executor().spawn(async move {
            // The outcome is in the map; until then the copies are waited for.
            let _ = node.cluster().propose(MapChange::DropHolders { drops }, PROPOSE_WAIT).await;
        }));
    }

    /// Proposes the next cutovers, unless some are under way. True if there were any.
    fn cut_over(&mut self, view: &View, mut ready: Vec<Task>) -> bool {
        if ready.is_empty() {
            return false;
        }
        let now = self.node.clock().now();
        if self.cutover.as_ref().is_some_and(|cutover| !cutover.is_finished()) {
            self.cutover_at = now;
            return false;
        }
        if ready.len() < CUTOVERS_MAX && now.since(self.cutover_at) < CUTOVER_PAUSE {
            return true;
        }
        self.cutover_at = now;
        ready.truncate(CUTOVERS_MAX);
        let (node, membership_epoch) = (Arc::clone(&self.node), view.map.membership_epoch);
        self.cutover = Some(self.node.executor().spawn(async move {
            propose(&node, membership_epoch, &ready).await;
            node.notify_changed();
        }));
        true
    }
}

/// One batch of cutovers, from freeze to outcome. Until the outcome is known, both the obligation to
/// wait for the new copy and the freeze stay.
async fn propose(node: &Arc<Node>, membership_epoch: Epoch, tasks: &[Task]) {
    let mut waits = Waits::default();
    let mut is_settled = true;
    let (mut fresh, mut open) = (Vec::new(), Vec::new());
    for task in tasks {
        let mut partition = node.store().lock(task.partition);
        let Some(primary) = partition.as_primary_mut().filter(|primary| primary.era == task.era) else {
            continue;
        };
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
    is_settled = is_settled && tokio::time::timeout(FREEZE_WAIT, waits.all()).await == Ok(true);
    if !is_settled {
        // These were not proposed, so nothing has to be awaited.
        withdraw(node, &fresh, membership_epoch);
        fresh.clear();
    }
    let moves = [fresh, open].concat();
    if moves.is_empty() {
        return;
    }
    let change = MapChange::Cutover { membership_epoch, moves: moves.clone() };
    let outcome = node.cluster().propose(change, PROPOSE_WAIT).await;
    let decided_at = match outcome {
        Ok(epoch) => epoch,
        Err(ProposeError::Refused(Refusal::Outdated { at, .. })) => at,
        Err(error) => {
            tracing::warn!(%error, partitions = moves.len(), "the outcome of a cutover is open; proposing again");
            return;
        }
    };
    // Only a map that is as new as the decision shows what was decided.
    if node.reached(decided_at, PROPOSE_WAIT).await.is_some() {
        withdraw(node, &moves, membership_epoch);
    }
}

/// Takes back what was promised for moves that are decided and did not make their targets holders.
fn withdraw(node: &Arc<Node>, moves: &[Move], membership_epoch: Epoch) {
    for entry in moves {
        let mut partition = node.store().lock(entry.partition);
        if let Some(primary) = partition.as_primary_mut().filter(|primary| primary.era == entry.era) {
            primary.withdraw(entry.node, membership_epoch);
        }
    }
    node.notify_changed();
}
