//! Collects the figures of one moment.
//!
//! For: filling what `info`, `status` and `CLUSTER LINKS` show from the running node.
//! Not here: how they are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use korum_protocol::map::View;

use super::info::InfoSnapshot;
use super::process;
use super::stats::Counter;
use super::status::{self, NodeState};
use crate::command::cluster::Link;
use crate::command::memory::MemoryFigures;
use crate::config::live::POLICIES;
use crate::dispatch::Port;
use crate::dispatch::databases::Size;
use crate::net::pubsub::Topic;
use crate::net::session::PortKind;
use crate::node::Node;

/// What the node knows beside the map.
#[must_use]
pub fn state(node: &Arc<Node>, view: &View) -> NodeState {
    let now = node.clock().now();
    let lease = node.cluster().lease();
    let mut state = NodeState {
        me: node.id(),
        lease_left: lease.is_valid(now).then(|| lease.until().since(now)),
        term: node.cluster().term(),
        leader: node.cluster().leader(),
        voters: node.cluster().consensus().voters().voters,
        ..NodeState::default()
    };
    for link in node.links().all() {
        state.lag_effects = state.lag_effects.max(link.unacknowledged());
    }
    if view.table.rows.iter().any(|row| row.holders != row.replica_set) {
        node.store().for_each(|_, partition| {
            let Some(primary) = partition.as_primary() else { return };
            state.streaming += primary.copies.iter().filter(|copy| copy.is_catching_up()).count();
        });
    }
    let totals = node.stats.totals();
    state.streamed_bytes = totals.get(Counter::StreamedBytes);
    state.streamed_keys = totals.get(Counter::StreamedKeys);
    state.streaming_bytes_per_second = totals.streamed_bytes_per_second as u64;
    state
}

/// Open replication links.
#[must_use]
pub fn links(node: &Node) -> Vec<Link> {
    let link = |link: &Arc<crate::replication::link::Link>| Link {
        outgoing: true,
        node: link.peer,
        created_ms: 0,
        send_buffer_allocated: link.pending_bytes(),
        send_buffer_used: link.pending_bytes(),
    };
    node.links().all().iter().map(link).collect()
}

/// What `MEMORY STATS` shows.
#[must_use]
pub fn memory(node: &Node) -> MemoryFigures {
    let process = process::figures();
    let (resident, resident_peak) = (process.resident_bytes, process.resident_peak_bytes);
    let mut figures = MemoryFigures { resident, resident_peak, ..MemoryFigures::default() };
    node.store().for_each(|_, partition| {
        figures.data += partition.keyspace.memory_bytes() as u64;
        figures.keys += partition.keyspace.visible_len() as u64;
    });
    figures
}

/// Which percentiles of the times of commands are told.
fn percentiles(node: &Node) -> Vec<f64> {
    let text = node.live.text("latency-tracking-info-percentiles");
    text.split(' ').filter_map(|word| word.parse().ok()).collect()
}

/// Everything that `INFO` shows; `databases` as large as this port sees them.
#[must_use]
pub fn info(node: &Arc<Node>, port: Port, databases: BTreeMap<u8, Size>) -> InfoSnapshot {
    let functions = node.scripts.functions.latest();
    let view = node.view();
    let (mut data_bytes, mut backlog_bytes) = (0, 0);
    node.store().for_each(|_, partition| {
        data_bytes += partition.keyspace.memory_bytes() as u64;
        backlog_bytes += partition.history.memory_bytes() as u64;
    });
    let (map, network) = (&view.map, &node.config().network);
    let port = if port == Port::Cluster { PortKind::Cluster } else { PortKind::Client };
    InfoSnapshot {
        port,
        tcp_port: if port == PortKind::Cluster { network.cluster_port } else { network.port },
        run_id: node.run_id(),
        uptime: node.uptime(),
        wall_us: node.clock().wall_us(),
        threads: usize::from(node.config().limits.threads),
        config_file: String::new(),
        process: process::figures(),
        totals: node.stats.totals(),
        commands: node.stats.commands(),
        percentiles: percentiles(node),
        clients: node.clients.len(),
        blocked_clients: node.clients.blocked(),
        parked: node.parked.commands(),
        tracking: node.clients.tracker.figures(),
        topics: Topic::ALL.map(|topic| node.clients.hub.len(topic)),
        maxclients: node.live.maxclients(),
        data_bytes,
        data_peak_bytes: data_bytes,
        scripts: node.scripts.sizes(),
        functions: (functions.functions(), functions.libraries.len()),
        maxmemory: node.live.maxmemory(),
        maxmemory_policy: POLICIES[node.live.policy()],
        backlog_bytes,
        backlog_max: node.config().limits.backlog,
        databases,
        counts: status::count(&view, node.id()),
        partitions: map.partitions,
        replication: map.replication,
        nodes: (map.nodes.len(), map.nodes.values().filter(|record| record.is_up()).count()),
        epoch: map.epoch,
        lost_total: map.lost_total,
        state: state(node, &view),
    }
}
