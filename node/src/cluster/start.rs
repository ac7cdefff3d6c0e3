//! From options to a running [`Cluster`].
//!
//! For: the order in which the parts are put together, and which of the three beginnings applies:
//! create, join, or come back.
//! Not here: what the parts do.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{MapChange, View};
use korum_protocol::peer::message::Purpose;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::identity::{Identity, IdentityError, mint};
use super::join::JoinError;
use super::lease::Lease;
use super::shared::{About, Leading, Shared, lock, peer_address};
use super::{Callbacks, Cluster, ClusterOptions, RAFT_DIR, Standing};
use super::{control, coordinator, heartbeat, join, probe};
use crate::env::Clock;
use crate::env::transport::TcpListener;
use crate::executor::blocking;
use crate::net::peer::{LocalPeer, PeerEvent, PeerHandlers, PeerRpc, PeerServer};
use korum_raft::{Consensus, Options, ProposeError, RaftTransport};

/// Hints that wait to be looked at; more are not worth keeping, since each makes the node look at all of a peer.
const EVENTS_MAX: usize = 1024;
/// Longest time for the map to arrive that knows a node which has just joined, or was just created.
const FIRST_VIEW: Duration = Duration::from_secs(10);
/// Longest time for the map of an earlier run to be read back when nothing else says which cluster this is.
const OLD_VIEW: Duration = Duration::from_secs(2);

/// Longest time for what still blocks on the disk when the room ends.
#[cfg(not(feature = "sim"))]
const END: Duration = Duration::from_secs(1);

/// Why a node cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The peer port cannot be opened.
    #[error("cannot listen on peer address {address}")]
    Listen {
        /// Where.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Raft's files cannot be used.
    #[error("cannot open the Raft log in the data directory")]
    Raft(#[source] io::Error),
    /// The identity belongs to a cluster but the Raft log is gone.
    #[error(
        "the data directory belongs to a member of a cluster but its Raft log is missing: empty the directory, so that this node joins as a new one, and forget the old one"
    )]
    LogMissing,
    /// A join was begun and not finished.
    #[error(
        "this node began to join a cluster and did not finish: start it with --join, or empty its data directory"
    )]
    HalfJoined,
    /// The cluster did not take this node.
    #[error("cannot join: {0}")]
    Join(String),
    /// What this node had begun to join became another cluster. All is as if it had not begun: start again.
    #[error("cannot join: the addresses lead to another cluster than a moment ago; start again")]
    ClusterGone,
    /// The cluster was not created.
    #[error("cannot create the cluster")]
    Create(#[source] ProposeError),
    /// The map that knows this node did not arrive.
    #[error(
        "joined, but the cluster map did not arrive in time: is the peer port reachable from the other nodes?"
    )]
    NoMap,
    /// A thread or the disk failed.
    #[error("cannot start the cluster thread")]
    Io(#[from] io::Error),
}

/// Starts on a thread of its own.
pub(super) async fn start(
    options: ClusterOptions,
    clock: Clock,
    callbacks: Callbacks,
) -> Result<Arc<Cluster>, StartError> {
    let (started, wait) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let (has_ended, ended) = watch::channel(false);
    let live = async move {
        let mut started = started;
        let built = tokio::select! {
            biased;
            built = build(options, clock, callbacks) => built,
            // Nobody waits for it any more.
            () = started.closed() => return None,
        };
        match built {
            Ok(shared) => {
                // If nobody waits any more, the stop sender is gone as well.
                let _ = started.send(Ok((shared, tokio::runtime::Handle::current())));
                let _ = stopped.await;
                None
            }
            Err(error) => Some((started, error)),
        }
    };
    run(live, move |failed| {
        // The port is free when the caller hears of it.
        if let Some((started, error)) = failed {
            let _ = started.send(Err(error));
        }
        has_ended.send_replace(true);
    })?;
    let died = || StartError::Io(io::Error::other("the cluster thread ended while it started"));
    let (shared, runtime) = wait.await.map_err(|_| died())??;
    Ok(Arc::new(Cluster { shared, runtime, stop: Mutex::new(Some(stop)), ended }))
}

/// Runs the room on a thread of its own.
#[cfg(not(feature = "sim"))]
fn run<T: 'static>(
    live: impl Future<Output = T> + Send + 'static,
    ended: impl FnOnce(T) + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("korum-cluster".into()).spawn(move || {
        let end = runtime.block_on(live);
        // All tasks of this room end here, and with them its sockets.
        runtime.shutdown_timeout(END);
        ended(end);
    })?;
    Ok(())
}

