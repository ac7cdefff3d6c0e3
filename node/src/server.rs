//! A node from start to end: opens everything in order, runs until it is told to stop, leaves.
//!
//! For: which task runs on which thread, and in what order things start and stop.
//! Not here: what the tasks do.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::Incarnation;
use korum_protocol::map::{Addresses, View};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::admin::stats::Counter;
use crate::cluster::lease::Timing;
use crate::cluster::{Callbacks, Cluster, ClusterOptions, Standing, StartError};
use crate::config::Config;
use crate::dispatch::{functions, track};
use crate::env::Clock;
use crate::env::transport::TcpListener;
use crate::executor::{Executor, worker_number};
use crate::net::peer::{PeerConnection, Purpose};
use crate::net::session::PortKind;
use crate::net::{forward, listener};
use crate::node::Node;
use crate::rebalance::execute;
use crate::replication::primary::Waits;
use crate::replication::session;
use crate::store::expire;

/// Accepted data connections that may wait until the node is ready to serve them.
const ACCEPTED_MAX: usize = 1024;
/// How long to try to join before giving up. A node that was running when it was told to join (`CLUSTER MEET`) goes on
/// trying: nobody starts it again.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time, when a node leaves, for what it executed to be acknowledged by the other holders.
const SETTLE_WAIT: Duration = Duration::from_millis(500);
/// Longest time for the map that names others as primaries.
const REPLACED_WAIT: Duration = Duration::from_secs(1);
/// Longest time for connections to end.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
/// Descriptors beside those of clients: peers, files, Raft.
const OTHER_DESCRIPTORS: u64 = 1024;

/// Why the node does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The cluster could not be opened or joined.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A port is taken, or not allowed.
    #[error("cannot listen on {address}: {source}; choose another port with {flag}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Which setting says so.
        flag: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// Raft cannot write its log any more, or found it to contradict itself.
    #[error(
        "the agreement on the cluster map ended: {0}; see to the data directory's disk and start the node again"
    )]
    AgreementEnded(String),
    /// An operator re-formed the cluster's quorum without this node.
    #[error(
        "the cluster was re-formed without this node, which holds nothing of it any more: empty the data directory and start the node with --join"
    )]
    LeftBehind,
    /// The system gives no thread, signal or poller.
    #[error("the system refused what a node needs: {0}")]
    System(#[from] io::Error),
}

/// Runs a node until `SIGTERM`, `SIGINT` or `SHUTDOWN`. To be called on the control runtime.
/// `on_ready` is shown the node once it accepts connections.
///
/// # Errors
/// When it cannot start; its text says what to do.
pub async fn run(config: Config, clock: Clock, on_ready: impl Fn(&Arc<Node>)) -> Result<(), ServerError> {
    raise_descriptor_limit(u64::from(config.network.maxclients) + OTHER_DESCRIPTORS);
    let mut listeners = listen(&config).await?;
    let mut signals = Signals::new()?;
    // A node that gave up its cluster to join another is a new node: everything but its ports begins anew.
    while live(&config, &clock, &mut listeners, &mut signals, &on_ready).await? == End::Anew {}
    Ok(())
}

/// How the life of a node ended.
#[derive(PartialEq, Eq)]
enum End {
    /// The process ends too.
    Final,
    /// The data directory makes it a new node.
    Anew,
}

