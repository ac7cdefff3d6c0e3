//! `CLUSTER`: the cluster as Redis Cluster's clients and tools know it.
//!
//! For: parsing and answering from a view; what has to be done is returned as an [`Outcome`].
//! Not here: the long topology replies (`topology`), Korum's own words (`korum`).

use bytes::Bytes;
use korum_protocol::id::NodeId;
use korum_protocol::map::{Liveness, MapChange, View};
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, ReplyWriter};

use super::outcome::Outcome;
use super::subcommand::{self, NOT_AN_INTEGER, integer, wrong_arity};
use super::topology::{TopologyCache, TopologyKind, newest_era};
use crate::config::HostPort;

/// Number of slots.
const SLOTS: i64 = 16384;

/// Most keys that one `GETKEYSINSLOT` returns, so that one request cannot hold a partition for long.
const KEYS_MAX: usize = 100_000;

/// What the store tells of a slot; only keys of partitions of which this node is primary.
pub trait SlotKeys {
    /// Number of keys.
    fn count(&self, slot: u16) -> usize;
    /// Up to `count` keys.
    fn keys(&self, slot: u16, count: usize) -> Vec<Bytes>;
}

/// A connection to another node, as `CLUSTER LINKS` lists it.
#[derive(Clone, Debug)]
pub struct Link {
    /// This node opened it.
    pub outgoing: bool,
    /// Whom it reaches.
    pub node: NodeId,
    /// Unix time of its creation, ms.
    pub created_ms: u64,
    /// Bytes allocated for what is not sent yet.
    pub send_buffer_allocated: usize,
    /// Bytes not sent yet.
    pub send_buffer_used: usize,
}

/// What `CLUSTER` answers from.
pub struct ClusterContext<'a> {
    /// The map of this moment.
    pub view: &'a View,
    /// This node.
    pub me: NodeId,
    /// It holds a valid lease.
    pub has_lease: bool,
    /// Topology replies.
    pub topology: &'a TopologyCache,
    /// The store.
    pub keys: &'a dyn SlotKeys,
    /// Links to other nodes.
    pub links: &'a [Link],
}

/// Runs `CLUSTER …`.
pub fn cluster(args: Args<'_>, context: &ClusterContext<'_>, reply: &mut ReplyWriter<'_>) -> Outcome {
    let name = subcommand::name(args);
    let count = args.len();
    let arity = match name.as_str() {
        "" => {
            wrong_arity("cluster", reply);
            return Outcome::Replied;
        }
        "info" | "myid" | "myshardid" | "nodes" | "slots" | "shards" | "links" | "help" => count == 2,
        "keyslot" | "countkeysinslot" | "replicas" | "slaves" | "count-failure-reports" | "forget" => {
            count == 3
        }
        "getkeysinslot" => count == 4,
        "meet" => count >= 4,
        _ => true,
    };
    if !arity {
        wrong_arity(&format!("cluster|{name}"), reply);
        return Outcome::Replied;
    }
    match name.as_str() {
        "info" => reply.verbatim("txt", info(context).as_bytes()),
        // A node is its own shard: it is primary of some partitions, and no two nodes share all of theirs.
        "myid" | "myshardid" => reply.bulk(context.me.to_string().as_bytes()),
        "nodes" => topology(context, TopologyKind::Nodes, reply),
        "slots" => topology(context, TopologyKind::Slots, reply),
        "shards" => topology(context, TopologyKind::Shards, reply),
        "keyslot" => reply.integer(i64::from(slot_of(&args[2]))),
        "countkeysinslot" => count_keys(&args[2], context, reply),
        "getkeysinslot" => get_keys(args, context, reply),
        "links" => links(context, reply),
        "replicas" | "slaves" => with_node(&args[2], context, reply, |_, reply| reply.array(0)),
        "count-failure-reports" => with_node(&args[2], context, reply, |_, reply| reply.integer(0)),
        "meet" => return meet(args, reply),
        "forget" => return forget(&args[2], context, reply),
        "help" => subcommand::help("CLUSTER", HELP, reply),
        "addslots" | "addslotsrange" | "bumpepoch" | "delslots" | "delslotsrange" | "failover"
        | "flushslots" | "replicate" | "reset" | "saveconfig" | "set-config-epoch" | "setslot" => {
            reply.error(
                "ERR Korum places slots and copies by itself; see KORUM HELP for what can be asked of it",
            );
        }
        _ => subcommand::unknown("CLUSTER", args, reply),
    }
    Outcome::Replied
}

