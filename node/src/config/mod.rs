//! What an operator may set, one struct per concern.
//!
//! For: a checked [`Config`] from flags, environment and file, and the parameters that clients see as `CONFIG`.
//! Not here: anything that acts on a setting.
//! Next: `settings` is the list of all settings, `load` joins the sources, `derive` completes and checks,
//! `live` is what `CONFIG GET` and `CONFIG SET` speak of while the node runs.

mod derive;
pub mod live;
mod load;
mod parameter;
mod settings;
pub mod value;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use korum_protocol::limits;
use korum_protocol::map::LossPolicy;

use crate::cluster::lease;
use crate::replication::primary::CHUNK_BYTES;

pub use load::{Action, ConfigError};
pub use value::{Consistency, HostPort, LogFormat, Secret};

/// Distance from the client port to the cluster port, unless one is given.
pub const CLUSTER_PORT_OFFSET: u16 = 10_000;
/// Distance from the client port to the peer port, unless one is given.
pub const PEER_PORT_OFFSET: u16 = 20_000;

/// Everything that can be set. Complete and checked when it comes from [`Config::load`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Where it listens, and whom it lets in.
    pub network: Network,
    /// Where it keeps what must survive a restart.
    pub storage: Storage,
    /// Its place in a cluster.
    pub cluster: Cluster,
    /// How fast failures are seen.
    pub timing: Timing,
    /// What it never goes over.
    pub limits: Limits,
    /// How fast data moves.
    pub rebalance: Rebalance,
    /// What it writes about itself.
    pub log: Log,
}

/// Where a node listens, and whom it lets in.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// Client port.
    pub port: u16,
    /// Cluster port; 0 turns it off.
    pub cluster_port: u16,
    /// Peer port.
    pub peer_port: u16,
    /// Host that clients and peers are told; empty when it has to be found out at start.
    pub announce_host: String,
    /// Client port that others are told, where addresses are translated on the way; 0 means [`Network::port`].
    pub announce_port: u16,
    /// The same for the cluster port; without effect while that is turned off.
    pub announce_cluster_port: u16,
    /// The same for the peer port.
    pub announce_peer_port: u16,
    /// Most client connections, over both client-facing ports.
    pub maxclients: u32,
    /// An idle client is closed after this; zero means never.
    pub timeout: Duration,
    /// Distance of TCP keep-alive probes; zero turns them off.
    pub tcp_keepalive: Duration,
    /// Longest wait for a connection to another node.
    pub connect_timeout: Duration,
    /// Password of the default user; empty when none is asked for.
    pub requirepass: Secret,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            // Loopback: a cache without a password must be opened to the network on purpose.
            bind: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            port: 6379,
            cluster_port: 6379 + CLUSTER_PORT_OFFSET,
            peer_port: 6379 + PEER_PORT_OFFSET,
            announce_host: String::new(),
            announce_port: 0,
            announce_cluster_port: 0,
            announce_peer_port: 0,
            maxclients: 10_000,
            timeout: Duration::ZERO,
            tcp_keepalive: Duration::from_secs(300),
            connect_timeout: Duration::from_secs(1),
            requirepass: Secret::default(),
        }
    }
}

/// Where a node keeps what must survive a restart: its identity and the Raft log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Storage {
    /// Data directory; created when missing.
    pub dir: PathBuf,
}

/// A node's place in a cluster. What is marked *creation* counts only when a new cluster is made.
#[derive(Clone, PartialEq, Debug)]
pub struct Cluster {
    /// Nodes of the cluster to join; empty starts or continues a cluster of its own.
    pub join: Vec<HostPort>,
    /// Number of partitions, a power of two in 64..=16384 (creation).
    pub partitions: u32,
    /// Wanted copies of each partition (creation).
    pub replication: u8,
    /// Failure domain; equal labels share one.
    pub zone: String,
    /// Share of the data, 1..=16.
    pub weight: u8,
    /// What peers prove to know; empty when the peer port asks for nothing.
    pub secret: Secret,
    /// File that holds the secret.
    pub secret_file: PathBuf,
    /// What happens to a partition whose holders are all gone (creation).
    pub loss_policy: LossPolicy,
    /// A node that is down for this long is no longer counted on.
    pub rereplicate_after: Duration,
    /// A replica that does not acknowledge for this long is dropped from its partitions.
    pub replica_timeout: Duration,
    /// When a write is answered.
    pub consistency: Consistency,
    /// A transaction on the client port whose keys are in several slots is run as a unit for each, not refused.
    pub cross_slot_transactions: bool,
    /// `CLUSTER SLOTS`, `SHARDS` and `NODES` list replicas too.
    pub topology_replicas: bool,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            join: Vec::new(),
            partitions: 4096,
            replication: 2,
            zone: String::new(),
            weight: 1,
            secret: Secret::default(),
            secret_file: PathBuf::new(),
            loss_policy: LossPolicy::Empty,
            rereplicate_after: lease::Timing::default().rereplicate_after,
            replica_timeout: Duration::from_secs(2),
            consistency: Consistency::Strong,
            cross_slot_transactions: false,
            topology_replicas: false,
        }
    }
}

