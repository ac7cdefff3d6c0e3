//! Who serves which slots, as cluster-aware clients read it.
//!
//! For: `CLUSTER SLOTS`, `SHARDS` and `NODES`, serialized once per epoch and shared by all threads.
//! Not here: the other subcommands (`cluster`).

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::view::NodeList;
use korum_protocol::map::{Addresses, Liveness, NodeRecord, Row, View};
use korum_protocol::resp::{ProtocolVersion, ReplyWriter};

/// The slots `start..=end` are served by `nodes[0]`; the others hold copies (if copies are listed).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotRange {
    /// First slot.
    pub start: u16,
    /// Last slot.
    pub end: u16,
    /// Primary first.
    pub nodes: NodeList,
}

/// The ranges of slots that are served, in order and as long as possible.
#[must_use]
pub fn slot_ranges(view: &View, with_replicas: bool) -> Vec<SlotRange> {
    let slots_each = (16384 / view.map.partitions) as u16;
    let mut ranges: Vec<SlotRange> = Vec::new();
    for (partition, row) in view.table.rows.iter().enumerate() {
        let start = partition as u16 * slots_each;
        let end = start + (slots_each - 1);
        let nodes = served_by(row, with_replicas);
        match ranges.last_mut() {
            _ if nodes.is_empty() => {}
            Some(last) if last.nodes == nodes && last.end + 1 == start => last.end = end,
            _ => ranges.push(SlotRange { start, end, nodes }),
        }
    }
    ranges
}

fn served_by(row: &Row, with_replicas: bool) -> NodeList {
    let Some(primary) = row.primary else { return NodeList::new() };
    let replicas = row.holders.iter().copied().filter(|node| with_replicas && *node != primary);
    std::iter::once(primary).chain(replicas).collect()
}

/// The port that cluster-aware clients are told: the client port where the cluster port is off.
#[must_use]
pub fn announced_port(addresses: &Addresses) -> u16 {
    if addresses.cluster == 0 { addresses.client } else { addresses.cluster }
}

fn record(view: &View, node: NodeId) -> &NodeRecord {
    view.map.nodes.get(&node).expect("who holds a partition is in the map")
}

/// Writes `CLUSTER SLOTS`.
pub fn slots(view: &View, with_replicas: bool, reply: &mut ReplyWriter<'_>) {
    let ranges = slot_ranges(view, with_replicas);
    reply.array(ranges.len());
    for range in &ranges {
        reply.array(2 + range.nodes.len());
        reply.integer(i64::from(range.start));
        reply.integer(i64::from(range.end));
        for &node in &range.nodes {
            let addresses = &record(view, node).addresses;
            reply.array(4);
            reply.bulk(addresses.host.as_bytes());
            reply.integer(i64::from(announced_port(addresses)));
            reply.bulk(node.to_string().as_bytes());
            reply.map(0);
        }
    }
}

/// Writes `CLUSTER SHARDS`: one shard for each distinct list of nodes.
pub fn shards(view: &View, with_replicas: bool, reply: &mut ReplyWriter<'_>) {
    let mut shards: BTreeMap<NodeList, Vec<(u16, u16)>> = BTreeMap::new();
    for range in slot_ranges(view, with_replicas) {
        shards.entry(range.nodes).or_default().push((range.start, range.end));
    }
    reply.array(shards.len());
    for (nodes, ranges) in &shards {
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * ranges.len());
        for &(start, end) in ranges {
            reply.integer(i64::from(start));
            reply.integer(i64::from(end));
        }
        reply.bulk(b"nodes");
        reply.array(nodes.len());
        for (rank, &node) in nodes.iter().enumerate() {
            shard_node(view, node, rank == 0, reply);
        }
    }
}