fn topology(context: &ClusterContext<'_>, kind: TopologyKind, reply: &mut ReplyWriter<'_>) {
    let bytes = context.topology.reply(context.view, kind, reply.version());
    reply.raw(&bytes);
}

/// The text of `CLUSTER INFO`.
fn info(context: &ClusterContext<'_>) -> String {
    let ClusterContext { view, me, has_lease, .. } = context;
    let map = &view.map;
    let unserved = view.table.rows.iter().filter(|row| row.primary.is_none()).count();
    let slots_fail = unserved * (SLOTS as usize / view.table.rows.len().max(1));
    let mut primaries: Vec<NodeId> = view.table.rows.iter().filter_map(|row| row.primary).collect();
    primaries.sort_unstable();
    primaries.dedup();
    let down = map.nodes.values().filter(|node| node.liveness != Liveness::Up).count();
    let moving = view.table.rows.iter().filter(|row| row.holders != row.replica_set).count();
    let fields = [
        ("cluster_state", (if *has_lease && unserved == 0 { "ok" } else { "fail" }).to_owned()),
        ("cluster_slots_assigned", SLOTS.to_string()),
        ("cluster_slots_ok", (SLOTS as usize - slots_fail).to_string()),
        ("cluster_slots_pfail", "0".to_owned()),
        ("cluster_slots_fail", slots_fail.to_string()),
        ("cluster_known_nodes", map.nodes.len().to_string()),
        ("cluster_size", primaries.len().to_string()),
        ("cluster_current_epoch", map.epoch.to_string()),
        ("cluster_my_epoch", newest_era(view, *me).to_string()),
        ("cluster_stats_messages_sent", "0".to_owned()),
        ("cluster_stats_messages_received", "0".to_owned()),
        ("total_cluster_links_buffer_limit_exceeded", "0".to_owned()),
        ("korum_lease", (if *has_lease { "valid" } else { "none" }).to_owned()),
        ("korum_partitions", map.partitions.to_string()),
        ("korum_replication", map.replication.to_string()),
        ("korum_nodes_down", down.to_string()),
        ("korum_partitions_moving", moving.to_string()),
        ("korum_lost_total", map.lost_total.to_string()),
    ];
    fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}

fn slot(argument: &[u8]) -> Result<Option<u16>, &'static str> {
    let number = integer(argument).ok_or(NOT_AN_INTEGER)?;
    Ok(u16::try_from(number).ok().filter(|&slot| i64::from(slot) < SLOTS))
}

fn count_keys(argument: &[u8], context: &ClusterContext<'_>, reply: &mut ReplyWriter<'_>) {
    match slot(argument) {
        Err(text) => reply.error(text),
        Ok(None) => reply.error("ERR Invalid slot"),
        Ok(Some(slot)) => reply.integer(context.keys.count(slot) as i64),
    }
}

