//! How the cluster is, as this node sees it.
//!
//! For: `KORUM STATUS`, for people and as JSON, and the Korum section of `INFO`.
//! Not here: single keys (`explain`), what would happen (`forecast`).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::time::Duration;

use korum_protocol::id::NodeId;
use korum_protocol::map::{Liveness, Membership, NodeRecord, View};

use super::json::{Object, list};
use super::stop;
use crate::config::HostPort;

/// What a node knows of itself beside the map. The caller fills it in.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// This node.
    pub me: NodeId,
    /// How long its lease still lasts; `None` without a valid one.
    pub lease_left: Option<Duration>,
    /// Raft's term.
    pub term: u64,
    /// Raft's leader, if known.
    pub leader: Option<NodeId>,
    /// Raft's voters.
    pub voters: BTreeSet<NodeId>,
    /// Effects sent to replicas that are not acknowledged yet, the worst of all partitions.
    pub lag_effects: u64,
    /// Partitions that this node streams to others now.
    pub streaming: usize,
    /// Keys and bytes streamed since the node started, or its counters were reset.
    pub streamed_keys: u64,
    /// The same in bytes.
    pub streamed_bytes: u64,
    /// Bytes of the last second.
    pub streaming_bytes_per_second: u64,
}

/// Partitions, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Of which this node is primary.
    pub primary: usize,
    /// Of which this node holds a copy.
    pub holder: usize,
    /// Which some node that is up should hold and does not hold yet, or holds and should not.
    pub moving: usize,
    /// Which only nodes that are down are missing from.
    pub waiting: usize,
    /// Which nobody serves.
    pub lost: usize,
    /// With fewer copies than wanted (or than there are nodes that may hold one).
    pub short: usize,
}

/// Counts the partitions of a view, for the node `me`.
#[must_use]
pub fn count(view: &View, me: NodeId) -> Counts {
    let eligible = view.map.nodes.values().filter(|node| node.is_eligible()).count();
    let wanted = usize::from(view.map.replication).min(eligible);
    let mut counts = Counts::default();
    for row in &view.table.rows {
        let missing = || row.replica_set.iter().filter(|node| !row.holders.contains(node));
        let surplus = row.holders.iter().any(|node| !row.replica_set.contains(node));
        let coming = missing().any(|node| view.map.nodes.get(node).is_some_and(NodeRecord::is_up));
        counts.primary += usize::from(row.primary == Some(me));
        counts.holder += usize::from(row.holders.contains(&me));
        counts.moving += usize::from(coming || surplus && missing().next().is_none());
        counts.waiting += usize::from(!coming && missing().next().is_some());
        counts.lost += usize::from(row.primary.is_none());
        counts.short += usize::from(row.holders.len() < wanted);
    }
    counts
}

/// One word for the state of a node.
#[must_use]
pub fn node_word(record: &NodeRecord) -> &'static str {
    match (record.liveness, record.membership) {
        (Liveness::Down { excluded: true }, _) => "gone",
        (Liveness::Down { excluded: false }, _) => "down",
        (Liveness::Up, Membership::Joining) => "joining",
        (Liveness::Up, Membership::Leaving) => "leaving",
        (Liveness::Up, Membership::Member) => "up",
    }
}

fn membership_word(record: &NodeRecord) -> &'static str {
    match record.membership {
        Membership::Joining => "joining",
        Membership::Member => "member",
        Membership::Leaving => "leaving",
    }
}

/// The first digits of an id, enough to tell nodes apart and to name one in a command.
#[must_use]
pub fn short_id(node: NodeId) -> String {
    let mut text = node.to_string();
    text.truncate(12);
    text
}

/// Where a node's clients connect.
#[must_use]
pub fn client_address(record: &NodeRecord) -> String {
    HostPort { host: record.addresses.host.clone(), port: record.addresses.client }.to_string()
}

/// How many partitions each node is primary of, and holds.
fn shares(view: &View) -> HashMap<NodeId, (usize, usize)> {
    let mut shares: HashMap<NodeId, (usize, usize)> = HashMap::new();
    for row in &view.table.rows {
        for &holder in &row.holders {
            shares.entry(holder).or_default().1 += 1;
        }
        if let Some(primary) = row.primary {
            shares.entry(primary).or_default().0 += 1;
        }
    }
    shares
}

