//! The list of all settings: data, not code.
//!
//! For: giving every setting one name in the file (`[network] cluster_port`), as a flag (`--cluster-port`)
//! and in the environment (`KORUM_CLUSTER_PORT`).
//! Not here: reading of values (`value`), the order of the sources (`load`).

use korum_protocol::limits::REPLICATION_MAX;
use korum_protocol::map::{DATABASES_MAX, LossPolicy};

use super::live::POLICIES;
use super::value::*;
use super::{Config, Consistency, LogFormat};

/// One setting.
pub struct Setting {
    /// Table of the file it stands in.
    pub section: &'static str,
    /// Its name in that table.
    pub key: &'static str,
    /// Its long flag, without dashes.
    pub flag: &'static str,
    /// What it does, for `--help`.
    pub help: &'static str,
    /// Reads a text into the config; the error says what is allowed.
    pub read: fn(&mut Config, &str) -> Result<(), String>,
    /// Its value as TOML; `None` for what is not shown.
    pub show: fn(&Config) -> Option<toml::Value>,
    /// Never quoted in errors or shown.
    pub secret: bool,
    /// May be given without a value, which means yes.
    pub switch: bool,
    /// May be repeated on the command line.
    pub many: bool,
}

impl Setting {
    /// Its name in the environment.
    pub fn variable(&self) -> String {
        format!("KORUM_{}", self.flag.replace('-', "_").to_ascii_uppercase())
    }
}

macro_rules! settings {
    ($($section:ident . $key:ident $flag:literal $kind:ident ($read:expr) $help:literal;)*) => {
        /// All settings, in the order in which they are printed.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            section: stringify!($section),
            key: stringify!($key),
            flag: $flag,
            help: $help,
            read: |config, text| {
                config.$section.$key = $read(text)?;
                Ok(())
            },
            show: |config| config.$section.$key.show(),
            secret: matches!(Kind::$kind, Kind::Secret),
            switch: matches!(Kind::$kind, Kind::Switch),
            many: matches!(Kind::$kind, Kind::Many),
        },)*];
    };
}

enum Kind {
    One,
    Many,
    Switch,
    Secret,
}

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
const GIB: u64 = 1 << 30;
const LOSS: &[(&str, LossPolicy)] = &[("empty", LossPolicy::Empty), ("refuse", LossPolicy::Refuse)];
const CONSISTENCY: &[(&str, Consistency)] = &[("strong", Consistency::Strong), ("async", Consistency::Async)];
const FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

fn policy(text: &str) -> Result<String, String> {
    let found = POLICIES.iter().find(|name| name.eq_ignore_ascii_case(text));
    found.map(|name| (*name).to_owned()).ok_or_else(|| format!("one of {}", POLICIES.join(", ")))
}

