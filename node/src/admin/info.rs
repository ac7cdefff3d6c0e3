//! The text of `INFO`: Redis' sections and field names, and one of Korum's own.
//!
//! For: tools and clients that read it. Fields of machinery that Korum does not have are left out,
//! except those that tools read without asking whether they are there.
//! Not here: collecting the figures; the caller fills an [`InfoSnapshot`].

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;

use korum_protocol::id::Epoch;

use super::command_stats::AllTotals;
use super::process::ProcessFigures;
use super::stats::{Counter, Totals};
use super::status::{Counts, NodeState};
use crate::command::connection::REDIS_VERSION;
use crate::dispatch::databases::Size;
use crate::net::session::PortKind;

/// All figures of one moment.
#[derive(Clone, Debug)]
pub struct InfoSnapshot {
    /// The port that was asked.
    pub port: PortKind,
    /// Its number.
    pub tcp_port: u16,
    /// A random name of this run, 40 hexadecimal digits.
    pub run_id: String,
    /// Time since the start.
    pub uptime: Duration,
    /// Unix time, us.
    pub wall_us: u64,
    /// Worker threads.
    pub threads: usize,
    /// Path of the config file; empty if there is none.
    pub config_file: String,
    /// Of the process.
    pub process: ProcessFigures,
    /// Of all threads.
    pub totals: Totals,
    /// By command.
    pub commands: AllTotals,
    /// Which percentiles of their times are told.
    pub percentiles: Vec<f64>,
    /// Connected clients.
    pub clients: usize,
    /// Clients in a blocking command.
    pub blocked_clients: usize,
    /// Commands that wait at this node, of its own clients and of those of others.
    pub parked: usize,
    /// Channels, patterns and shard channels that somebody listens to.
    pub topics: [usize; 3],
    /// Clients that keep what they read, keys that they may have, prefixes that they want to be told of.
    pub tracking: [usize; 3],
    /// Most clients.
    pub maxclients: usize,
    /// Bytes of keys and values, as the store counts them.
    pub data_bytes: u64,
    /// Most of these so far.
    pub data_peak_bytes: u64,
    /// Scripts that are known here, and their bytes.
    pub scripts: (usize, usize),
    /// Functions, and libraries, as they were last known here.
    pub functions: (usize, usize),
    /// Limit; 0 if there is none.
    pub maxmemory: u64,
    /// What gives way.
    pub maxmemory_policy: &'static str,
    /// Memory of backlogs, bytes.
    pub backlog_bytes: u64,
    /// Most of it.
    pub backlog_max: u64,
    /// Databases that have keys: of the whole cluster on the client port, of partitions with their primary here on the
    /// cluster port.
    pub databases: BTreeMap<u8, Size>,
    /// Partitions, counted.
    pub counts: Counts,
    /// Partitions of the cluster.
    pub partitions: u32,
    /// Wanted copies.
    pub replication: u8,
    /// Nodes in the map, and those of them that are up.
    pub nodes: (usize, usize),
    /// Version of the map.
    pub epoch: Epoch,
    /// Partitions lost since the cluster was created.
    pub lost_total: u64,
    /// What the node knows beside the map.
    pub state: NodeState,
}

type Section = fn(&InfoSnapshot, &mut Fields);

/// Sections in the order in which they are printed.
const SECTIONS: [(&str, Section); 14] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("CPU", cpu),
    ("Modules", |_, _| {}),
    ("Commandstats", commands),
    ("Errorstats", errors),
    ("Latencystats", latencies),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
    ("Korum", korum),
];

/// Sections that are left out unless they are named, or all are.
const LONG: [&str; 2] = ["Commandstats", "Latencystats"];

/// The sections that are asked for; those that are not long when `names` is empty or is `default`, all of them when it
/// is `all` or `everything`.
#[must_use]
pub fn text(snapshot: &InfoSnapshot, names: &[&[u8]]) -> String {
    let is = |name: &[u8], word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let any = |words: &[&str]| names.iter().any(|name| words.iter().any(|word| is(name, word)));
    let (all, short) = (any(&["all", "everything"]), names.is_empty() || any(&["default"]));
    let mut text = String::new();
    for (title, section) in SECTIONS {
        if all || short && !LONG.contains(&title) || any(&[title]) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let mut fields = Fields { text: format!("# {title}\r\n") };
            section(snapshot, &mut fields);
            text.push_str(&fields.text);
        }
    }
    text
}