/// The answer to "may I stop a node now?".
fn verdict(view: &View, state: &NodeState, counts: &Counts) -> String {
    let up = view.map.nodes.values().filter(|node| node.is_up()).count();
    match (state.lease_left, counts.lost, counts.short, counts.moving) {
        (None, ..) => "NOT SERVING: this node holds no lease (no leader, or cut off from it)".to_owned(),
        (_, 1.., ..) => format!("DEGRADED: {} partitions are lost", counts.lost),
        (_, _, 1.., _) => {
            format!("AT RISK: {} partitions have too few copies; do not stop another node", counts.short)
        }
        (_, _, _, 1..) => format!("ok, and {} partitions are moving", counts.moving),
        _ if view.map.replication < 2 || up < 2 => {
            "ok, with one copy of everything: nothing survives the loss of its node".to_owned()
        }
        _ if !any_may_be_stopped(view, state) => {
            "ok, with every copy in place; ask KORUM SAFE-TO-STOP before you stop a node".to_owned()
        }
        _ => "ok: any one node may be stopped".to_owned(),
    }
}

fn any_may_be_stopped(view: &View, state: &NodeState) -> bool {
    view.map.nodes.keys().all(|&node| stop::risks(view, &state.voters, &[node], true).is_empty())
}

/// The text for people.
#[must_use]
pub fn text(view: &View, state: &NodeState) -> String {
    let map = &view.map;
    let counts = count(view, state.me);
    let mut text = String::new();
    let _ = writeln!(text, "Korum {}, cluster {:016x}", env!("CARGO_PKG_VERSION"), map.cluster_id.0);
    let _ = writeln!(text, "state       {}", verdict(view, state, &counts));
    let leader = state.leader.and_then(|id| Some((id, map.nodes.get(&id)?)));
    let leader = leader.map_or_else(
        || "unknown".to_owned(),
        |(id, record)| format!("{} at {}", short_id(id), client_address(record)),
    );
    let lease =
        state.lease_left.map_or_else(|| "none".to_owned(), |left| format!("{} ms left", left.as_millis()));
    let _ = writeln!(
        text,
        "agreement   epoch {}, term {}, leader {leader}, lease {lease}",
        map.epoch, state.term
    );
    let _ = writeln!(
        text,
        "partitions  {} with {} copies each: {} moving, {} wait for a node that is down, {} lost ({} since creation)",
        map.partitions, map.replication, counts.moving, counts.waiting, counts.lost, map.lost_total
    );
    if state.streaming > 0 || counts.moving > 0 {
        let _ = writeln!(
            text,
            "streaming   {} partitions from here, {} bytes per second; {} keys and {} bytes since start",
            state.streaming, state.streaming_bytes_per_second, state.streamed_keys, state.streamed_bytes
        );
    }
    let rows: Vec<[String; 7]> = node_rows(view, state);
    let head = ["node", "address", "zone", "weight", "state", "primary", "copies"].map(str::to_owned);
    table(&mut text, &head, &rows);
    text.push_str("(* this node; KORUM HELP lists what can be asked)\n");
    text
}

fn node_rows(view: &View, state: &NodeState) -> Vec<[String; 7]> {
    let shares = shares(view);
    let nodes = view.map.nodes.iter().map(|(&id, record)| {
        let (primary, holder) = shares.get(&id).copied().unwrap_or_default();
        let mark = if id == state.me { "*" } else { "" };
        let zone = if record.zone.is_empty() { "-" } else { &record.zone };
        [
            format!("{}{mark}", short_id(id)),
            client_address(record),
            zone.to_owned(),
            record.weight.to_string(),
            node_word(record).to_owned(),
            primary.to_string(),
            holder.to_string(),
        ]
    });
    nodes.collect()
}