async fn live(
    config: &Config,
    clock: &Clock,
    listeners: &mut Vec<(Arc<TcpListener>, PortKind)>,
    signals: &mut Signals,
    on_ready: impl Fn(&Arc<Node>),
) -> Result<End, ServerError> {
    let executor = Executor::start(usize::from(config.limits.threads))?;
    let (accepted, waiting) = mpsc::channel(ACCEPTED_MAX);
    let callbacks = Callbacks {
        on_connection: Arc::new(move |connection, purpose| {
            // When too many wait, the peer finds the connection closed and dials again.
            let _ = accepted.try_send((connection, purpose));
        }),
        on_reincarnation: Arc::new(|incarnation: Incarnation| {
            tracing::warn!(%incarnation, "this node was marked down; it comes back as a new run and catches up");
        }),
    };
    let met = Cluster::seeds_in(&config.storage.dir)?;
    let has_met = !met.is_empty();
    let options = options(config, met);
    let cluster = tokio::select! {
        cluster = Cluster::start(options, clock.clone(), callbacks) => match cluster {
            // Where it was told to join, somebody joined another cluster first.
            Err(StartError::ClusterGone) if has_met => return Ok(End::Anew),
            cluster => cluster?,
        },
        () = signals.asked() => return Ok(End::Final),
    };
    let mut views = cluster.views();
    let Ok(first) = views.wait_for(Option::is_some).await.map(|view| view.clone()) else {
        return Err(io::Error::other("the agreement thread ended").into());
    };
    let first = first.expect("waited for it");
    let node = Node::new(config.clone(), clock.clone(), Arc::clone(&cluster), Arc::clone(&executor), &first)?;

    // They end with this life.
    let mut tasks = JoinSet::new();
    tasks.spawn(adopt_views(Arc::clone(&node), views));
    tasks.spawn(serve_peers(Arc::clone(&node), waiting));
    executor.spawn(execute::run(Arc::clone(&node)));
    executor.spawn(expire::run(Arc::clone(&node)));
    tasks.spawn(track::guard(Arc::clone(&node)));
    tasks.spawn(functions::keep(Arc::clone(&node)));
    tasks.spawn(sample_stats(Arc::clone(&node)));
    let mut acceptors = JoinSet::new();
    for (listener, port) in &*listeners {
        acceptors.spawn(listener::accept(Arc::clone(&node), Arc::clone(listener), *port));
    }
    tracing::info!(
        node = %node.id(),
        port = node.config().network.port,
        cluster_port = node.config().network.cluster_port,
        peer_port = node.config().network.peer_port,
        "ready to accept connections"
    );
    on_ready(&node);
    let stop = until_stopped(&node, signals).await;
    drop(acceptors);
    if stop != Stop::GivenUp {
        // Who dials now is refused, and goes elsewhere.
        listeners.clear();
    }
    let outcome = match stop {
        Stop::Asked => {
            tracing::info!("leaving");
            hand_over(&node).await;
            Ok(End::Final)
        }
        Stop::Forgotten => {
            tracing::info!("this node has left the cluster and holds nothing any more");
            Ok(End::Final)
        }
        Stop::GivenUp => Ok(End::Anew),
        Stop::LeftBehind => Err(ServerError::LeftBehind),
        Stop::AgreementEnded(reason) => Err(ServerError::AgreementEnded(reason)),
    };
    if outcome.is_ok() {
        node.departure.send_replace(true);
        let _ = timeout(CLOSE_WAIT, node.departure.closed()).await;
        close_clients(&node).await;
        cluster.shutdown().await;
    }
    executor.stop();
    outcome
}

/// Lets others take over without an error on any client port: what was executed here is settled and answered, what
/// was not waits, and is forwarded as soon as the map names another primary.
async fn hand_over(node: &Arc<Node>) {
    node.stop_executing();
    let mut waits = Waits::default();
    node.store().for_each(|_, partition| {
        if let Some(primary) = partition.as_primary() {
            primary.settlement(&mut waits);
        }
    });
    let _ = timeout(SETTLE_WAIT, waits.all()).await;
    if !node.cluster().leave().await {
        return;
    }
    let (id, mut views) = (node.id(), node.cluster().views());
    let is_replaced = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.map.nodes.get(&id).is_none_or(|record| !record.is_up()))
    };
    let _ = timeout(REPLACED_WAIT, views.wait_for(is_replaced)).await;
}

