//! Messages on their way to those who listen, at this node and at all others.
//!
//! For: `PUBLISH` and `SPUBLISH` in a batch, handing what was published to every node that is up, `PUBSUB` for the whole
//! cluster, and events of keys.
//! Not here: who listens at this node (`net::pubsub`), what one node answers (`command::pubsub`).
//!
//! A message goes to every other node as the request that it came in; there it is handed to those who listen and is
//! not sent on. Order: what one connection publishes is handed over in its order, at every node. A message never
//! overtakes a command before it: whoever reads a key because of it sees what was written before. At most once: what
//! may have been taken by a node is not sent to it again.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, Flags};
use korum_protocol::id::NodeId;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;

use super::assemble::integer;
use super::batch::Batch;
use super::caller::Caller;
use super::keyless::Asker;
use super::parts::Combine;
use super::route::{NOT_SERVED, Port, Route, route};
use crate::admin::stats::Counter;
use crate::command::pubsub;
use crate::env::Tick;
use crate::executor::worker_number;
use crate::net::forward::{Answer, FRAME_BYTES, ForwardError, REQUEST_HEADER_BYTES};
use crate::net::pubsub::{Message, Topic};
use crate::node::Node;
use crate::replication::effect::Effects;
use crate::store::database::split;
use crate::store::{Classes, Databases, Notice, Source};

/// How long a publisher waits for other nodes: as long as a node may be silent before it is marked down, and a little
/// more. What has not answered by then is not counted.
pub(super) const PEERS_WAIT: Duration = Duration::from_secs(1);
/// Pause before a node whose connection is not open, or takes no more, is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// A message of a batch that other nodes have not got yet.
pub(super) struct Published {
    pub command: usize,
    pub message: Message,
    /// Those who listen at this node have it.
    pub is_delivered: bool,
    /// The reply counts those at other nodes too.
    pub is_counted: bool,
}

/// Runs a command of the family that was opened last in `batch`.
pub(super) fn run(
    batch: &mut Batch,
    node: &Arc<Node>,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
) {
    let hub = &node.clients.hub;
    match pubsub::subscription(spec.id) {
        Some((topic, true)) => {
            if topic == Topic::Shard
                && caller.port == Port::Cluster
                && !is_here(batch, node, view, args, caller)
            {
                return;
            }
            let start = batch.out.mark();
            pubsub::subscribe(*args, topic, hub, asker.client, &mut batch.reply(caller.version));
            // A map that came in force meanwhile has not seen the subscription.
            let newer = node.view();
            let has_changed =
                topic == Topic::Shard && caller.port == Port::Cluster && newer.map.epoch != view.map.epoch;
            if has_changed && !matches!(route_of(&newer, node, args, caller), Route::Here(_)) {
                for name in args.tail(1).iter() {
                    hub.unsubscribe(asker.client, topic, name);
                }
                batch.out.truncate(start);
                is_here(batch, node, &newer, args, caller);
            }
        }
        Some((topic, false)) => {
            // In the reply, since what came before it stands before it, and nothing comes after it.
            let mut confirmations = BytesMut::new();
            let reply = &mut ReplyWriter::new(&mut confirmations, caller.version);
            pubsub::unsubscribe(*args, topic, hub, asker.client, reply);
            if !asker.session.is_executing {
                batch.take_messages(asker);
            }
            batch.out.extend_from_slice(&confirmations);
        }
        None => match spec.id {
            CommandId::Publish => batch.publish(node, view, false, args, caller),
            CommandId::SPublish => {
                if caller.port != Port::Cluster || is_here(batch, node, view, args, caller) {
                    batch.publish(node, view, true, args, caller);
                }
            }
            _ => pubsub::pubsub(spec, *args, hub, &mut batch.reply(caller.version)),
        },
    }
}

fn route_of(view: &View, node: &Node, args: &Args<'_>, caller: Caller) -> Route {
    let last =
        if args.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"spublish")) { 2 } else { args.len() };
    route(view, node.id(), caller.port, (1..last).map(|at| slot_of(&args[at])))
}

