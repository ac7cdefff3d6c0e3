//! `KORUM`: what only Korum can be asked, and what operators do.
//!
//! For: parsing and answering from a view; changes are returned as an [`Outcome`].
//! Not here: the texts (`admin`), Redis Cluster's words (`cluster`).

use bytes::{BufMut, BytesMut};
use korum_protocol::id::NodeId;
use korum_protocol::limits::REPLICATION_MAX;
use korum_protocol::map::{MapChange, View};
use korum_protocol::peer::wire;
use korum_protocol::resp::{Args, ReplyWriter};

use super::outcome::Outcome;
use super::subcommand::{self, SYNTAX, integer, lower, wrong_arity};
use crate::admin::explain::explain;
use crate::admin::forecast::{self, ADDED_MAX, Question, forecast};
use crate::admin::status::{self, NodeState};
use crate::admin::stop;
use crate::cluster::Reformed;
use crate::config::HostPort;

/// First byte of the answer to `KORUM MAP`; a client refuses versions that it does not know.
pub const MAP_VERSION: u8 = 1;

/// What an operator must say who wants a quorum re-formed.
const REFORM_WORD: &[u8] = b"THE-OTHERS-ARE-GONE-FOR-EVER";

/// What a re-formed quorum is told as.
pub fn reformed(reformed: &Reformed) -> String {
    let Reformed { lost, emptied, epoch } = reformed;
    let nodes: Vec<String> = lost.iter().map(ToString::to_string).collect();
    format!(
        "re-formed at epoch {epoch}\nleft behind: {}\npartitions that no node had any more: {emptied}\n",
        nodes.join(" ")
    )
}

/// Runs `KORUM …`.
pub fn korum(args: Args<'_>, view: &View, state: &NodeState, reply: &mut ReplyWriter<'_>) -> Outcome {
    let name = subcommand::name(args);
    let count = args.len();
    let arity = match name.as_str() {
        "" => {
            wrong_arity("korum", reply);
            return Outcome::Replied;
        }
        "map" | "status" => count <= 3,
        "peer" | "help" => count == 2,
        "explain" | "drain" | "forget" | "replication" => count == 3,
        "plan" | "safe-to-stop" => count >= 3,
        "weight" => count == 4,
        "reform-quorum" => count <= 3,
        _ => true,
    };
    if !arity {
        wrong_arity(&format!("korum|{name}"), reply);
        return Outcome::Replied;
    }
    let change = match name.as_str() {
        "drain" => find(view, &args[2]).map(|node| MapChange::Drain { node }),
        "forget" => find(view, &args[2]).map(|node| MapChange::Forget { node }),
        "weight" => weight(args, view),
        "reform-quorum" => {
            if args.get(2).is_some_and(|word| word.eq_ignore_ascii_case(REFORM_WORD)) {
                return Outcome::Reform;
            }
            reply.error(&format!(
                "ERR this makes a cluster of this node and of those that answer it, and leaves all others behind for \
                 ever, with what only they have. If a majority of the old voters still runs, or is started again with \
                 its data directories, there are two clusters then. If you are sure that it is gone: \
                 KORUM REFORM-QUORUM {}",
                String::from_utf8_lossy(REFORM_WORD)
            ));
            return Outcome::Replied;
        }
        "replication" => within(&args[2], "replication", u64::from(REPLICATION_MAX))
            .map(|replication| MapChange::SetReplication { replication }),
        _ => {
            answer(&name, args, view, state, reply);
            return Outcome::Replied;
        }
    };
    match change {
        Ok(change) => Outcome::Propose(change),
        Err(text) => {
            reply.error(&text);
            Outcome::Replied
        }
    }
}

