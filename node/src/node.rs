//! One node, put together: what its rooms share.
//!
//! For: the snapshot of the map that everyone routes by, the store, the links, and the signals between
//! them. Adopting a new map is here, because it is the one moment at which all of them change together.
//! Not here: decisions. Each has its room.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::View;
use rand::Rng;
use tokio::sync::{Notify, watch};

use crate::admin::slowlog::{Latency, SlowLog};
use crate::admin::stats::{Counter, Stats};
use crate::cluster::{Cluster, peer_address};
use crate::command::topology::TopologyCache;
use crate::config::Config;
use crate::config::live::Live;
use crate::dispatch::blocking::park::Gauge;
use crate::dispatch::{databases, track};
use crate::env::random::random;
use crate::env::{Clock, Tick};
use crate::executor::{Executor, worker_number};
use crate::net::clients::Registry;
use crate::net::forward::{self, Forwards};
use crate::net::peer::LocalPeer;
use crate::replication::link::Link;
use crate::replication::links::Links;
use crate::replication::message::Compared;
use crate::replication::primary::{Piece, Sent};
use crate::replication::session::{self, Sources};
use crate::replication::transition::{Me, transition};
use crate::script::Scripts;
use crate::store::{Databases, Garbage, Janitor, Partition, Store};

/// A running node.
pub struct Node {
    id: NodeId,
    config: Config,
    clock: Clock,
    started: Tick,
    cluster: Arc<Cluster>,
    executor: Arc<Executor>,
    store: Store,
    janitor: Janitor,
    links: Links,
    sources: Sources,
    forwards: Forwards,
    view: ArcSwap<View>,
    /// The epoch of the newest map that this node has begun to adopt.
    speaking: AtomicU64,
    /// The run of this node that the map in force shows up; 0 if none.
    adopted_run: AtomicU64,
    is_leaving: AtomicBool,
    epochs: watch::Sender<Epoch>,
    changed: Notify,
    keepers: Mutex<HashMap<NodeId, Incarnation>>,
    run_id: u64,
    /// Topology replies.
    pub topology: TopologyCache,
    /// All client connections.
    pub clients: Arc<Registry>,
    /// How many commands wait here for something to come.
    pub parked: Arc<Gauge>,
    /// Parameters that `CONFIG SET` may change.
    pub live: Live,
    /// What is counted.
    pub stats: Stats,
    /// Commands that took long.
    pub slowlog: SlowLog,
    /// Delays.
    pub latency: Latency,
    /// Asks the process to end.
    pub shutdown: watch::Sender<bool>,
    /// What it knows of scripts.
    pub scripts: Arc<Scripts>,
    /// True when others serve what this node served: connections on which peers forward end in good order.
    pub departure: watch::Sender<bool>,
}