/// Runs the room on the present runtime: in a simulation one thread runs everything, and ends a node as a whole.
#[cfg(feature = "sim")]
fn run<T: Send + 'static>(
    live: impl Future<Output = T> + Send + 'static,
    ended: impl FnOnce(T) + Send + 'static,
) -> io::Result<()> {
    drop(tokio::spawn(async move { ended(live.await) }));
    Ok(())
}

async fn build(
    options: ClusterOptions,
    clock: Clock,
    callbacks: Callbacks,
) -> Result<Arc<Shared>, StartError> {
    let dir = options.dir.clone();
    let identity = blocking(move || Identity::open(&dir)).await.map_err(io::Error::other)??;
    let listen = |source| StartError::Listen { address: options.listen.clone(), source };
    let listener = TcpListener::bind(&options.listen).await.map_err(listen)?;
    let mut addresses = options.addresses.clone();
    if addresses.peer == 0 {
        addresses.peer = listener.local_addr().map_err(listen)?.port();
    }
    let (me, incarnation) = (identity.node(), identity.incarnation());
    let address = peer_address(&addresses);
    let secret = options.secret.clone();
    let local = Arc::new(LocalPeer::new(me, incarnation, identity.cluster_id(), address.clone(), secret));
    let (events, receive_events) = mpsc::channel::<PeerEvent>(EVENTS_MAX);
    let report = {
        let events = events.clone();
        move |event| drop(events.try_send(event))
    };
    let rpc = Arc::new(PeerRpc::new(Arc::clone(&local), clock.clone(), Arc::new(report)));
    let raft = Options {
        me,
        dir: options.dir.join(RAFT_DIR),
        heartbeat: options.timing.raft_heartbeat,
        election: options.timing.raft_election,
    };
    let transport: Arc<dyn RaftTransport> = Arc::<PeerRpc>::clone(&rpc);
    let consensus = Consensus::open(raft, transport).await.map_err(StartError::Raft)?;
    let pristine = consensus.is_pristine();
    let shared = Arc::new(Shared {
        clock,
        timing: options.timing,
        local,
        rpc,
        consensus,
        lease: Arc::new(Lease::default()),
        callbacks,
        about: About { addresses, zone: options.zone.clone(), weight: options.weight },
        dir: options.dir.clone(),
        holds_keys: OnceLock::new(),
        meeting: AtomicBool::new(false),
        seeds: options.join.clone(),
        identity: Mutex::new(Some(identity)),
        leading: Mutex::new(Leading::default()),
        evidence: Mutex::default(),
        hint: Mutex::default(),
        refused: AtomicU32::new(0),
        standing: watch::channel(Standing::Starting).0,
        beat: Notify::new(),
        look: Notify::new(),
        confirm: Notify::new(),
        events,
    });
    tokio::spawn(PeerServer::new(Arc::clone(&shared.local), handlers(&shared)).run(listener));
    tokio::spawn(follow_views(Arc::clone(&shared)));
    let begun = async {
        let cluster_id = begin(&shared, &options, pristine, address).await?;
        shared.local.set_cluster_id(cluster_id);
        tokio::spawn(coordinator::run(Arc::clone(&shared)));
        tokio::spawn(coordinator::confirm(Arc::clone(&shared)));
        // Before the disk has the identity: a disk may be slow, and a node that is silent is marked down.
        tokio::spawn(heartbeat::run(Arc::clone(&shared)));
        tokio::spawn(probe::run(Arc::clone(&shared), receive_events));
        save_identity(&shared, cluster_id).await
    };
    if let Err(error) = begun.await {
        // Raft's thread and the directory's lock must be free when the caller hears of it.
        shared.consensus.shutdown().await;
        lock(&shared.identity).take();
        return Err(error);
    }
    Ok(shared)
}

/// Which cluster this is: a new one, one that took this node, or that of an earlier run.
async fn begin(
    shared: &Arc<Shared>,
    options: &ClusterOptions,
    pristine: bool,
    address: String,
) -> Result<ClusterId, StartError> {
    match (shared.local.cluster_id(), pristine) {
        (Some(_), true) => Err(StartError::LogMissing),
        (Some(cluster_id), false) => Ok(cluster_id),
        (None, true) if options.join.is_empty() => create(shared, options, address).await,
        (None, true) => join_cluster(shared, options).await,
        (None, false) => match view_with_me(shared, OLD_VIEW).await {
            Some(view) => Ok(view.map.formation()),
            None if options.join.is_empty() => Err(StartError::HalfJoined),
            None => join_cluster(shared, options).await,
        },
    }
}