fn answer(name: &str, args: Args<'_>, view: &View, state: &NodeState, reply: &mut ReplyWriter<'_>) {
    match name {
        "map" => map(args, view, reply),
        "status" => match args.get(2).map(lower).as_deref() {
            None => reply.verbatim("txt", status::text(view, state).as_bytes()),
            Some("json") => reply.bulk(status::json(view, state).as_bytes()),
            Some(_) => reply.error(SYNTAX),
        },
        "explain" => reply.verbatim("txt", explain(view, &args[2], state.me).as_bytes()),
        "plan" => match plan(args, view) {
            Ok(text) => reply.verbatim("txt", text.as_bytes()),
            Err(text) => reply.error(&text),
        },
        "safe-to-stop" => {
            match args.tail(2).iter().map(|name| find(view, name)).collect::<Result<Vec<_>, _>>() {
                Ok(nodes) => {
                    let risks = stop::risks(view, &state.voters, &nodes, state.lease_left.is_some());
                    reply.verbatim("txt", stop::text(&nodes, &risks).as_bytes());
                }
                Err(text) => reply.error(&text),
            }
        }
        "peer" => peer(view, state.me, reply),
        "help" => subcommand::help("KORUM", HELP, reply),
        _ => subcommand::unknown("KORUM", args, reply),
    }
}

/// `MAP [epoch]`: the map, unless the asker knows it.
fn map(args: Args<'_>, view: &View, reply: &mut ReplyWriter<'_>) {
    if let Some(known) = args.get(2) {
        match integer(known).map(u64::try_from) {
            Some(Ok(known)) if known >= view.map.epoch.0 => return reply.null(),
            Some(Ok(_)) => {}
            _ => return reply.error("ERR epoch is not an integer or out of range"),
        }
    }
    let map = wire::encode(&view.map);
    let mut bytes = BytesMut::with_capacity(1 + map.len());
    bytes.put_u8(MAP_VERSION);
    bytes.put_slice(&map);
    reply.bulk(&bytes);
}

fn peer(view: &View, me: NodeId, reply: &mut ReplyWriter<'_>) {
    match view.map.nodes.get(&me).map(|record| &record.addresses) {
        Some(addresses) => {
            let address = HostPort { host: addresses.host.clone(), port: addresses.peer };
            reply.bulk(address.to_string().as_bytes());
        }
        None => reply.error("ERR this node is not in the cluster map yet; try again"),
    }
}

fn plan(args: Args<'_>, view: &View) -> Result<String, String> {
    let question = match lower(&args[2]).as_str() {
        "add" => added(args.tail(3))?,
        "remove" if args.len() > 3 => {
            Question::Remove(args.tail(3).iter().map(|name| find(view, name)).collect::<Result<_, _>>()?)
        }
        "remove" => {
            return Err("ERR name the nodes to remove: KORUM PLAN REMOVE <node> [<node> ...]".to_owned());
        }
        _ => return Err(SYNTAX.to_owned()),
    };
    let summary = forecast(view, &question).map_err(|refusal| format!("ERR {refusal}"))?;
    Ok(forecast::text(view, &summary))
}

fn added(options: Args<'_>) -> Result<Question, String> {
    let (mut count, mut zone, mut weight) = (1, String::new(), 1);
    if !options.len().is_multiple_of(2) {
        return Err(SYNTAX.to_owned());
    }
    for at in (0..options.len()).step_by(2) {
        let value = &options[at + 1];
        match lower(&options[at]).as_str() {
            "count" => count = usize::from(within(value, "count", ADDED_MAX as u64)?),
            "weight" => weight = within(value, "weight", 16)?,
            "zone" => zone = String::from_utf8_lossy(value).into_owned(),
            _ => return Err(SYNTAX.to_owned()),
        }
    }
    Ok(Question::Add { count, zone, weight })
}

fn weight(args: Args<'_>, view: &View) -> Result<MapChange, String> {
    Ok(MapChange::SetWeight { node: find(view, &args[2])?, weight: within(&args[3], "weight", 16)? })
}