/// Every connection is answered what it has asked, and closed.
async fn close_clients(node: &Node) {
    node.clients.kill_all();
    let _ = timeout(CLOSE_WAIT, async {
        while !node.clients.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Rates are of the last second; and clients that do not read what they listen to are looked for.
async fn sample_stats(node: Arc<Node>) {
    loop {
        let now = node.clock().now();
        node.stats.sample(now);
        let overruns = node.clients.close_overruns(&node.live.pubsub_limits(), now);
        node.stats.of(worker_number()).add(Counter::OutputOverruns, overruns as u64);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn adopt_views(node: Arc<Node>, mut views: watch::Receiver<Option<Arc<View>>>) {
    loop {
        let view = views.borrow_and_update().clone();
        if let Some(view) = view {
            node.adopt(&view);
        }
        if views.changed().await.is_err() {
            return;
        }
    }
}

async fn serve_peers(node: Arc<Node>, mut accepted: mpsc::Receiver<(PeerConnection, Purpose)>) {
    while let Some((connection, purpose)) = accepted.recv().await {
        let served = Arc::clone(&node);
        // Here, where they come in order.
        let turn = (purpose == Purpose::Replication).then(|| node.sources().begin(connection.peer.node));
        node.executor().spawn(async move {
            match (connection.rebind(), purpose) {
                (Ok(connection), Purpose::Replication) => {
                    if let Some(turn) = turn {
                        session::follow(served, connection, turn).await;
                    }
                }
                (Ok(connection), Purpose::Forward) => forward::serve(served, connection).await,
                (Ok(_), Purpose::Raft | Purpose::Control) | (Err(_), _) => {}
            }
        });
    }
}

/// Why the node ends.
#[derive(PartialEq, Eq)]
enum Stop {
    /// A signal or `SHUTDOWN`.
    Asked,
    /// It was drained or forgotten: the map does not know it any more.
    Forgotten,
    /// It gave up its own cluster to join another.
    GivenUp,
    /// The quorum was re-formed without it.
    LeftBehind,
    /// Raft cannot go on, and why.
    AgreementEnded(String),
}

/// The signals that ask a process to end. Taken once: afterwards they end nothing by themselves.
#[cfg(not(feature = "sim"))]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(not(feature = "sim"))]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A simulation uses [`Node::shutdown`].
#[cfg(feature = "sim")]
struct Signals;

#[cfg(feature = "sim")]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn asked(&mut self) {
        std::future::pending().await
    }
}

async fn until_stopped(node: &Node, signals: &mut Signals) -> Stop {
    let mut asked = node.shutdown.subscribe();
    let mut standing = node.cluster().standing();
    let has_ended = |standing: &Standing| {
        matches!(standing, Standing::Forgotten | Standing::GivenUp | Standing::LeftBehind)
    };
    tokio::select! {
        () = signals.asked() => Stop::Asked,
        _ = asked.wait_for(|&is_asked| is_asked) => Stop::Asked,
        reason = node.cluster().ended() => Stop::AgreementEnded(reason),
        standing = standing.wait_for(has_ended) => match standing.as_deref() {
            Ok(Standing::GivenUp) => Stop::GivenUp,
            Ok(Standing::LeftBehind) => Stop::LeftBehind,
            _ => Stop::Forgotten,
        },
    }
}

async fn listen(config: &Config) -> Result<Vec<(Arc<TcpListener>, PortKind)>, ServerError> {
    let network = &config.network;
    let ports = [
        (network.port, PortKind::Client, "--port"),
        (network.cluster_port, PortKind::Cluster, "--cluster-port (0 turns it off)"),
    ];
    let mut listeners = Vec::new();
    for (port, kind, flag) in ports {
        // A cluster port of 0 is off; a client port always is on.
        if port == 0 && kind == PortKind::Cluster {
            continue;
        }
        for &ip in &network.bind {
            let address = SocketAddr::new(ip, port);
            let listener = TcpListener::bind(address).await.map_err(|source| ServerError::Listen {
                address,
                flag,
                source,
            })?;
            listeners.push((Arc::new(listener), kind));
        }
    }
    Ok(listeners)
}

/// `met`: where the node of the data directory was told to join while it ran.
fn options(config: &Config, met: Vec<String>) -> ClusterOptions {
    let (network, cluster, timing) = (&config.network, &config.cluster, &config.timing);
    let join_timeout = if met.is_empty() { JOIN_TIMEOUT } else { Duration::MAX };
    let join: Vec<String> = met.into_iter().chain(cluster.join.iter().map(ToString::to_string)).collect();
    let bind = network.bind.first().copied().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    ClusterOptions {
        dir: config.storage.dir.clone(),
        listen: SocketAddr::new(bind, network.peer_port).to_string(),
        addresses: Addresses {
            host: announced_host(config, bind, join.first()),
            client: announced_port(network.announce_port, network.port),
            cluster: announced_port(network.announce_cluster_port, network.cluster_port),
            peer: announced_port(network.announce_peer_port, network.peer_port),
        },
        join,
        join_timeout,
        zone: cluster.zone.clone(),
        weight: cluster.weight,
        partitions: cluster.partitions,
        replication: cluster.replication,
        loss_policy: cluster.loss_policy,
        timing: Timing {
            heartbeat: timing.heartbeat,
            lease: timing.lease,
            confirm_window: timing.confirm_window,
            drift_permille: u32::from(timing.drift_percent) * 10,
            drift_fixed: timing.drift_margin,
            rereplicate_after: cluster.rereplicate_after,
            raft_heartbeat: timing.raft_heartbeat,
            raft_election: timing.raft_election,
            ..Timing::default()
        },
        secret: (!cluster.secret.is_empty()).then(|| cluster.secret.0.clone().into()),
    }
}

/// What others are told: what was set, else what is listened on. A port that is off stays so.
fn announced_port(set: u16, listened: u16) -> u16 {
    if set == 0 || listened == 0 { listened } else { set }
}

/// What others are told: what was set, else the address that is listened on, else the one that leads to
/// the cluster that is joined.
fn announced_host(config: &Config, bind: IpAddr, seed: Option<&String>) -> String {
    if !config.network.announce_host.is_empty() {
        return config.network.announce_host.clone();
    }
    if !bind.is_unspecified() {
        return bind.to_string();
    }
    let towards = seed.and_then(|seed| {
        let socket = UdpSocket::bind((bind, 0)).ok()?;
        // Connecting a datagram socket sends nothing; it only picks the way.
        socket.connect(seed).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    });
    towards.unwrap_or_else(|| {
        tracing::warn!(
            "listening on all addresses, announcing 127.0.0.1: set --announce-host for other machines"
        );
        "127.0.0.1".to_owned()
    })
}

fn raise_descriptor_limit(wanted: u64) {
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit < wanted => {
            tracing::warn!(limit, wanted, "fewer file descriptors than maxclients needs; raise ulimit -n");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of file descriptors"),
    }
}
