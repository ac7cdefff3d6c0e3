//! Caches of clients, over the cluster: reads that are kept, changes that are told.
//!
//! For: noting what a client that keeps its reads is about to read, and telling the nodes whose clients may have what
//! a command has changed.
//! Not here: whose caches they are (`net::tracking`), the commands (`command::tracking`).
//!
//! ```text
//! told to all nodes    TRACK on|off request              tell me of changes, or do not any more
//! told back            TRACKED request                   from now on all is told through this connection
//! told                 INVALIDATE key …                  these have changed; without keys: everything may have
//! told                 CHANGED client key …              a client of yours has changed these, and need not be told
//! ```
//! A node asks when its first client begins, and again on each new connection. `TRACKED` stands in the stream of what
//! is told, so whatever is executed behind it is told behind it. When that stream ends, nothing is sure any more.

use std::sync::Arc;
use std::time::Duration;

use korum_protocol::command::{CommandId, CommandSpec, Flags, Group, key_positions};
use korum_protocol::id::NodeId;
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::rope::Rope;

use super::caller::{Caller, Spared};
use crate::command::tracking::Outcome;
use crate::net::clients::Client;
use crate::net::session::Session;
use crate::net::tracking::Terms;
use crate::node::Node;
use crate::replication::effect::Effects;
use crate::store::database::split;

/// How often a node with such clients looks whether it still has its lease.
const LOOK: Duration = Duration::from_millis(100);
/// Looks after which other nodes are asked again, if not all have answered.
const ASK_AGAIN: u64 = 10;

fn terms(node: &Node) -> Terms {
    Terms { limits: node.live.pubsub_limits(), now: node.clock().now() }
}