/// Writes rows in columns.
pub fn table<const N: usize>(text: &mut String, head: &[String; N], rows: &[[String; N]]) {
    let all = || std::iter::once(head).chain(rows);
    let widths: Vec<usize> =
        (0..N).map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    for row in all() {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
}

/// The text for machines.
#[must_use]
pub fn json(view: &View, state: &NodeState) -> String {
    let map = &view.map;
    let counts = count(view, state.me);
    let shares = shares(view);
    let nodes = map.nodes.iter().map(|(&id, record)| {
        let (primary, holder) = shares.get(&id).copied().unwrap_or_default();
        Object::new()
            .text("id", id)
            .text("host", &record.addresses.host)
            .raw("client_port", record.addresses.client)
            .raw("cluster_port", record.addresses.cluster)
            .raw("peer_port", record.addresses.peer)
            .text("zone", &record.zone)
            .raw("weight", record.weight)
            .raw("incarnation", record.incarnation)
            .text("state", node_word(record))
            .text("liveness", if record.is_up() { "up" } else { "down" })
            .text("membership", membership_word(record))
            .raw("primary", primary)
            .raw("copies", holder)
            .end()
    });
    let leader = state.leader.map(|leader| leader.to_string()).unwrap_or_default();
    let ok = state.lease_left.is_some() && counts.lost == 0;
    Object::new()
        .text("version", env!("CARGO_PKG_VERSION"))
        .text("cluster_id", format!("{:016x}", map.cluster_id.0))
        .text("me", state.me)
        .raw("ok", ok)
        .raw("ready", ok && counts.short == 0 && counts.moving == 0)
        .raw("epoch", map.epoch)
        .raw("membership_epoch", map.membership_epoch)
        .raw("term", state.term)
        .text("leader", leader)
        .raw("voters", state.voters.len())
        .raw("lease_left_ms", state.lease_left.map_or(-1, |left| left.as_millis() as i64))
        .raw("partitions", map.partitions)
        .raw("replication", map.replication)
        .raw("moving", counts.moving)
        .raw("waiting", counts.waiting)
        .raw("short", counts.short)
        .raw("lost", counts.lost)
        .raw("lost_total", map.lost_total)
        .raw("lag_effects", state.lag_effects)
        .raw("streaming", state.streaming)
        .raw("streamed_keys", state.streamed_keys)
        .raw("streamed_bytes", state.streamed_bytes)
        .raw("streaming_bytes_per_second", state.streaming_bytes_per_second)
        .raw("nodes", list(nodes))
        .end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_maps::{after, caught_up, grown, join, single, split};

    fn state() -> NodeState {
        NodeState {
            me: NodeId(1),
            lease_left: Some(Duration::from_millis(612)),
            term: 3,
            ..NodeState::default()
        }
    }

    #[test]
    fn a_lone_node_says_that_nothing_survives_it() {
        let view = single(64);
        assert_eq!(count(&view, NodeId(1)), Counts { primary: 64, holder: 64, ..Counts::default() });
        let text = text(&view, &state());
        assert!(text.contains("state       ok, with one copy of everything"), "{text}");
    }

    #[test]
    fn a_joining_node_makes_partitions_move_and_then_is_settled() {
        let moving = after(&single(64), &join(2));
        assert_eq!(count(&moving, NodeId(1)).moving, 64);
        assert!(text(&moving, &state()).contains("AT RISK: 64 partitions"), "{}", text(&moving, &state()));
        let settled = caught_up(&moving);
        assert_eq!(count(&settled, NodeId(1)).moving, 0);
        let voters =
            |ids: &[u64]| NodeState { voters: ids.iter().map(|&id| NodeId(id)).collect(), ..state() };
        assert!(text(&settled, &voters(&[1])).contains("ask KORUM SAFE-TO-STOP"));
        let three = caught_up(&after(&settled, &join(3)));
        assert!(text(&three, &voters(&[1, 2, 3])).contains("ok: any one node may be stopped"));
    }

    #[test]
    fn a_node_that_is_down_is_waited_for() {
        let counts = count(&grown(64), NodeId(1));
        assert!(counts.waiting > 0 && counts.lost == 0 && counts.short == counts.waiting, "{counts:?}");
    }

    #[test]
    fn without_a_lease_it_says_so() {
        let state = NodeState { lease_left: None, ..state() };
        assert!(text(&split(64), &state).contains("NOT SERVING"));
        assert!(json(&split(64), &state).contains("\"ok\":false"));
    }

    #[test]
    fn table_lists_all_nodes_in_columns() {
        let text = text(&split(64), &state());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[4], "node           address         zone  weight  state  primary  copies", "{text}");
        assert!(lines[5].starts_with("000000000000*  127.0.0.1:7001  -     1       up     "), "{text}");
        assert!(lines[5].ends_with("  64"), "{text}");
    }

    #[test]
    fn json_has_what_scripts_wait_for() {
        let json = json(&split(64), &state());
        assert!(json.starts_with('{') && json.ends_with("]}"), "{json}");
        assert!(json.contains("\"ok\":true,\"ready\":true,\"epoch\":"), "{json}");
        assert!(json.contains("\"state\":\"up\",\"liveness\":\"up\",\"membership\":\"member\""), "{json}");
    }
}