struct Fields {
    text: String,
}

impl Fields {
    fn put(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.text, "{name}:{value}\r\n");
    }

    /// Bytes, and once more for people.
    fn bytes(&mut self, name: &str, bytes: u64) {
        self.put(name, bytes);
        self.put(&format!("{name}_human"), human(bytes));
    }
}

/// Bytes as Redis shows them to people.
fn human(bytes: u64) -> String {
    const UNITS: [(u32, char); 4] = [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
    let unit = UNITS.iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or_else(
        || format!("{bytes}B"),
        |(shift, letter)| format!("{:.2}{letter}", bytes as f64 / (1u64 << shift) as f64),
    )
}

fn server(it: &InfoSnapshot, fields: &mut Fields) {
    let mode = if it.port == PortKind::Cluster { "cluster" } else { "standalone" };
    let seconds = it.uptime.as_secs();
    fields.put("redis_version", REDIS_VERSION);
    fields.put("redis_git_sha1", "00000000");
    fields.put("redis_git_dirty", 0);
    fields.put("redis_build_id", "korum");
    fields.put("redis_mode", mode);
    fields.put("korum_version", env!("CARGO_PKG_VERSION"));
    fields.put("os", format!("Linux {} {}", it.process.kernel, std::env::consts::ARCH));
    fields.put("arch_bits", usize::BITS);
    fields.put("multiplexing_api", "epoll");
    fields.put("process_id", std::process::id());
    fields.put("run_id", &it.run_id);
    fields.put("tcp_port", it.tcp_port);
    fields.put("server_time_usec", it.wall_us);
    fields.put("uptime_in_seconds", seconds);
    fields.put("uptime_in_days", seconds / 86_400);
    fields.put("hz", 10);
    fields.put("configured_hz", 10);
    fields.put("lru_clock", (it.wall_us / 1_000_000) & 0xFF_FFFF);
    fields.put("config_file", &it.config_file);
    fields.put("io_threads_active", u8::from(it.threads > 1));
}

fn clients(it: &InfoSnapshot, fields: &mut Fields) {
    fields.put("connected_clients", it.clients);
    fields.put("cluster_connections", 0);
    fields.put("maxclients", it.maxclients);
    fields.put("blocked_clients", it.blocked_clients);
    fields.put("tracking_clients", it.tracking[0]);
    fields.put("clients_in_timeout_table", 0);
}

fn memory(it: &InfoSnapshot, fields: &mut Fields) {
    let peak = it.data_peak_bytes.max(it.data_bytes);
    let ratio = it.process.resident_bytes as f64 / it.data_bytes.max(1) as f64;
    fields.bytes("used_memory", it.data_bytes);
    fields.bytes("used_memory_rss", it.process.resident_bytes);
    fields.bytes("used_memory_peak", peak);
    fields.put("used_memory_peak_perc", format!("{:.2}%", 100.0 * it.data_bytes as f64 / peak.max(1) as f64));
    fields.put("used_memory_dataset", it.data_bytes);
    fields.put("used_memory_rss_peak", it.process.resident_peak_bytes);
    fields.bytes("total_system_memory", it.process.system_bytes);
    fields.put("used_memory_scripts_eval", it.scripts.1);
    fields.put("number_of_cached_scripts", it.scripts.0);
    fields.put("number_of_functions", it.functions.0);
    fields.put("number_of_libraries", it.functions.1);
    fields.bytes("maxmemory", it.maxmemory);
    fields.put("maxmemory_policy", it.maxmemory_policy);
    fields.put("mem_fragmentation_ratio", format!("{ratio:.2}"));
    fields.put("mem_replication_backlog", it.backlog_bytes);
    fields.put("mem_clients_slaves", 0);
    fields.put("mem_clients_normal", 0);
    fields.put("mem_aof_buffer", 0);
    fields.put("mem_allocator", "mimalloc");
    fields.put("active_defrag_running", 0);
    fields.put("lazyfree_pending_objects", 0);
}

fn persistence(it: &InfoSnapshot, fields: &mut Fields) {
    let started = it.wall_us / 1_000_000 - it.uptime.as_secs().min(it.wall_us / 1_000_000);
    fields.put("loading", 0);
    fields.put("async_loading", 0);
    fields.put("rdb_changes_since_last_save", 0);
    fields.put("rdb_bgsave_in_progress", 0);
    fields.put("rdb_last_save_time", started);
    fields.put("rdb_last_bgsave_status", "ok");
    fields.put("rdb_last_bgsave_time_sec", -1);
    fields.put("rdb_current_bgsave_time_sec", -1);
    fields.put("aof_enabled", 0);
    fields.put("aof_rewrite_in_progress", 0);
    fields.put("aof_rewrite_scheduled", 0);
    fields.put("aof_last_rewrite_time_sec", -1);
    fields.put("aof_last_bgrewrite_status", "ok");
    fields.put("aof_last_write_status", "ok");
}

fn stats(it: &InfoSnapshot, fields: &mut Fields) {
    let totals = &it.totals;
    let count = |counter| totals.get(counter);
    fields.put("total_connections_received", count(Counter::Connections));
    fields.put("total_commands_processed", count(Counter::Commands));
    fields.put("instantaneous_ops_per_sec", totals.commands_per_second.round() as u64);
    fields.put("total_net_input_bytes", count(Counter::BytesIn));
    fields.put("total_net_output_bytes", count(Counter::BytesOut));
    fields.put("total_net_repl_input_bytes", count(Counter::ReplicationBytesIn));
    fields.put("total_net_repl_output_bytes", count(Counter::ReplicationBytesOut));
    fields.put("instantaneous_input_kbps", format!("{:.2}", totals.bytes_in_per_second / 1024.0));
    fields.put("instantaneous_output_kbps", format!("{:.2}", totals.bytes_out_per_second / 1024.0));
    fields.put("rejected_connections", count(Counter::RejectedConnections));
    fields.put("sync_full", count(Counter::Streams));
    fields.put("sync_partial_ok", count(Counter::Repairs));
    fields.put("sync_partial_err", 0);
    fields.put("expired_keys", count(Counter::Expired));
    fields.put("evicted_keys", count(Counter::Evicted));
    fields.put("evicted_clients", 0);
    fields.put("client_output_buffer_limit_disconnections", count(Counter::OutputOverruns));
    fields.put("keyspace_hits", count(Counter::Hits));
    fields.put("keyspace_misses", count(Counter::Misses));
    fields.put("pubsub_channels", it.topics[0]);
    fields.put("pubsub_patterns", it.topics[1]);
    fields.put("pubsubshard_channels", it.topics[2]);
    fields.put("tracking_total_keys", it.tracking[1]);
    fields.put("tracking_total_items", it.tracking[1]);
    fields.put("tracking_total_prefixes", it.tracking[2]);
    fields.put("latest_fork_usec", 0);
    fields.put("total_forks", 0);
    fields.put("unexpected_error_replies", 0);
    fields.put("total_error_replies", totals.errors.values().sum::<u64>());
    fields.put("total_reads_processed", count(Counter::Reads));
    fields.put("total_writes_processed", count(Counter::Writes));
}

fn replication(it: &InfoSnapshot, fields: &mut Fields) {
    // Every node is primary of some partitions; copies are told of in the Korum section.
    fields.put("role", "master");
    fields.put("connected_slaves", 0);
    fields.put("master_failover_state", "no-failover");
    fields.put("master_replid", &it.run_id);
    fields.put("master_replid2", "0".repeat(40));
    fields.put("master_repl_offset", 0);
    fields.put("second_repl_offset", -1);
    fields.put("repl_backlog_active", u8::from(it.backlog_bytes > 0));
    fields.put("repl_backlog_size", it.backlog_max);
    fields.put("repl_backlog_first_byte_offset", 0);
    fields.put("repl_backlog_histlen", it.backlog_bytes);
}

fn cpu(it: &InfoSnapshot, fields: &mut Fields) {
    fields.put("used_cpu_sys", format!("{:.6}", it.process.system_seconds));
    fields.put("used_cpu_user", format!("{:.6}", it.process.user_seconds));
    fields.put("used_cpu_sys_children", "0.000000");
    fields.put("used_cpu_user_children", "0.000000");
}

fn commands(it: &InfoSnapshot, fields: &mut Fields) {
    for (name, row) in &it.commands {
        let usec = row.nanos / 1000;
        let each = row.nanos as f64 / 1000.0 / row.calls.max(1) as f64;
        let line = format!(
            "calls={},usec={usec},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
            row.calls, row.rejected, row.failed
        );
        fields.put(&format!("cmdstat_{name}"), line);
    }
}

fn latencies(it: &InfoSnapshot, fields: &mut Fields) {
    for (name, row) in it.commands.iter().filter(|(_, row)| row.times.total() > 0) {
        let told =
            |percent: &f64| format!("p{percent}={:.3}", row.times.percentile(*percent) as f64 / 1000.0);
        let all: Vec<_> = it.percentiles.iter().map(told).collect();
        fields.put(&format!("latency_percentiles_usec_{name}"), all.join(","));
    }
}

fn errors(it: &InfoSnapshot, fields: &mut Fields) {
    for (prefix, count) in &it.totals.errors {
        fields.put(&format!("errorstat_{prefix}"), format!("count={count}"));
    }
}

fn cluster(it: &InfoSnapshot, fields: &mut Fields) {
    fields.put("cluster_enabled", u8::from(it.port == PortKind::Cluster));
}

fn keyspace(it: &InfoSnapshot, fields: &mut Fields) {
    for (database, size) in &it.databases {
        let mean_ttl_ms = size.left_ms / size.expires.max(1);
        let line = format!("keys={},expires={},avg_ttl={mean_ttl_ms}", size.keys, size.expires);
        fields.put(&format!("db{database}"), line);
    }
}

fn korum(it: &InfoSnapshot, fields: &mut Fields) {
    let state = &it.state;
    let totals = &it.totals;
    let leader = state.leader.map(|leader| leader.to_string()).unwrap_or_default();
    fields.put("node_id", state.me);
    fields.put("epoch", it.epoch);
    fields.put("term", state.term);
    fields.put("leader", leader);
    fields.put("lease", if state.lease_left.is_some() { "valid" } else { "none" });
    fields.put("lease_left_ms", state.lease_left.map_or(0, |left| left.as_millis()));
    fields.put("nodes_known", it.nodes.0);
    fields.put("nodes_up", it.nodes.1);
    fields.put("replication", it.replication);
    fields.put("partitions", it.partitions);
    fields.put("partitions_primary", it.counts.primary);
    fields.put("partitions_holder", it.counts.holder);
    fields.put("partitions_moving", it.counts.moving);
    fields.put("partitions_waiting", it.counts.waiting);
    fields.put("partitions_short", it.counts.short);
    fields.put("partitions_lost", it.counts.lost);
    fields.put("partitions_lost_total", it.lost_total);
    fields.put("replication_lag_effects", state.lag_effects);
    fields.put("streaming_partitions", state.streaming);
    fields.put("streamed_keys", state.streamed_keys);
    fields.put("streamed_bytes", state.streamed_bytes);
    fields.put("streaming_bytes_per_second", state.streaming_bytes_per_second);
    fields.put("commands_forwarded", totals.get(Counter::Forwarded));
    fields.put("commands_redirected", totals.get(Counter::Redirected));
    fields.put("commands_rejected", totals.get(Counter::Rejected));
    fields.put("outcomes_unknown", totals.get(Counter::Unknown));
    fields.put("commands_waiting", it.parked);
}

/// A snapshot for tests.
#[cfg(test)]
pub(crate) fn example(port: PortKind) -> InfoSnapshot {
    use korum_protocol::command::CommandId;
    use korum_protocol::id::NodeId;

    let stats = super::stats::Stats::new(1);
    stats.of(0).add(Counter::Commands, 65);
    stats.of(0).add_error(b"ERR x");
    stats.of(0).commands.called(CommandId::Get, 2);
    stats.of(0).commands.took(CommandId::Get, 2, 1_500);
    stats.of(0).commands.rejected(CommandId::ConfigSet);
    InfoSnapshot {
        port,
        tcp_port: 6379,
        run_id: "a".repeat(40),
        uptime: Duration::from_secs(90_000),
        wall_us: 1_795_992_329_495_122,
        threads: 2,
        config_file: String::new(),
        process: ProcessFigures {
            resident_bytes: 7_843_840,
            system_bytes: 25_276_510_208,
            ..Default::default()
        },
        totals: stats.totals(),
        commands: stats.commands(),
        percentiles: vec![50.0, 99.9],
        clients: 1,
        blocked_clients: 0,
        parked: 0,
        topics: [3, 2, 1],
        tracking: [1, 5, 0],
        maxclients: 10_000,
        data_bytes: 1_559_344,
        data_peak_bytes: 1_559_344,
        scripts: (2, 100),
        functions: (3, 1),
        maxmemory: 0,
        maxmemory_policy: "noeviction",
        backlog_bytes: 0,
        backlog_max: 1 << 24,
        databases: BTreeMap::from([
            (0, Size { keys: 2, expires: 1, left_ms: 500 }),
            (7, Size { keys: 1, expires: 0, left_ms: 0 }),
        ]),
        counts: Counts { primary: 64, holder: 64, ..Counts::default() },
        partitions: 64,
        replication: 2,
        nodes: (3, 2),
        epoch: Epoch(12),
        lost_total: 0,
        state: NodeState { me: NodeId(1), term: 3, ..NodeState::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(names: &[&str]) -> String {
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        text(&example(PortKind::Client), &names)
    }

    #[test]
    fn sections_are_those_of_redis_in_its_order() {
        let titles = |text: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
        };
        let all = titles(&ask(&[]));
        let order = "Server Clients Memory Persistence Stats Replication CPU Modules Errorstats Cluster Keyspace Korum";
        assert_eq!(all.join(" "), order);
        assert_eq!(titles(&ask(&["Default"])), all);
        let order = order.replace("Errorstats", "Commandstats Errorstats Latencystats");
        for word in ["ALL", "everything"] {
            assert_eq!(titles(&ask(&[word])).join(" "), order);
        }
        assert_eq!(titles(&ask(&["keyspace", "SERVER", "nosuch"])), ["Server", "Keyspace"]);
        assert_eq!(ask(&["nosuch"]), "");
    }

    #[test]
    fn sections_have_the_form_of_redis() {
        assert_eq!(
            ask(&["keyspace", "cluster"]),
            "# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=500\r\n\
             db7:keys=1,expires=0,avg_ttl=0\r\n"
        );
        assert_eq!(ask(&["errorstats"]), "# Errorstats\r\nerrorstat_ERR:count=1\r\n");
        assert_eq!(
            ask(&["commandstats"]),
            "# Commandstats\r\n\
             cmdstat_config|set:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0\r\n\
             cmdstat_get:calls=2,usec=3,usec_per_call=1.50,rejected_calls=0,failed_calls=0\r\n"
        );
        assert_eq!(
            ask(&["latencystats"]),
            "# Latencystats\r\nlatency_percentiles_usec_get:p50=1.535,p99.9=1.535\r\n"
        );
        let cluster = text(&example(PortKind::Cluster), &[b"cluster"]);
        assert_eq!(cluster, "# Cluster\r\ncluster_enabled:1\r\n");
    }

    #[test]
    fn fields_that_clients_read_are_there() {
        let text = ask(&[]);
        for field in [
            "redis_version:7.2.0",
            "redis_mode:standalone",
            "korum_version:",
            "loading:0",
            "role:master",
            "maxmemory_policy:noeviction",
            "number_of_cached_scripts:2",
            "number_of_functions:3",
            "number_of_libraries:1",
            "used_memory_human:1.49M",
            "used_memory_rss_human:7.48M",
            "total_system_memory_human:23.54G",
            "maxmemory_human:0B",
            "uptime_in_days:1",
            "connected_clients:1",
            "total_commands_processed:65",
            "master_replid:aaaa",
            "used_cpu_user:0.000000",
            "partitions_primary:64",
            "epoch:12",
        ] {
            assert!(text.contains(&format!("\r\n{field}")), "{field}");
        }
    }

    #[test]
    fn no_field_comes_twice() {
        let text = ask(&["all"]);
        let mut names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