fn request(words: &[&[u8]]) -> Rope {
    let mut out = Rope::new();
    encode_header(b'*', words.len(), out.copied_mut());
    for word in words {
        encode_header(b'$', word.len(), out.copied_mut());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// What is told when nobody knows which keys have changed.
pub fn everything() -> Rope {
    request(&[b"INVALIDATE"])
}

/// To be called before a command of a client that keeps its reads is run, wherever that is: who changes one of its keys
/// afterwards finds the client noted.
pub fn before(
    node: &Node,
    spec: &CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    session: &mut Session,
    client: &Client,
) {
    let Some(options) = &mut session.tracking else { return };
    let keeps = options.keeps();
    if !spec.full_name.starts_with("client|") {
        options.is_marked = false;
    }
    if spec.id == CommandId::Exec || spec.group == Group::Scripting {
        // What it has read is not noted.
        return node.clients.tracker.outdated(client, &terms(node));
    }
    if !keeps || !spec.flags.contains(Flags::READONLY) {
        return;
    }
    let Ok(keys) = key_positions(spec, args) else { return };
    let view = node.view();
    let is_sure = !caller.reads_copies && node.is_leased() && node.clients.tracker.is_sure(&view, node.id());
    let keys_max = node.live.tracking_table_max_keys();
    let keys = keys.map(|at| &args[at]);
    node.clients.tracker.reads(client, keys, is_sure, options.is_broadcast, keys_max, &terms(node));
}

/// Tells the caches what a command has changed, by the names of the keys, whatever their database, as Redis does. To
/// be called under the lock of the partition. `spared`: the client that ran it, if it does not want to be told.
#[inline]
pub fn announce(node: &Node, effects: &mut Effects, spared: Option<Spared>) {
    if effects.notices.has_touched() {
        announce_all(node, effects, spared);
    }
}

#[cold]
fn announce_all(node: &Node, effects: &mut Effects, spared: Option<Spared>) {
    let (keys, is_all) = effects.notices.take_touched();
    let tracker = &node.clients.tracker;
    if is_all {
        tracker.all_changed(&terms(node));
    } else {
        let own = spared.filter(|spared| spared.node.is_none()).map(|spared| spared.client);
        tracker.changed(keys.iter().map(|key| split(key).1), own, &terms(node));
    }
    let interested = tracker.interested();
    if interested.is_empty() {
        return;
    }
    let mut words: Vec<&[u8]> = vec![b"INVALIDATE"];
    if !is_all {
        words.extend(keys.iter().map(|key| split(key).1));
    }
    let told = request(&words);
    let (writer, client) = spared.map_or((None, 0), |spared| (spared.node, spared.client));
    for peer in interested {
        if writer == Some(peer) && !is_all {
            let client = client.to_string();
            let words = [&[b"CHANGED", client.as_bytes()], &words[1..]].concat();
            node.forwards().tell(peer, &request(&words));
        } else {
            node.forwards().tell(peer, &told);
        }
    }
}

/// Names lead to other keys than before at this node: caches everywhere have to hear of it.
pub fn tell_everything(node: &Node) {
    doubt(node);
    node.clients.tracker.interested().into_iter().for_each(|peer| node.forwards().tell(peer, &everything()));
}

/// Does what a client has left to do.
pub fn ask(node: &Node, outcome: Outcome) {
    let word: &[u8] = match outcome {
        Outcome::Replied => return,
        Outcome::Begin => b"on",
        Outcome::End => b"off",
    };
    node.forwards().tell_all(&track(node, word));
}

fn track(node: &Node, word: &[u8]) -> Rope {
    request(&[b"TRACK", word, node.clients.tracker.request().to_string().as_bytes()])
}

/// What is told first on a new connection to another node.
pub fn greet(node: &Node, peer: NodeId) {
    let tracker = &node.clients.tracker;
    if tracker.has_clients() {
        node.forwards().tell(peer, &track(node, b"on"));
    }
}

/// Does what another node has told through one of its connections. False if it means nothing.
pub fn take_told(node: &Node, peer: NodeId, connection: u64, args: &Args<'_>) -> bool {
    let tracker = &node.clients.tracker;
    let number = |at: usize| std::str::from_utf8(args.get(at)?).ok()?.parse::<u64>().ok();
    match (&args[0], args.len()) {
        (b"INVALIDATE", 1) => tracker.all_changed(&terms(node)),
        (b"INVALIDATE", _) => tracker.changed(args.iter().skip(1), None, &terms(node)),
        (b"CHANGED", 3..) => {
            let Some(client) = number(1) else { return false };
            tracker.changed(args.iter().skip(2), Some(client), &terms(node));
        }
        (b"TRACK", 3) => {
            tracker.set_interested(peer, &args[1] == b"on");
            if &args[1] == b"on" {
                node.forwards().tell(peer, &request(&[b"TRACKED", &args[2]]));
            }
        }
        (b"TRACKED", 2) => {
            let Some(request) = number(1) else { return false };
            tracker.confirm(peer, request, connection);
        }
        _ => return false,
    }
    true
}

/// A connection on which another node tells has ended.
pub fn lost(node: &Node, peer: NodeId, connection: u64) {
    if node.clients.tracker.lose(peer, connection) {
        node.clients.tracker.all_changed(&terms(node));
    }
}

/// A map is in force in which other nodes serve, or the node has lost its lease.
pub fn doubt(node: &Node) {
    node.clients.tracker.all_changed(&terms(node));
}

/// Looks for the loss of the lease, until it is dropped: a node without one may be cut off, and others may serve.
pub async fn guard(node: Arc<Node>) {
    let mut was_leased = false;
    for look in 0_u64.. {
        tokio::time::sleep(LOOK).await;
        let tracker = &node.clients.tracker;
        if look % ASK_AGAIN == 0 && tracker.has_clients() && !tracker.is_sure(&node.view(), node.id()) {
            // Something of what was told may have been lost.
            ask(&node, Outcome::Begin);
        }
        let is_leased = node.is_leased();
        if was_leased && !is_leased && node.clients.tracker.has_clients() {
            doubt(&node);
        }
        was_leased = is_leased;
    }
}