fn shard_node(view: &View, node: NodeId, is_primary: bool, reply: &mut ReplyWriter<'_>) {
    let addresses = &record(view, node).addresses;
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(node.to_string().as_bytes());
    reply.bulk(b"port");
    reply.integer(i64::from(announced_port(addresses)));
    reply.bulk(b"ip");
    reply.bulk(addresses.host.as_bytes());
    reply.bulk(b"endpoint");
    reply.bulk(addresses.host.as_bytes());
    reply.bulk(b"role");
    reply.bulk(if is_primary { b"master" } else { b"replica" });
    reply.bulk(b"replication-offset");
    reply.integer(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
}

/// The text of `CLUSTER NODES`: every node as the master of what it is primary of.
#[must_use]
pub fn nodes(view: &View, me: NodeId) -> String {
    let mut ranges: HashMap<NodeId, String> = HashMap::new();
    for range in slot_ranges(view, false) {
        let text = ranges.entry(range.nodes[0]).or_default();
        let _ = match range {
            SlotRange { start, end, .. } if start == end => write!(text, " {start}"),
            SlotRange { start, end, .. } => write!(text, " {start}-{end}"),
        };
    }
    let mut text = String::new();
    for (&node, record) in &view.map.nodes {
        let is_up = record.liveness == Liveness::Up;
        let _ = writeln!(
            text,
            "{node} {}:{}@{} {}master{} - 0 0 {} {}{}",
            record.addresses.host,
            announced_port(&record.addresses),
            record.addresses.peer,
            if node == me { "myself," } else { "" },
            if is_up { "" } else { ",fail" },
            newest_era(view, node),
            if is_up || node == me { "connected" } else { "disconnected" },
            ranges.get(&node).map_or("", String::as_str),
        );
    }
    text
}

/// The newest era of a node: the epoch at which it last became primary of anything; 0 if it is of nothing.
#[must_use]
pub fn newest_era(view: &View, node: NodeId) -> Epoch {
    let own = view.table.rows.iter().filter(|row| row.primary == Some(node));
    own.map(|row| row.era).max().unwrap_or_default()
}

/// Which of the topology replies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TopologyKind {
    /// `CLUSTER SLOTS`
    Slots,
    /// `CLUSTER SHARDS`
    Shards,
    /// `CLUSTER NODES`
    Nodes,
}

/// The topology replies of the newest epoch that was asked for. At most six, one per kind and RESP version.
pub struct TopologyCache {
    me: NodeId,
    with_replicas: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epoch: Epoch,
    replies: HashMap<(TopologyKind, bool), Bytes>,
}

impl TopologyCache {
    /// An empty cache of the node `me`.
    #[must_use]
    pub fn new(me: NodeId, with_replicas: bool) -> Self {
        Self { me, with_replicas, state: Mutex::default() }
    }

    /// The reply for this view. Serialized under the lock, so that a storm of clients costs one pass.
    pub fn reply(&self, view: &View, kind: TopologyKind, version: ProtocolVersion) -> Bytes {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if view.map.epoch < state.epoch {
            // A thread that still holds an older view answers from that, and disturbs nobody.
            drop(state);
            return self.serialize(view, kind, version);
        }
        if view.map.epoch > state.epoch {
            *state = State { epoch: view.map.epoch, replies: HashMap::new() };
        }
        let key = (kind, version == ProtocolVersion::Resp3);
        state.replies.entry(key).or_insert_with(|| self.serialize(view, kind, version)).clone()
    }