/// Whether this node serves the slot of these shard channels; else the reply says who does.
fn is_here(batch: &mut Batch, node: &Node, view: &View, args: &Args<'_>, caller: Caller) -> bool {
    let route = route_of(view, node, args, caller);
    let mut reply = batch.reply(caller.version);
    match route {
        Route::Here(_) => return true,
        Route::Moved(slot, primary) => reply.error(&node.moved(view, slot, primary)),
        Route::CrossSlot => reply.error(CROSS_SLOT),
        Route::Forward(..) | Route::Down(_) | Route::Elsewhere => reply.error(NOT_SERVED),
    }
    false
}

impl Batch {
    /// Publishes for the command opened last: here at once, if nothing before it is under way, and at other nodes when
    /// the batch is finished.
    fn publish(&mut self, node: &Node, view: &View, is_shard: bool, args: &Args<'_>, caller: Caller) {
        let has_others = caller.port != Port::Forwarded && others(node, view).next().is_some();
        let is_late = self.has_tasks();
        if !has_others && !is_late && !node.clients.hub.has_listeners(is_shard) {
            return self.reply(caller.version).integer(0);
        }
        let (channel, payload) = (self.means.source.keep(&args[1]), self.means.source.keep(&args[2]));
        let message = Message { is_shard, channel, payload };
        let count = if is_late { 0 } else { deliver(node, &message) };
        if !has_others && !is_late {
            return self.reply(caller.version).integer(count);
        }
        self.last().combine = Combine::Sum(count);
        let (command, is_counted) = (self.commands.len() - 1, caller.port == Port::Client);
        self.published.push(Published { command, message, is_delivered: !is_late, is_counted });
    }

    /// What waits for the client stands before the reply of the command opened last.
    pub(super) fn take_messages(&mut self, asker: &Asker<'_>) {
        if let Some(outbox) = asker.client.outbox() {
            outbox.take(usize::MAX, &mut self.out);
        }
    }

    /// Something was published that is not everywhere yet.
    #[must_use]
    pub fn has_published(&self) -> bool {
        !self.published.is_empty()
    }

    /// A subscription must not get what was published before it, and one that ends must get it: so the batch ends
    /// before such a command.
    #[must_use]
    pub fn ends_before(&self, spec: &CommandSpec) -> bool {
        self.has_published() && spec.flags.contains(Flags::PUBSUB) && pubsub::subscription(spec.id).is_some()
    }

    /// Adds what other nodes have counted.
    pub(super) fn count_receivers(&mut self, published: &[Published], counts: &[i64]) {
        for (it, count) in published.iter().zip(counts) {
            if let Combine::Sum(sum) = &mut self.commands[it.command].combine {
                *sum += count;
            }
        }
    }

    /// Runs a command of the family that another node has sent: for this node only.
    pub(super) fn run_told(
        &mut self,
        node: &Node,
        view: &View,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
    ) {
        match spec.id {
            CommandId::Publish => self.publish(node, view, false, args, caller),
            CommandId::SPublish => self.publish(node, view, true, args, caller),
            id if pubsub::subscription(id).is_some() => {
                self.reply(caller.version).error("ERR subscriptions are not forwarded");
            }
            _ => pubsub::pubsub(spec, *args, &node.clients.hub, &mut self.reply(caller.version)),
        }
    }
}

/// Hands a message to those who listen at this node; how many.
pub(super) fn deliver(node: &Node, message: &Message) -> i64 {
    let hub = &node.clients.hub;
    if !hub.has_listeners(message.is_shard) {
        return 0;
    }
    let delivered = hub.deliver(message, &node.live.pubsub_limits(), node.clock().now());
    if delivered.overruns > 0 {
        node.stats.of(worker_number()).add(Counter::OutputOverruns, delivered.overruns as u64);
    }
    delivered.receivers as i64
}

/// Hands over what was not yet, here and at all other nodes that are up. For each message, how many received it: at
/// other nodes if those are counted, and here if it was not delivered before.
///
/// Dropping it in between means that some nodes do not get the rest.
pub(super) async fn spread(node: &Node, published: &[Published]) -> Vec<i64> {
    let mut counts: Vec<i64> =
        published.iter().map(|it| if it.is_delivered { 0 } else { deliver(node, &it.message) }).collect();
    let until = node.clock().now() + PEERS_WAIT;
    let mut first = 0;
    while first < published.len() {
        let (body, count) = frame(&published[first..]);
        for answers in tell(node, &body, count, until).await {
            for (at, answer) in (first..).zip(answers) {
                if let Answer::Reply(reply) = answer
                    && published[at].is_counted
                {
                    counts[at] += integer(reply.copied()).unwrap_or(0);
                }
            }
        }
        first += count;
    }
    counts
}