impl Node {
    /// A node that knows `view` and has adopted nothing yet.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(
        config: Config,
        clock: Clock,
        cluster: Arc<Cluster>,
        executor: Arc<Executor>,
        view: &Arc<View>,
    ) -> std::io::Result<Arc<Self>> {
        let mut nothing = View::clone(view);
        nothing.map.epoch = Epoch(0);
        nothing.table.rows.iter_mut().for_each(|row| {
            (row.primary, row.era) = (None, Epoch(0));
            row.holders.clear();
            row.replica_set.clear();
        });
        let live = Live::new(&config);
        let node = Self {
            id: cluster.id(),
            started: clock.now(),
            store: Store::new(
                view.map.partitions,
                view.map.placement_seed ^ view.map.cluster_id.0,
                config.limits.backlog as usize,
            ),
            janitor: Janitor::start()?,
            links: Links::default(),
            sources: Sources::default(),
            speaking: AtomicU64::new(0),
            adopted_run: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            forwards: Forwards::default(),
            view: ArcSwap::from_pointee(nothing),
            epochs: watch::channel(Epoch(0)).0,
            changed: Notify::new(),
            keepers: Mutex::default(),
            clients: Arc::default(),
            parked: Arc::default(),
            live,
            slowlog: SlowLog::default(),
            latency: Latency::default(),
            stats: Stats::new(usize::from(config.limits.threads)),
            topology: TopologyCache::new(cluster.id(), config.cluster.topology_replicas),
            run_id: random().next_u64(),
            shutdown: watch::channel(false).0,
            scripts: Arc::default(),
            departure: watch::channel(false).0,
            config,
            clock,
            cluster,
            executor,
        };
        let node = Arc::new(node);
        let store = Arc::downgrade(&node);
        node.cluster.tell_holds_keys(move || store.upgrade().is_none_or(|node| node.store.holds_keys()));
        node.adopt(view);
        Ok(node)
    }

    /// Who it is.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// How it was configured.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How long it has been running.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.clock.now().since(self.started)
    }

    /// Membership, leases and proposals.
    #[must_use]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Where tasks run.
    #[must_use]
    pub fn executor(&self) -> &Arc<Executor> {
        &self.executor
    }

    /// A name of this run of the process, 40 hexadecimal digits.
    #[must_use]
    pub fn run_id(&self) -> String {
        NodeId(self.run_id).to_string()
    }

    /// Counts what was sent to a copy that was not in step.
    pub fn count_sent(&self, sent: &Sent) {
        let stats = self.stats.of(worker_number());
        stats.add(Counter::StreamedBytes, sent.bytes as u64);
        stats.add(Counter::StreamedKeys, sent.keys);
        match sent.what {
            Piece::Repair => stats.add(Counter::Repairs, 1),
            Piece::FirstChunk => stats.add(Counter::Streams, 1),
            Piece::NextChunk | Piece::Part => {}
        }
    }

    /// All partitions.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Replication links.
    #[must_use]
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Forward connections.
    #[must_use]
    pub fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// What it says of itself to peers.
    #[must_use]
    pub fn local_peer(&self) -> &Arc<LocalPeer> {
        self.cluster.local_peer()
    }

    /// The map in force here.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Tells the epoch of each map that comes in force.
    #[must_use]
    pub fn watch_view(&self) -> watch::Receiver<Epoch> {
        self.epochs.subscribe()
    }

    /// May this node serve at this moment, as far as its lease goes?
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.leased_run().is_some()
    }

    /// The run of this node that may serve at this moment. A lease is of no use before the map that shows
    /// this run up is in force here: until then the partitions have the roles of an earlier run. And what an
    /// earlier run has executed, a later one must not answer.
    #[must_use]
    pub fn leased_run(&self) -> Option<Incarnation> {
        self.adopted_run().filter(|_| self.cluster.lease().is_valid(self.clock.now()))
    }

    /// From now on commands with keys are not executed here: they wait for whoever serves next. What was executed
    /// is still answered. Those that wait for something to come are handed back.
    pub fn stop_executing(&self) {
        self.is_leaving.store(true, Release);
        self.store.for_each(|_, partition| {
            if let Some(primary) = partition.as_primary_mut() {
                primary.waiting.clear();
            }
        });
    }

    /// Commands with keys are not executed any more.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Acquire)
    }

    /// A lease of this run that is not valid now may become so.
    #[must_use]
    pub fn may_be_leased_again(&self, run: Incarnation) -> bool {
        self.adopted_run() == Some(run) && !self.cluster.lease().is_given_back()
    }

    /// The present run of this node, once the map that shows it up is in force here.
    fn adopted_run(&self) -> Option<Incarnation> {
        let run = self.adopted_run.load(Acquire);
        (run != 0 && run == self.local_peer().incarnation().0).then_some(Incarnation(run))
    }

    /// The epoch that a peer's map must have reached to understand what this node says.
    #[must_use]
    pub fn speaking_epoch(&self) -> Epoch {
        Epoch(self.speaking.load(Acquire))
    }

    /// Connections on which this node follows others.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// When a request that begins now is answered at the latest.
    #[must_use]
    pub fn request_deadline(&self) -> Tick {
        self.clock.now() + self.config.limits.request_timeout
    }

    /// The peer address of a run of a node, while the map shows that run up.
    #[must_use]
    pub fn peer_address(&self, peer: NodeId, incarnation: Incarnation) -> Option<String> {
        let view = self.view();
        let record = view.map.nodes.get(&peer)?;
        (record.is_up() && record.incarnation == incarnation).then(|| peer_address(&record.addresses))
    }

    /// Waits until the map no longer shows that run of a peer up.
    pub async fn until_gone(&self, peer: NodeId, incarnation: Incarnation) {
        let mut epochs = self.watch_view();
        while self.peer_address(peer, incarnation).is_some() && epochs.changed().await.is_ok() {}
    }

    /// A connection to a peer broke: is its process still there?
    pub fn suspect(&self, peer: NodeId, incarnation: Incarnation) {
        self.cluster.suspect(peer, incarnation);
    }

    /// Waits until the map in force here has reached `epoch`; `None` when it does not within `wait`.
    pub async fn reached(&self, epoch: Epoch, wait: Duration) -> Option<()> {
        if self.view.load().map.epoch >= epoch {
            return Some(());
        }
        let mut epochs = self.watch_view();
        let reached = epochs.wait_for(|&present| present >= epoch);
        tokio::time::timeout(wait, reached).await.ok()?.ok()?;
        Some(())
    }

    /// Something happened that a waiting request may have waited for.
    pub fn notify_changed(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for such a thing, at most for `wait`.
    pub async fn changed_within(&self, wait: Duration) {
        // Time that runs out is as good a reason to look again.
        let _ = tokio::time::timeout(wait, self.changed.notified()).await;
    }

    /// Drops content that is no longer wanted, somewhere where it stalls nobody.
    pub fn discard(&self, garbage: Garbage) {
        self.janitor.drop_later(garbage);
    }

    /// Which databases there are, and which rooms they have, as the map in force says.
    #[must_use]
    pub fn databases(&self) -> Databases {
        Databases::new(self.config.limits.databases, self.view.load().map.databases())
    }

    /// `MOVED slot host:port`
    #[must_use]
    pub fn moved(&self, view: &View, slot: u16, primary: NodeId) -> String {
        match view.map.nodes.get(&primary).map(|record| &record.addresses) {
            Some(addresses) => {
                let port = if addresses.cluster == 0 { addresses.client } else { addresses.cluster };
                format!("MOVED {slot} {}:{port}", addresses.host)
            }
            None => "CLUSTERDOWN Hash slot not served".to_owned(),
        }
    }

    /// A replica told how far its copy has come.
    pub fn compared(&self, link: &Arc<Link>, answer: Compared) {
        let id = answer.partition;
        if usize::from(id) >= self.store.len() {
            return;
        }
        let mut guard = self.store.lock(id);
        let Partition { role, keyspace, history, .. } = &mut *guard;
        let Some(primary) = role.primary_mut().filter(|primary| primary.era == answer.era) else { return };
        if primary.compared(link.peer, link, answer)
            && let Some(sent) =
                primary.catch_up(id, history, keyspace, link.peer, self.config.rebalance.chunk_bytes)
        {
            self.count_sent(&sent);
        }
    }

    /// Puts a newer map in force: first every partition takes its role, then requests are routed by it.
    /// Called by one task only.
    pub fn adopt(self: &Arc<Self>, view: &Arc<View>) {
        let old = self.view();
        if view.map.epoch <= old.map.epoch {
            return;
        }
        let is_membership = view.map.membership_epoch != old.map.membership_epoch;
        let has_gap = is_membership && view.map.epoch != old.map.epoch.next();
        let me = Me { node: self.id, run: self.local_peer().incarnation() };
        self.speaking.store(view.map.epoch.0, Release);
        self.scripts.functions.adopt(view.map.epoch);
        let rooms = Databases::new(self.config.limits.databases, view.map.databases());
        let are_swapped = old.map.epoch == Epoch(0) || old.map.databases() != view.map.databases();
        for id in 0..self.store.len() as u16 {
            if are_swapped {
                databases::take_over(&mut self.store.lock(id), &rooms);
            }
            if is_membership || view.row(id) != old.row(id) {
                let mut partition = self.store.lock(id);
                let garbage = transition(&mut partition, id, me, view, has_gap, &self.links);
                drop(partition);
                if let Some(garbage) = garbage {
                    self.discard(garbage);
                }
            }
        }
        self.view.store(Arc::clone(view));
        if are_swapped {
            track::tell_everything(self);
        } else if self.clients.tracker.has_clients()
            && (0..self.store.len() as u16).any(|id| view.row(id).primary != old.row(id).primary)
        {
            track::doubt(self);
        }
        self.clients.hub.leave_moved(view, self.id, &self.live.pubsub_limits(), self.clock.now());
        let shown = view.map.nodes.get(&self.id).filter(|record| record.is_up());
        // Only a run whose roles the partitions have: a newer one waits for a map that knows it.
        let shown = shown.filter(|record| record.incarnation == me.run);
        self.adopted_run.store(shown.map_or(0, |record| record.incarnation.0), Release);
        self.epochs.send_replace(view.map.epoch);
        self.keep_peers(view);
        self.notify_changed();
        let emptied: Vec<_> = view.map.emptied.iter().filter(|(_, epoch)| **epoch > old.map.epoch).collect();
        if let Some((first, _)) = emptied.first() {
            let count = emptied.len();
            tracing::warn!(count, first, "all holders of these partitions were gone: they start empty");
        }
    }

    /// A link and a forward connection to every run of a peer that is up. They end by themselves.
    fn keep_peers(self: &Arc<Self>, view: &View) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain(|node, incarnation| {
            view.map
                .nodes
                .get(node)
                .is_some_and(|record| record.is_up() && record.incarnation == *incarnation)
        });
        for link in self.links.all() {
            if self.peer_address(link.peer, link.incarnation).is_none() {
                link.break_off();
            }
        }
        for (&peer, record) in view.map.nodes.iter().filter(|(id, record)| **id != self.id && record.is_up())
        {
            if keepers.insert(peer, record.incarnation) != Some(record.incarnation) {
                self.executor.spawn(session::keep_link(Arc::clone(self), peer, record.incarnation));
                self.executor.spawn(forward::keep_forward(Arc::clone(self), peer, record.incarnation));
            }
        }
    }
}