    fn serialize(&self, view: &View, kind: TopologyKind, version: ProtocolVersion) -> Bytes {
        let mut out = BytesMut::new();
        let mut reply = ReplyWriter::new(&mut out, version);
        match kind {
            TopologyKind::Slots => slots(view, self.with_replicas, &mut reply),
            TopologyKind::Shards => shards(view, self.with_replicas, &mut reply),
            TopologyKind::Nodes => reply.verbatim("txt", nodes(view, self.me).as_bytes()),
        }
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::id::NodeId;
    use korum_protocol::resp::ProtocolVersion::{Resp2, Resp3};

    use super::*;
    use crate::command::test_maps::{grown, single, split};

    fn id(number: u64) -> String {
        NodeId(number).to_string()
    }

    #[test]
    fn one_node_serves_one_range() {
        let view = single(4096);
        let all = vec![SlotRange { start: 0, end: 16383, nodes: NodeList::from_slice(&[NodeId(1)]) }];
        assert_eq!(slot_ranges(&view, false), all);
        let cache = TopologyCache::new(NodeId(1), false);
        let id = id(1);
        assert_eq!(
            cache.reply(&view, TopologyKind::Slots, Resp2),
            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:17001\r\n$40\r\n{id}\r\n*0\r\n")
        );
        assert_eq!(
            cache.reply(&view, TopologyKind::Slots, Resp3),
            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:17001\r\n$40\r\n{id}\r\n%0\r\n")
        );
        assert_eq!(
            cache.reply(&view, TopologyKind::Nodes, Resp2),
            format!("$103\r\n{id} 127.0.0.1:17001@27001 myself,master - 0 0 1 connected 0-16383\n\r\n")
        );
        let shards = "slots *2 :0 :16383 $5 nodes *1 {node} $2 id $40 {id} $4 port :17001 $2 ip $9 127.0.0.1 $8 endpoint \
                      $9 127.0.0.1 $4 role $6 master $18 replication-offset :0 $6 health $6 online ";
        let shards = |map: &str, node: &str| {
            let rest = shards.replace("{node}", node).replace("{id}", &id).replace(' ', "\r\n");
            format!("*1\r\n{map}\r\n$5\r\n{rest}")
        };
        assert_eq!(cache.reply(&view, TopologyKind::Shards, Resp2), shards("*4", "*14"));
        assert_eq!(cache.reply(&view, TopologyKind::Shards, Resp3), shards("%2", "%7"));
    }

    #[test]
    fn every_slot_is_served_by_the_primary_of_its_partition() {
        let view = grown(64);
        for with_replicas in [false, true] {
            let ranges = slot_ranges(&view, with_replicas);
            for slot in 0..16384 {
                let range = ranges.iter().find(|range| (range.start..=range.end).contains(&slot)).unwrap();
                let row = view.row(view.partition_of_slot(slot));
                assert_eq!(Some(range.nodes[0]), row.primary);
                assert_eq!(range.nodes.len(), if with_replicas { row.holders.len() } else { 1 });
            }
            let longest = ranges.windows(2).all(|pair| pair[0].nodes != pair[1].nodes);
            assert!(longest, "neighbours of one owner are one range");
        }
    }

    #[test]
    fn slots_list_replicas_on_request() {
        let view = split(64);
        let text = String::from_utf8(
            TopologyCache::new(NodeId(1), true).reply(&view, TopologyKind::Slots, Resp2).to_vec(),
        );
        assert!(text.unwrap().contains("*4\r\n:0\r\n"), "start, end, primary and one replica");
        let plain = TopologyCache::new(NodeId(1), false).reply(&view, TopologyKind::Slots, Resp2);
        assert!(String::from_utf8(plain.to_vec()).unwrap().contains("*3\r\n:0\r\n"));
    }

    #[test]
    fn nodes_says_who_is_down() {
        let text = nodes(&grown(64), NodeId(2));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.len(), 3);
        let flags: Vec<&str> = lines.iter().map(|line| line[2]).collect();
        assert_eq!(flags, ["master", "myself,master", "master,fail"]);
        assert_eq!(
            lines[2][1..],
            ["127.0.0.1:17003@27003", "master,fail", "-", "0", "0", "0", "disconnected"]
        );
        assert!(lines.iter().all(|line| line.len() >= 8));
    }

    #[test]
    fn cache_follows_the_epoch_and_never_goes_back() {
        let (old, new) = (single(64), grown(64));
        let cache = TopologyCache::new(NodeId(1), false);
        let before = cache.reply(&old, TopologyKind::Slots, Resp2);
        let after = cache.reply(&new, TopologyKind::Slots, Resp2);
        assert_ne!(before, after);
        assert_eq!(cache.reply(&old, TopologyKind::Slots, Resp2), before);
        assert_eq!(cache.state.lock().unwrap().epoch, new.map.epoch);
        let again = cache.reply(&new, TopologyKind::Slots, Resp2);
        assert_eq!(again.as_ptr(), after.as_ptr(), "shared, not written again");
    }
}