fn within(argument: &[u8], what: &str, max: u64) -> Result<u8, String> {
    let number = integer(argument).and_then(|number| u64::try_from(number).ok());
    let number =
        number.filter(|number| (1..=max).contains(number)).and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| format!("ERR {what} must be a number from 1 to {max}"))
}

/// Finds a node by its id, by a beginning of its id that no other node shares, or by any of its addresses.
///
/// # Errors
/// The text of the error reply.
pub fn find(view: &View, name: &[u8]) -> Result<NodeId, String> {
    let name = String::from_utf8_lossy(name);
    let nodes = &view.map.nodes;
    if let Ok(address) = name.parse::<HostPort>() {
        let here = nodes.iter().find(|(_, record)| {
            let at = &record.addresses;
            at.host == address.host && [at.client, at.cluster, at.peer].contains(&address.port)
        });
        return here.map(|(&id, _)| id).ok_or_else(|| format!("ERR no node has the address {address}"));
    }
    let lower = name.to_ascii_lowercase();
    let mut fitting =
        nodes.keys().copied().filter(|id| !lower.is_empty() && id.to_string().starts_with(&lower));
    match (fitting.next(), fitting.next()) {
        (Some(id), None) => Ok(id),
        (Some(_), Some(_)) => Err(format!("ERR several nodes begin with '{name}'; give more digits")),
        (None, _) => Err(format!("ERR Unknown node {name}")),
    }
}

const HELP: &[&str] = &[
    "STATUS [JSON]",
    "    How the cluster is, and whether a node may be stopped.",
    "EXPLAIN <key>",
    "    Why a key is where it is, and who comes next.",
    "PLAN ADD [COUNT <n>] [ZONE <zone>] [WEIGHT <weight>]",
    "    What would move if nodes joined. Changes nothing.",
    "PLAN REMOVE <node> [<node> ...]",
    "    What would move if nodes left. Changes nothing.",
    "SAFE-TO-STOP <node> [<node> ...]",
    "    Whether these nodes may be stopped together: yes or no, and why. Changes nothing.",
    "DRAIN <node>",
    "    Move everything away from a node; it may be stopped once it holds nothing.",
    "FORGET <node>",
    "    Remove a node that holds nothing from the cluster.",
    "WEIGHT <node> <1-16>",
    "    Give a node another share of the data.",
    "REPLICATION <1-8>",
    "    Keep another number of copies.",
    "REFORM-QUORUM <word>",
    "    Make a cluster of this node and those that answer it, when the majority is lost for ever. Asks for a word.",
    "CONSISTENCY [strong|async]",
    "    What writes of this connection wait for: all copies, or the primary alone.",
    "MAP [<epoch>]",
    "    The cluster map in binary, for clients; null if it is not newer than <epoch>.",
    "PEER",
    "    The address at which other nodes reach this one.",
    "A <node> is its id, a beginning of its id, or host:port.",
];