fn get_keys(args: Args<'_>, context: &ClusterContext<'_>, reply: &mut ReplyWriter<'_>) {
    let (slot, Some(count)) = (slot(&args[2]), integer(&args[3])) else { return reply.error(NOT_AN_INTEGER) };
    match (slot, usize::try_from(count)) {
        (Err(text), _) => reply.error(text),
        (Ok(Some(slot)), Ok(count)) => {
            let keys = context.keys.keys(slot, count.min(KEYS_MAX));
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        _ => reply.error("ERR Invalid slot or number of keys"),
    }
}

fn links(context: &ClusterContext<'_>, reply: &mut ReplyWriter<'_>) {
    reply.array(context.links.len());
    for link in context.links {
        reply.map(6);
        reply.bulk(b"direction");
        reply.bulk(if link.outgoing { b"to" } else { b"from" });
        reply.bulk(b"node");
        reply.bulk(link.node.to_string().as_bytes());
        reply.bulk(b"create-time");
        reply.integer(link.created_ms.cast_signed());
        reply.bulk(b"events");
        reply.bulk(if link.send_buffer_used > 0 { b"rw" } else { b"r" });
        reply.bulk(b"send-buffer-allocated");
        reply.integer(link.send_buffer_allocated as i64);
        reply.bulk(b"send-buffer-used");
        reply.integer(link.send_buffer_used as i64);
    }
}

fn find(argument: &[u8], context: &ClusterContext<'_>) -> Option<NodeId> {
    let node = std::str::from_utf8(argument).ok()?.parse().ok()?;
    context.view.map.nodes.contains_key(&node).then_some(node)
}

fn with_node(
    argument: &[u8],
    context: &ClusterContext<'_>,
    reply: &mut ReplyWriter<'_>,
    answer: impl FnOnce(NodeId, &mut ReplyWriter<'_>),
) {
    match find(argument, context) {
        Some(node) => answer(node, reply),
        None => reply.error(&format!("ERR Unknown node {}", String::from_utf8_lossy(argument))),
    }
}

fn meet(args: Args<'_>, reply: &mut ReplyWriter<'_>) -> Outcome {
    let text = |at: usize| String::from_utf8_lossy(args.get(at).unwrap_or_default()).into_owned();
    let host = text(2);
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let address = |at: usize| format!("{bracketed}:{}", text(at)).parse::<HostPort>();
    let bus = args.get(4);
    if args.len() > 5 {
        subcommand::unknown("CLUSTER", args, reply);
    } else if integer(&args[3]).is_none() {
        reply.error(&format!("ERR Invalid TCP base port specified: {}", text(3)));
    } else if bus.is_some_and(|bus| integer(bus).is_none()) {
        reply.error(&format!("ERR Invalid TCP bus port specified: {}", text(4)));
    } else {
        match (address(3), bus.map(|_| address(4))) {
            (Ok(address), None) => return Outcome::Meet { address, is_peer_port: false },
            (Ok(_), Some(Ok(address))) => return Outcome::Meet { address, is_peer_port: true },
            (Err(_), _) => reply.error(&format!("ERR Invalid node address specified: {host}:{}", text(3))),
            (_, Some(Err(_))) => {
                reply.error(&format!("ERR Invalid node address specified: {host}:{}", text(4)))
            }
        }
    }
    Outcome::Replied
}

fn forget(argument: &[u8], context: &ClusterContext<'_>, reply: &mut ReplyWriter<'_>) -> Outcome {
    match find(argument, context) {
        Some(node) if node == context.me => {
            reply.error("ERR I tried hard but I can't forget myself...");
            Outcome::Replied
        }
        Some(node) => Outcome::Propose(MapChange::Forget { node }),
        None => {
            reply.error(&format!("ERR Unknown node {}", String::from_utf8_lossy(argument)));
            Outcome::Replied
        }
    }
}

const HELP: &[&str] = &[
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return number of failure reports for <node-id>.",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "FORGET <node-id>",
    "    Remove a node from the cluster.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "MEET <ip> <port> [<bus-port>]",
    "    Connect nodes into a working cluster.",
    "MYID",
    "    Return the node id.",
    "MYSHARDID",
    "    Return the node's shard id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, master and replicas IP addresses, ports and ids",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "    Output format is an array where each array element is a map containing attributes of a link",
];

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};

    use super::*;
    use crate::command::subcommand::testing::answer;
    use crate::command::test_maps::{grown, single};

    struct Three;

    impl SlotKeys for Three {
        fn count(&self, slot: u16) -> usize {
            usize::from(slot)
        }
        fn keys(&self, _slot: u16, count: usize) -> Vec<Bytes> {
            vec![Bytes::from_static(b"k"); count.min(3)]
        }
    }

    fn run(line: &str, view: &View, has_lease: bool, version: ProtocolVersion) -> (String, Outcome) {
        let topology = TopologyCache::new(NodeId(1), false);
        let links = [Link {
            outgoing: true,
            node: NodeId(2),
            created_ms: 5,
            send_buffer_allocated: 0,
            send_buffer_used: 0,
        }];
        let context = ClusterContext {
            view,
            me: NodeId(1),
            has_lease,
            topology: &topology,
            keys: &Three,
            links: &links,
        };
        let mut outcome = Outcome::Replied;
        let text = answer(&format!("cluster {line}"), version, |args, reply| {
            outcome = cluster(args, &context, reply)
        });
        (text, outcome)
    }

    fn ask(line: &str) -> String {
        run(line, &single(64), true, Resp2).0
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        for (line, text) in [
            ("keyslot", "wrong number of arguments for 'cluster|keyslot' command"),
            ("countkeysinslot a", "value is not an integer or out of range"),
            ("countkeysinslot 20000", "Invalid slot"),
            ("countkeysinslot -1", "Invalid slot"),
            ("countkeysinslot 99999999999999999999", "value is not an integer or out of range"),
            ("getkeysinslot 0 a", "value is not an integer or out of range"),
            ("getkeysinslot a 1", "value is not an integer or out of range"),
            ("getkeysinslot 0 -1", "Invalid slot or number of keys"),
            ("getkeysinslot 20000 1", "Invalid slot or number of keys"),
            ("replicas foo", "Unknown node foo"),
            ("count-failure-reports foo", "Unknown node foo"),
            ("slaves", "wrong number of arguments for 'cluster|slaves' command"),
            ("meet a b", "Invalid TCP base port specified: b"),
            ("meet", "wrong number of arguments for 'cluster|meet' command"),
            ("meet 1.2.3.4 99999", "Invalid node address specified: 1.2.3.4:99999"),
            ("meet 1.2.3.4 99 99999", "Invalid node address specified: 1.2.3.4:99999"),
            ("meet 1.2.3.4 99 b", "Invalid TCP bus port specified: b"),
            ("forget foo", "Unknown node foo"),
            ("foo", "unknown subcommand 'foo'. Try CLUSTER HELP."),
        ] {
            assert_eq!(ask(line), format!("-ERR {text}\r\n"), "{line}");
        }
        let myself = format!("forget {}", NodeId(1));
        assert_eq!(ask(&myself), "-ERR I tried hard but I can't forget myself...\r\n");
    }

    #[test]
    fn small_answers() {
        assert_eq!(ask("keyslot a"), ":15495\r\n");
        assert_eq!(ask("countkeysinslot 7"), ":7\r\n");
        assert_eq!(ask("getkeysinslot 0 2"), "*2\r\n$1\r\nk\r\n$1\r\nk\r\n");
        assert_eq!(ask("myid"), format!("$40\r\n{}\r\n", NodeId(1)));
        assert_eq!(ask("myshardid").len(), 47);
        assert_eq!(ask(&format!("replicas {}", NodeId(1))), "*0\r\n");
        assert!(
            run("links", &single(64), true, Resp3)
                .0
                .starts_with("*1\r\n%6\r\n$9\r\ndirection\r\n$2\r\nto\r\n")
        );
        assert!(ask("help").starts_with("*34\r\n+CLUSTER <subcommand>"));
        assert!(ask("failover").contains("KORUM HELP"));
    }

    #[test]
    fn info_says_ok_only_with_a_lease() {
        let (text, _) = run("info", &grown(64), true, Resp2);
        for line in [
            "cluster_state:ok\r\n",
            "cluster_slots_assigned:16384\r\n",
            "cluster_slots_ok:16384\r\n",
            "cluster_slots_fail:0\r\n",
            "cluster_known_nodes:3\r\n",
            "cluster_size:2\r\n",
            "korum_nodes_down:1\r\n",
            "korum_lost_total:0\r\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let (text, _) = run("info", &grown(64), false, Resp3);
        assert!(text.starts_with('=') && text.contains("txt:cluster_state:fail\r\n"), "{text}");
    }

    #[test]
    fn a_partition_that_nobody_serves_is_counted() {
        let mut view = single(64);
        view.table.rows[3].primary = None;
        let (text, _) = run("info", &view, true, Resp2);
        assert!(
            text.contains("cluster_state:fail\r\n") && text.contains("cluster_slots_fail:256\r\n"),
            "{text}"
        );
        let (text, _) = run("nodes", &view, true, Resp2);
        assert!(text.contains(" 0-767 1024-16383\n"), "{text}");
    }

    #[test]
    fn meet_and_forget_are_left_to_the_caller() {
        let meet = |line: &str| run(line, &single(64), true, Resp2);
        let found = |port, is_peer_port| {
            let address = HostPort { host: "::1".to_owned(), port };
            (String::new(), Outcome::Meet { address, is_peer_port })
        };
        assert_eq!(meet("meet ::1 7000"), found(7000, false));
        assert_eq!(meet("meet ::1 7000 27000"), found(27000, true));
        let forget = run(&format!("forget {}", NodeId(3)), &grown(64), true, Resp2);
        assert_eq!(forget, (String::new(), Outcome::Propose(MapChange::Forget { node: NodeId(3) })));
    }
}