/// Tells those who listen, here and at all other nodes, what a command has done to keys. To be called under the lock of
/// their partition, so that what happens to a key is told in its order. Waits for nobody: a node that is not reached
/// at this moment misses it.
#[inline]
pub fn announce(node: &Node, effects: &mut Effects, databases: &Databases) {
    if !effects.notices.is_empty() {
        announce_all(node, effects, databases);
    }
}

#[cold]
fn announce_all(node: &Node, effects: &mut Effects, databases: &Databases) {
    let (classes, notices) = effects.notices.take();
    let mut requests = Rope::new();
    for Notice { event, key: stored } in notices {
        let (room, key) = split(&stored);
        let database = databases.database(room);
        let channel = |kind: &str, end: &[u8]| {
            Bytes::from([format!("__{kind}@{database}__:").as_bytes(), end].concat())
        };
        let of_key = classes.contains(Classes::KEYSPACE).then(|| (channel("keyspace", key), event.into()));
        let of_event = classes
            .contains(Classes::KEYEVENT)
            .then(|| (channel("keyevent", event.as_bytes()), stored.slice_ref(key)));
        for (channel, payload) in of_key.into_iter().chain(of_event) {
            let message = Message { is_shard: false, channel, payload };
            deliver(node, &message);
            encode(&message, &mut requests);
        }
    }
    for (channel, payload) in effects.notices.take_published() {
        let message = Message { is_shard: false, channel, payload };
        deliver(node, &message);
        encode(&message, &mut requests);
    }
    node.forwards().tell_all(&requests);
}

/// The setting of which events are told.
pub const EVENTS: &str = "notify-keyspace-events";

/// Tells all other nodes, or one, which events are told: they tell those of the keys that they serve.
pub fn tell_events(node: &Node, peer: Option<NodeId>) {
    let value = node.live.text(EVENTS);
    let mut request = Rope::new();
    encode_header(b'*', 3, request.copied_mut());
    for word in [&b"EVENTS"[..], b"are", value.as_bytes()] {
        encode_header(b'$', word.len(), request.copied_mut());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    match peer {
        None => node.forwards().tell_all(&request),
        // A node that has started anew knows nothing of it; one that was told otherwise knows better.
        Some(peer) if !value.is_empty() => node.forwards().tell(peer, &request),
        Some(_) => {}
    }
}

/// Does what another node has told, which nobody answers. False if it means nothing.
pub fn take_told(node: &Node, args: &Args<'_>, source: &Source) -> bool {
    match (&args[0], args.len()) {
        (b"PUBLISH", 3) => {
            let (channel, payload) = (source.keep(&args[1]), source.keep(&args[2]));
            deliver(node, &Message { is_shard: false, channel, payload });
            true
        }
        // A value that this node refuses is none of another node's business.
        (b"EVENTS", 3) => {
            let _ = node.live.set(&[(EVENTS.as_bytes(), &args[2])]);
            true
        }
        _ => false,
    }
}

/// The requests of as many messages as fit in a frame, at least one; how many.
fn frame(published: &[Published]) -> (Rope, usize) {
    let mut body = Rope::new();
    let mut count = 0;
    for it in published {
        let message = &it.message;
        // More than the headers take.
        let size = message.channel.len() + message.payload.len() + 64;
        if count > 0 && body.len() + size > FRAME_BYTES - REQUEST_HEADER_BYTES {
            break;
        }
        encode(message, &mut body);
        count += 1;
    }
    (body, count)
}

/// Appends the request that publishes a message.
fn encode(message: &Message, out: &mut Rope) {
    let name: &'static [u8] = if message.is_shard { b"SPUBLISH" } else { b"PUBLISH" };
    encode_header(b'*', 3, out.copied_mut());
    for word in [&name.into(), &message.channel, &message.payload] {
        encode_header(b'$', word.len(), out.copied_mut());
        out.push(word.clone());
        out.extend_from_slice(b"\r\n");
    }
}

/// Other nodes that are up.
fn others<'v>(node: &Node, view: &'v View) -> impl Iterator<Item = NodeId> + use<'v> {
    let me = node.id();
    view.map.nodes.iter().filter(move |(id, record)| **id != me && record.is_up()).map(|(id, _)| *id)
}