async fn save_identity(shared: &Arc<Shared>, cluster_id: ClusterId) -> Result<(), StartError> {
    let on_disk = Arc::clone(shared);
    let saved = blocking(move || {
        lock(&on_disk.identity).as_mut().map_or(Ok(()), |identity| identity.set_cluster_id(cluster_id))
    });
    saved.await.map_err(io::Error::other)??;
    Ok(())
}

async fn create(shared: &Shared, options: &ClusterOptions, address: String) -> Result<ClusterId, StartError> {
    let cluster_id = ClusterId(mint());
    let first = MapChange::Create {
        cluster_id,
        partitions: options.partitions,
        replication: options.replication,
        placement_seed: mint(),
        loss_policy: options.loss_policy,
        node: shared.me(),
        registration: shared.registration(),
    };
    let epoch = shared.consensus.create(address, first).await.map_err(StartError::Create)?;
    tracing::info!(cluster = %format_args!("{:016x}", cluster_id.0), %epoch, "created a cluster");
    Ok(cluster_id)
}

/// The node's membership is on its own disk when this returns: only then may its identity say so.
async fn join_cluster(shared: &Shared, options: &ClusterOptions) -> Result<ClusterId, StartError> {
    let registration = shared.registration();
    let limit = options.join_timeout;
    // The log of an earlier attempt belongs to one cluster and to no other.
    if let Some(view) = shared.view() {
        shared.local.set_cluster_id(view.map.formation());
    }
    let is_pristine = || shared.consensus.is_pristine();
    let joined =
        join::join(&shared.local, &options.join, &registration, &shared.clock, limit, is_pristine).await;
    let epoch: Epoch = joined.map_err(|error| match error {
        JoinError::Failed(why) => StartError::Join(why),
        JoinError::ClusterGone => StartError::ClusterGone,
    })?;
    let view = view_with_me(shared, FIRST_VIEW).await.ok_or(StartError::NoMap)?;
    tracing::info!(%epoch, "joined a cluster");
    Ok(view.map.formation())
}

async fn view_with_me(shared: &Shared, limit: Duration) -> Option<Arc<View>> {
    let mut views = shared.consensus.views();
    let knows_me = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.map.nodes.contains_key(&shared.me()))
    };
    timeout(limit, views.wait_for(knows_me)).await.ok()?.ok()?.clone()
}

fn handlers(shared: &Arc<Shared>) -> PeerHandlers {
    let (raft, control, peers, events) =
        (Arc::clone(shared), Arc::clone(shared), Arc::clone(shared), Arc::clone(shared));
    PeerHandlers {
        raft: Arc::new(move |_, request| {
            let shared = Arc::clone(&raft);
            Box::pin(async move { shared.consensus.handle(request).await })
        }),
        control: Arc::new(move |peer, request| {
            let shared = Arc::clone(&control);
            Box::pin(async move { control::handle(&shared, peer.node, request).await })
        }),
        data: Arc::clone(&shared.callbacks.on_connection),
        on_peer: Arc::new(move |peer, purpose, opened| {
            if matches!(purpose, Purpose::Raft | Purpose::Control) {
                lock(&peers.leading).watch.link(peer.node, peer.incarnation, opened);
            }
            if opened {
                // One that asks to join is not believed before it has been reached there.
                if peer.cluster_id.is_some() {
                    peers.rpc.learn(peer.node, &peer.address);
                }
                peers.rpc.revive(peer.node);
            } else {
                peers.look.notify_one();
            }
        }),
        on_event: Arc::new(move |event| events.report(event)),
    }
}

/// Keeps the address book and the evidence in step with the map.
async fn follow_views(shared: Arc<Shared>) {
    let mut views = shared.consensus.views();
    let mut known = std::collections::BTreeMap::<NodeId, (String, Incarnation, bool)>::new();
    loop {
        let view = views.borrow_and_update().clone();
        if let Some(view) = view {
            shared.local.known_as(view.map.formation());
            known.retain(|node, _| {
                let stays = view.map.nodes.contains_key(node);
                if !stays {
                    shared.rpc.forget(*node);
                    lock(&shared.evidence).clear(*node);
                }
                stays
            });
            for (node, record) in view.map.nodes.iter().filter(|(node, _)| **node != shared.me()) {
                let now = (peer_address(&record.addresses), record.incarnation, record.is_up());
                if known.get(node) == Some(&now) {
                    continue;
                }
                // What a node said itself since is newer than a map that has not changed.
                if known.get(node).is_none_or(|before| before.0 != now.0) {
                    shared.rpc.learn(*node, &now.0);
                }
                lock(&shared.evidence).clear(*node);
                known.insert(*node, now);
            }
        }
        if views.changed().await.is_err() {
            return;
        }
    }
}