#[cfg(test)]
mod tests {
    use korum_protocol::map::ClusterMap;
    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};

    use super::*;
    use crate::command::subcommand::testing::answer as answer_line;
    use crate::command::test_maps::{grown, single, split};

    fn run(line: &str, view: &View, version: ProtocolVersion) -> (String, Outcome) {
        let state = NodeState { me: NodeId(1), ..NodeState::default() };
        let mut outcome = Outcome::Replied;
        let text = answer_line(&format!("korum {line}"), version, |args, reply| {
            outcome = korum(args, view, &state, reply);
        });
        (text, outcome)
    }

    #[test]
    fn map_is_sent_with_its_version_unless_it_is_known() {
        let view = single(64);
        assert_eq!(run("map 1", &view, Resp2).0, "$-1\r\n");
        assert_eq!(run("map 9", &view, Resp3).0, "_\r\n");
        assert_eq!(run("map x", &view, Resp2).0, "-ERR epoch is not an integer or out of range\r\n");
        let mut out = BytesMut::new();
        let mut reply = ReplyWriter::new(&mut out, Resp2);
        map(Args::new(b"", &[]), &view, &mut reply);
        let start = out.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        assert_eq!(out[start], MAP_VERSION);
        let decoded: ClusterMap = wire::decode(&out[start + 1..out.len() - 2]).unwrap();
        assert_eq!(decoded, view.map);
    }

    #[test]
    fn nodes_are_found_by_id_beginning_and_address() {
        let view = split(64);
        let full = NodeId(2).to_string();
        assert_eq!(find(&view, full.as_bytes()), Ok(NodeId(2)));
        assert_eq!(find(&view, &full.to_uppercase().as_bytes()[..17]), Ok(NodeId(2)));
        for address in ["127.0.0.1:7002", "127.0.0.1:17002", "127.0.0.1:27002"] {
            assert_eq!(find(&view, address.as_bytes()), Ok(NodeId(2)));
        }
        assert_eq!(find(&view, b"0"), Err("ERR several nodes begin with '0'; give more digits".to_owned()));
        assert_eq!(find(&view, b""), Err("ERR Unknown node ".to_owned()));
        assert_eq!(find(&view, b"1.2.3.4:5"), Err("ERR no node has the address 1.2.3.4:5".to_owned()));
    }

    #[test]
    fn changes_are_left_to_the_caller() {
        let view = split(64);
        let change = |line: &str| run(line, &view, Resp2);
        let proposed = |change| (String::new(), Outcome::Propose(change));
        assert_eq!(change("drain 127.0.0.1:7002"), proposed(MapChange::Drain { node: NodeId(2) }));
        assert_eq!(change("FORGET 127.0.0.1:7002"), proposed(MapChange::Forget { node: NodeId(2) }));
        assert_eq!(change("replication 3"), proposed(MapChange::SetReplication { replication: 3 }));
        assert_eq!(
            change("weight 127.0.0.1:7001 4"),
            proposed(MapChange::SetWeight { node: NodeId(1), weight: 4 })
        );
        assert_eq!(change("replication 9").0, "-ERR replication must be a number from 1 to 8\r\n");
        assert_eq!(change("weight 127.0.0.1:7001 0").0, "-ERR weight must be a number from 1 to 16\r\n");
        assert_eq!(change("drain foo").0, "-ERR Unknown node foo\r\n");
        assert_eq!(change("drain").0, "-ERR wrong number of arguments for 'korum|drain' command\r\n");
    }

    #[test]
    fn questions_are_answered() {
        let view = grown(64);
        let ask = |line: &str, version| run(line, &view, version).0;
        assert!(ask("status", Resp3).contains("txt:Korum "));
        assert!(ask("status json", Resp2).contains("\r\n{\"version\":"));
        assert_eq!(ask("status xml", Resp2), "-ERR syntax error\r\n");
        assert!(ask("explain user:1", Resp2).contains("key        user:1\n"));
        assert!(ask("plan add", Resp2).contains("(nothing was changed)"));
        assert!(ask("plan add count 2 zone b weight 2", Resp2).contains("(new)"));
        assert!(ask("plan remove 127.0.0.1:7002", Resp2).contains("receives"));
        assert_eq!(ask("plan add count 65", Resp2), "-ERR count must be a number from 1 to 64\r\n");
        assert!(ask("plan remove", Resp2).starts_with("-ERR name the nodes"));
        assert!(ask("safe-to-stop 127.0.0.1:7002", Resp2).contains("no: "));
        assert_eq!(ask("safe-to-stop foo", Resp2), "-ERR Unknown node foo\r\n");
        assert_eq!(ask("peer", Resp2), "$15\r\n127.0.0.1:27001\r\n");
        assert!(ask("help", Resp2).starts_with("*30\r\n+KORUM <subcommand>"));
        assert_eq!(ask("foo", Resp2), "-ERR unknown subcommand 'foo'. Try KORUM HELP.\r\n");
    }
}