settings! {
    network.bind "bind" Many (addresses) "Address to listen on; repeat for several";
    network.port "port" One (number(1, 65535)) "Client port";
    network.cluster_port "cluster-port" One (number(0, 65535)) "Port for cluster-aware clients: port + 10000 unless given, 0 turns it off";
    network.peer_port "peer-port" One (number(1, 65535)) "Port for other nodes: port + 20000 unless given";
    network.announce_host "announce-host" One (host) "Host that clients and other nodes are told";
    network.announce_port "announce-port" One (number(0, 65535)) "Client port that others are told: 0 means the one listened on";
    network.announce_cluster_port "announce-cluster-port" One (number(0, 65535)) "Cluster port that clients are told: 0 means the one listened on";
    network.announce_peer_port "announce-peer-port" One (number(0, 65535)) "Peer port that other nodes are told: 0 means the one listened on";
    network.maxclients "maxclients" One (number(1, 1_000_000)) "Most client connections";
    network.timeout "timeout" One (duration(0, 365 * DAY)) "Close a client that is idle for this long; 0 means never";
    network.tcp_keepalive "tcp-keepalive" One (duration(0, DAY)) "Distance of TCP keep-alive probes; 0 turns them off";
    network.connect_timeout "connect-timeout" One (duration(10, HOUR)) "Longest wait for a connection to another node";
    network.requirepass "requirepass" Secret (secret) "Password that clients give with AUTH";

    storage.dir "dir" One (path) "Data directory: a per-user one for this port unless given";

    cluster.join "join" Many (host_ports) "Client address of a node whose cluster to join; repeat for several";
    cluster.partitions "partitions" One (power_of_two(64, 16384)) "Number of partitions of a new cluster";
    cluster.replication "replication" One (number(1, u64::from(REPLICATION_MAX))) "Copies of each partition in a new cluster";
    cluster.zone "zone" One (label) "Failure domain of this node";
    cluster.weight "weight" One (number(1, 16)) "Share of the data that this node takes";
    cluster.secret "secret" Secret (secret) "What nodes prove to each other (better: --secret-file)";
    cluster.secret_file "secret-file" One (path) "File that holds the secret";
    cluster.loss_policy "loss-policy" One (one_of(LOSS)) "What a partition does when all its copies are gone: empty or refuse";
    cluster.rereplicate_after "rereplicate-after" One (duration(0, 30 * DAY)) "Copy what a dead node held after this time";
    cluster.replica_timeout "replica-timeout" One (duration(50, HOUR)) "Drop a replica that does not acknowledge for this long";
    cluster.consistency "consistency" One (one_of(CONSISTENCY)) "Answer writes when all copies have them (strong) or the primary alone (async)";
    cluster.cross_slot_transactions "cross-slot-transactions" Switch (yes_no) "Run a MULTI whose keys are in several slots as one atomic unit for each slot";
    cluster.topology_replicas "topology-replicas" Switch (yes_no) "List replicas in CLUSTER SLOTS, SHARDS and NODES";

    timing.heartbeat "heartbeat" One (duration(5, HOUR)) "Distance of heartbeats to the leader";
    timing.lease "lease" One (duration(20, HOUR)) "How long a node may serve after a heartbeat";
    timing.drift_margin "drift-margin" One (duration(0, HOUR)) "Fixed margin for clocks of different speed";
    timing.drift_percent "drift-percent" One (number(0, 100)) "Proportional margin, percent of the lease";
    timing.confirm_window "confirm-window" One (duration(5, HOUR)) "A leader grants leases while a quorum confirmed it within this time";
    timing.raft_heartbeat "raft-heartbeat" One (duration(5, HOUR)) "Distance of Raft heartbeats";
    timing.raft_election "raft-election" One (duration(20, HOUR)) "Shortest Raft election timeout";

    limits.maxmemory "maxmemory" One (bytes(0, i64::MAX as u64)) "Memory for data; 0 sets no limit";
    limits.maxmemory_policy "maxmemory-policy" One (policy) "What gives way when maxmemory is reached";
    limits.proto_max_bulk_len "proto-max-bulk-len" One (bytes(1 << 20, GIB / 2)) "Longest string of a request";
    limits.client_query_buffer_limit "client-query-buffer-limit" One (bytes(1 << 20, 4 * GIB)) "Most bytes of a connection that are not yet parsed";
    limits.client_output_buffer_limit "client-output-buffer-limit" One (bytes(1 << 20, i64::MAX as u64)) "Close a client that leaves more reply bytes unread";
    limits.backlog "repl-backlog-size" One (bytes(0, i64::MAX as u64)) "Memory for what brings a copy that was away up to date; 0: it is streamed";
    limits.databases "databases" One (number(1, u64::from(DATABASES_MAX))) "Databases that clients choose from with SELECT";
    limits.threads "threads" One (number(1, 1024)) "Worker threads: one per core unless given";
    limits.request_timeout "request-timeout" One (duration(10, HOUR)) "Longest wait of a request for other nodes";

    rebalance.bytes_per_second "rebalance-bytes-per-second" One (bytes(0, i64::MAX as u64)) "Most bytes that a node streams to another each second; 0 sets no limit";
    rebalance.concurrent_partitions "rebalance-concurrent-partitions" One (number(1, 4096)) "Most partitions that a node brings to one target at a time";

    log.level "log-level" One (text) "error, warn, info, debug, trace, or filters of tracing";
    log.format "log-format" One (one_of(FORMATS)) "How a log line looks: text or json";
}