/// Sends requests to all other nodes that are up; the answers of those that gave them in time. What is sent next
/// stands behind these everywhere.
async fn tell(node: &Node, requests: &Rope, count: usize, until: Tick) -> Vec<Vec<Answer>> {
    let caller = Caller { marks_access: false, ..Caller::plain(Port::Forwarded) };
    let mut open: Vec<NodeId> = others(node, &node.view()).collect();
    let mut gathered = Vec::with_capacity(open.len());
    loop {
        let send = |&peer: &NodeId| (peer, node.forwards().send(peer, caller.to_bytes(), requests, count));
        let sent: Vec<_> = open.iter().map(send).collect();
        open.clear();
        for (peer, pending) in sent {
            let left = until.since(node.clock().now());
            match tokio::time::timeout(left, pending.wait()).await {
                Ok(Ok(answers)) => gathered.push(answers),
                // It may come to be reached, or to be marked down.
                Ok(Err(ForwardError::NotSent)) => open.push(peer),
                Ok(Err(ForwardError::Unknown)) | Err(_) => {}
            }
        }
        if open.is_empty() || node.clock().now() >= until {
            return gathered;
        }
        node.changed_within(LOOK_AGAIN).await;
        let view = node.view();
        open.retain(|peer| view.map.nodes.get(peer).is_some_and(|record| record.is_up()));
    }
}

/// `PUBSUB …`: of this node on the cluster port, of all nodes on the client port.
pub(super) async fn ask(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    reply: &mut ReplyWriter<'_>,
) {
    let hub = &node.clients.hub;
    let is_local = caller.port != Port::Client || spec.id == CommandId::PubSubHelp;
    let is_too_many =
        matches!(spec.id, CommandId::PubSubChannels | CommandId::PubSubShardchannels) && args.len() > 3;
    if is_local || is_too_many {
        return pubsub::pubsub(spec, *args, hub, reply);
    }
    let mut request = Rope::new();
    encode_header(b'*', args.len(), request.copied_mut());
    for word in args.iter() {
        encode_header(b'$', word.len(), request.copied_mut());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    let mut mine = BytesMut::new();
    pubsub::pubsub(spec, *args, hub, &mut ReplyWriter::new(&mut mine, ProtocolVersion::Resp2));
    let told = tell(node, &request, 1, node.clock().now() + PEERS_WAIT).await;
    let mut replies = vec![mine];
    for answer in told.into_iter().flatten() {
        if let Answer::Reply(answer) = answer {
            let mut bytes = BytesMut::new();
            answer.copy_to(&mut bytes);
            replies.push(bytes);
        }
    }
    pubsub::combined(spec, *args, replies, reply);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};

    use super::*;

    #[test]
    fn messages_are_put_into_frames_in_order() {
        let published: Vec<Published> = [10usize, 200_000, 100_000, 5, 1 << 20, 7]
            .iter()
            .enumerate()
            .map(|(at, &size)| Published {
                command: at,
                message: Message {
                    is_shard: at == 3,
                    channel: Bytes::from(at.to_string()),
                    payload: vec![b'x'; size].into(),
                },
                is_delivered: true,
                is_counted: true,
            })
            .collect();
        let mut first = 0;
        let mut counts = Vec::new();
        while first < published.len() {
            let (body, count) = frame(&published[first..]);
            assert!(count == 1 || body.len() + REQUEST_HEADER_BYTES <= FRAME_BYTES);
            let bytes = body.into_bytes();
            let mut parser = RequestParser::new(RequestLimits::unlimited());
            let mut at = 0;
            for it in &published[first..first + count] {
                let Ok(Parsed::Request { consumed }) = parser.parse(&bytes[at..]) else {
                    panic!("a request")
                };
                let args = parser.args(&bytes[at..at + consumed]);
                assert_eq!(args.len(), 3);
                assert_eq!(&args[0] == b"SPUBLISH", it.message.is_shard);
                assert_eq!((&args[1], &args[2]), (&it.message.channel[..], &it.message.payload[..]));
                at += consumed;
            }
            assert_eq!(at, bytes.len());
            counts.push(count);
            first += count;
        }
        assert_eq!(counts, [2, 2, 1, 1]);
    }
}
