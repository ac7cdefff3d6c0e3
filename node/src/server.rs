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

use crate::cluster::lease::Timing;
use crate::cluster::{Callbacks, Cluster, ClusterOptions, Standing, StartError};
use crate::config::Config;
use crate::env::Clock;
use crate::env::transport::TcpListener;
use crate::executor::Executor;
use crate::net::peer::{PeerConnection, Purpose};
use crate::net::session::PortKind;
use crate::net::{forward, listener};
use crate::node::Node;
use crate::rebalance::execute;
use crate::replication::session;
use crate::store::expire;

/// Accepted data connections that may wait until the node is ready to serve them.
const ACCEPTED_MAX: usize = 1024;
/// How long to try to join before giving up.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);
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
    /// The system gives no thread, signal or poller.
    #[error("the system refused what a node needs: {0}")]
    System(#[from] io::Error),
}

/// Runs a node until `SIGTERM`, `SIGINT` or `SHUTDOWN`. To be called on the control runtime.
/// `on_ready` is shown the node once it accepts connections.
///
/// # Errors
/// When it cannot start; its text says what to do.
pub async fn run(config: Config, clock: Clock, on_ready: impl FnOnce(&Arc<Node>)) -> Result<(), ServerError> {
    raise_descriptor_limit(u64::from(config.network.maxclients) + OTHER_DESCRIPTORS);
    let executor = Executor::start(usize::from(config.limits.threads))?;
    let listeners = listen(&config).await?;
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
    let cluster = Cluster::start(options(&config), clock.clone(), callbacks).await?;
    let mut views = cluster.views();
    let Ok(first) = views.wait_for(Option::is_some).await.map(|view| view.clone()) else {
        return Err(io::Error::other("the agreement thread ended").into());
    };
    let first = first.expect("waited for it");
    let node = Node::new(config, clock, Arc::clone(&cluster), Arc::clone(&executor), &first)?;

    tokio::spawn(adopt_views(Arc::clone(&node), views));
    tokio::spawn(serve_peers(Arc::clone(&node), waiting));
    executor.spawn(execute::run(Arc::clone(&node)));
    executor.spawn(expire::run(Arc::clone(&node)));
    tokio::spawn(sample_stats(Arc::clone(&node)));
    for (listener, port) in listeners {
        tokio::spawn(listener::accept(Arc::clone(&node), listener, port));
    }
    tracing::info!(
        node = %node.id(),
        port = node.config().network.port,
        cluster_port = node.config().network.cluster_port,
        peer_port = node.config().network.peer_port,
        "ready to accept connections"
    );
    on_ready(&node);
    let outcome = match until_stopped(&node).await? {
        Stop::Asked => {
            tracing::info!("leaving");
            cluster.leave().await;
            Ok(())
        }
        Stop::Forgotten => {
            tracing::info!("this node has left the cluster and holds nothing any more");
            cluster.shutdown().await;
            Ok(())
        }
        Stop::AgreementEnded(reason) => Err(ServerError::AgreementEnded(reason)),
    };
    executor.stop();
    outcome
}

/// Rates are of the last second.
async fn sample_stats(node: Arc<Node>) {
    loop {
        node.stats.sample(node.clock().now());
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
enum Stop {
    /// A signal or `SHUTDOWN`.
    Asked,
    /// It was drained or forgotten: the map does not know it any more.
    Forgotten,
    /// Raft cannot go on, and why.
    AgreementEnded(String),
}

async fn until_stopped(node: &Node) -> io::Result<Stop> {
    let mut asked = node.shutdown.subscribe();
    let mut standing = node.cluster().standing();
    let stop = tokio::select! {
        signalled = signalled() => signalled.map(|()| Stop::Asked)?,
        _ = asked.wait_for(|&is_asked| is_asked) => Stop::Asked,
        reason = node.cluster().ended() => Stop::AgreementEnded(reason),
        _ = standing.wait_for(|&standing| standing == Standing::Forgotten) => Stop::Forgotten,
    };
    Ok(stop)
}

#[cfg(not(korum_sim))]
async fn signalled() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// A simulation uses [`Node::shutdown`].
#[cfg(korum_sim)]
async fn signalled() -> io::Result<()> {
    std::future::pending().await
}

async fn listen(config: &Config) -> Result<Vec<(TcpListener, PortKind)>, ServerError> {
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
            listeners.push((listener, kind));
        }
    }
    Ok(listeners)
}

fn options(config: &Config) -> ClusterOptions {
    let (network, cluster, timing) = (&config.network, &config.cluster, &config.timing);
    let bind = network.bind.first().copied().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    ClusterOptions {
        dir: config.storage.dir.clone(),
        listen: SocketAddr::new(bind, network.peer_port).to_string(),
        addresses: Addresses {
            host: announced_host(config, bind),
            client: network.port,
            cluster: network.cluster_port,
            peer: network.peer_port,
        },
        join: cluster.join.iter().map(ToString::to_string).collect(),
        join_timeout: JOIN_TIMEOUT,
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

/// What others are told: what was set, else the address that is listened on, else the one that leads to
/// the cluster that is joined.
fn announced_host(config: &Config, bind: IpAddr) -> String {
    if !config.network.announce_host.is_empty() {
        return config.network.announce_host.clone();
    }
    if !bind.is_unspecified() {
        return bind.to_string();
    }
    let towards = config.cluster.join.first().and_then(|seed| {
        let socket = UdpSocket::bind((bind, 0)).ok()?;
        // Connecting a datagram socket sends nothing; it only picks the way.
        socket.connect(seed.to_string()).ok()?;
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