/// How fast failures are seen. Smaller is faster, and takes pauses of the machine for failures sooner.
#[derive(Clone, PartialEq, Debug)]
pub struct Timing {
    /// Distance of the heartbeats to the leader.
    pub heartbeat: Duration,
    /// How long a granted lease lasts, from the moment its heartbeat was sent.
    pub lease: Duration,
    /// Fixed part of the margin for clocks that run at different speeds.
    pub drift_margin: Duration,
    /// Proportional part of that margin, percent of the lease.
    pub drift_percent: u8,
    /// A leader grants leases only while a quorum confirmed it within this time.
    pub confirm_window: Duration,
    /// Distance of Raft's own heartbeats, and the longest time for one of its requests: a busy machine
    /// of two cores keeps to it, and a silent leader is still replaced in well under two seconds.
    pub raft_heartbeat: Duration,
    /// Shortest election timeout; the longest is half as long again.
    pub raft_election: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let usual = lease::Timing::default();
        Self {
            heartbeat: usual.heartbeat,
            lease: usual.lease,
            drift_margin: usual.drift_fixed,
            drift_percent: (usual.drift_permille / 10) as u8,
            confirm_window: usual.confirm_window,
            raft_heartbeat: usual.raft_heartbeat,
            raft_election: usual.raft_election,
        }
    }
}

/// What a node never goes over.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// Memory for data, bytes; 0 sets no limit.
    pub maxmemory: u64,
    /// What gives way when it is reached: one of [`live::POLICIES`].
    pub maxmemory_policy: String,
    /// Longest bulk string of a request, bytes.
    pub proto_max_bulk_len: u64,
    /// Most unparsed bytes of one connection.
    pub client_query_buffer_limit: u64,
    /// Most unsent reply bytes of one connection; a client that does not read is closed.
    pub client_output_buffer_limit: u64,
    /// Memory for the backlogs of all partitions, bytes; 0 keeps none.
    pub backlog: u64,
    /// Databases that clients choose from with `SELECT`.
    pub databases: u16,
    /// Worker threads; the number of cores, unless given.
    pub threads: u16,
    /// Longest wait for acknowledgements, forwards and frozen partitions before a request is answered with an error.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            maxmemory: 0,
            maxmemory_policy: "noeviction".to_owned(),
            proto_max_bulk_len: limits::BULK_BYTES_MAX as u64,
            client_query_buffer_limit: limits::QUERY_BUFFER_BYTES_MAX as u64,
            // Twice the longest value, so that one reply of any value always fits.
            client_output_buffer_limit: 2 * limits::BULK_BYTES_MAX as u64,
            // Half a minute of 70,000 writes per second: until then a copy that was away may come back.
            backlog: 16 << 20,
            databases: crate::store::database::DATABASES,
            threads: 0,
            request_timeout: Duration::from_secs(5),
        }
    }
}

/// How fast data moves between nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Rebalance {
    /// Most bytes that one node sends to another each second; 0 sets no limit.
    pub bytes_per_second: u64,
    /// Most partitions that one node brings to the same target at a time, from the first question to the cutover.
    pub concurrent_partitions: u16,
    /// Bytes of what is read of a partition at once; a collection of some times as many is sent in parts. Not a setting:
    /// simulations take small ones, so that their small collections are large.
    pub chunk_bytes: usize,
}

impl Default for Rebalance {
    fn default() -> Self {
        // Half of a gigabit link, so that the other half stays with the clients.
        Self { bytes_per_second: 64 << 20, concurrent_partitions: 64, chunk_bytes: CHUNK_BYTES }
    }
}

/// What a node writes about itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Log {
    /// A level (`info`) or filters of tracing (`korum_node=debug,openraft=warn`).
    pub level: String,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}
