//! Publish and subscribe, as far as one node goes: who listens here.
//!
//! For: `(P|S)SUBSCRIBE (P|S)UNSUBSCRIBE`, what `PUBSUB` answers for this node, and what a client that listens may do.
//! Not here: `PUBLISH`, `SPUBLISH` and other nodes (`dispatch::publish`), the subscriptions (`net::pubsub`).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::BytesMut;
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::resp::{Args, ProtocolVersion, Reply, ReplyDecoder, ReplyWriter};

use super::subcommand;
use crate::net::clients::{Client, Flag};
use crate::net::pubsub::{Counts, Hub, Topic};

const FULL: &str = "ERR too many subscriptions on this connection; use patterns, or several connections";

/// Why a client that listens may not run a command: in RESP2 it could not tell replies from messages.
#[must_use]
pub fn refusal(spec: &CommandSpec, client: &Client, version: ProtocolVersion) -> Option<String> {
    if version == ProtocolVersion::Resp3 || !client.has_flag(Flag::Subscribed) {
        return None;
    }
    let is_allowed = matches!(
        spec.id,
        CommandId::Subscribe
            | CommandId::Unsubscribe
            | CommandId::PSubscribe
            | CommandId::PUnsubscribe
            | CommandId::SSubscribe
            | CommandId::SUnsubscribe
            | CommandId::Ping
            | CommandId::Quit
            | CommandId::Reset
    );
    let text = "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";
    (!is_allowed).then(|| format!("ERR Can't execute '{}': {text}", spec.full_name))
}

/// What a command subscribes to or stops listening to; `None` if it does neither.
#[must_use]
pub fn subscription(id: CommandId) -> Option<(Topic, bool)> {
    match id {
        CommandId::Subscribe => Some((Topic::Channel, true)),
        CommandId::PSubscribe => Some((Topic::Pattern, true)),
        CommandId::SSubscribe => Some((Topic::Shard, true)),
        CommandId::Unsubscribe => Some((Topic::Channel, false)),
        CommandId::PUnsubscribe => Some((Topic::Pattern, false)),
        CommandId::SUnsubscribe => Some((Topic::Shard, false)),
        _ => None,
    }
}

/// `SUBSCRIBE name …` and its kin: one confirmation for each name.
pub fn subscribe(args: Args<'_>, topic: Topic, hub: &Hub, me: &Arc<Client>, reply: &mut ReplyWriter<'_>) {
    let word = match topic {
        Topic::Channel => "subscribe",
        Topic::Pattern => "psubscribe",
        Topic::Shard => "ssubscribe",
    };
    for name in args.tail(1).iter() {
        match hub.subscribe(me, topic, name) {
            Ok(counts) => confirm(word, topic, Some(name), counts, reply),
            Err(_) => return reply.error(FULL),
        }
    }
}

/// `UNSUBSCRIBE [name …]` and its kin: one confirmation for each name, or for each subscription of the kind, at
/// least one.
pub fn unsubscribe(args: Args<'_>, topic: Topic, hub: &Hub, me: &Client, reply: &mut ReplyWriter<'_>) {
    let word = match topic {
        Topic::Channel => "unsubscribe",
        Topic::Pattern => "punsubscribe",
        Topic::Shard => "sunsubscribe",
    };
    if args.len() > 1 {
        for name in args.tail(1).iter() {
            let counts = hub.unsubscribe(me, topic, name);
            confirm(word, topic, Some(name), counts, reply);
        }
        return;
    }
    let names = hub.names(me, topic);
    if names.is_empty() {
        confirm(word, topic, None, hub.counts(me), reply);
    }
    for name in names {
        let counts = hub.unsubscribe(me, topic, &name);
        confirm(word, topic, Some(&name), counts, reply);
    }
}

fn confirm(word: &str, topic: Topic, name: Option<&[u8]>, counts: Counts, reply: &mut ReplyWriter<'_>) {
    reply.push(3);
    reply.bulk(word.as_bytes());
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(counts.shown(topic) as i64);
}

/// `PING [message]` of a client that listens, in RESP2: in the form of a message.
pub fn ping(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    if args.len() > 2 {
        return subcommand::wrong_arity("ping", reply);
    }
    reply.array(2);
    reply.bulk(b"pong");
    reply.bulk(args.get(1).unwrap_or_default());
}

/// `PUBSUB CHANNELS|NUMSUB|NUMPAT|SHARDCHANNELS|SHARDNUMSUB|HELP`, of this node.
pub fn pubsub(spec: &CommandSpec, args: Args<'_>, hub: &Hub, reply: &mut ReplyWriter<'_>) {
    match spec.id {
        CommandId::PubSubChannels | CommandId::PubSubShardchannels => {
            if args.len() > 3 {
                return too_many(args, reply);
            }
            let names = hub.active(topic_of(spec.id), args.get(2));
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name));
        }
        CommandId::PubSubNumsub | CommandId::PubSubShardnumsub => {
            reply.array(2 * args.tail(2).len());
            for name in args.tail(2).iter() {
                reply.bulk(name);
                reply.integer(hub.listeners(topic_of(spec.id), name) as i64);
            }
        }
        CommandId::PubSubNumpat => reply.integer(hub.len(Topic::Pattern) as i64),
        CommandId::PubSubHelp => subcommand::help("PUBSUB", HELP, reply),
        _ => subcommand::unknown("PUBSUB", args, reply),
    }
}

/// What several nodes have answered to the same `PUBSUB …`, in RESP2, as one reply: names once each, numbers added up.
pub fn combined(spec: &CommandSpec, args: Args<'_>, replies: Vec<BytesMut>, reply: &mut ReplyWriter<'_>) {
    let decoded =
        replies.into_iter().filter_map(|mut bytes| ReplyDecoder::new().decode(&mut bytes).ok().flatten());
    match spec.id {
        CommandId::PubSubChannels | CommandId::PubSubShardchannels => {
            let mut names = BTreeSet::new();
            for array in decoded {
                names.extend(items(&array).iter().filter_map(|name| name.as_bytes().cloned()));
            }
            reply.array(names.len());
            names.iter().for_each(|name| reply.bulk(name));
        }
        CommandId::PubSubNumsub | CommandId::PubSubShardnumsub => {
            let mut sums = vec![0; args.tail(2).len()];
            for array in decoded {
                let numbers = items(&array).iter().skip(1).step_by(2);
                sums.iter_mut().zip(numbers).for_each(|(sum, it)| *sum += it.as_integer().unwrap_or(0));
            }
            reply.array(2 * sums.len());
            for (name, sum) in args.tail(2).iter().zip(sums) {
                reply.bulk(name);
                reply.integer(sum);
            }
        }
        _ => reply.integer(decoded.filter_map(|number| number.as_integer()).sum()),
    }
}

fn items(reply: &Reply) -> &[Reply] {
    if let Reply::Array(items) = reply { items } else { &[] }
}

/// The kind of channels that a subcommand of `PUBSUB` is about.
fn topic_of(id: CommandId) -> Topic {
    match id {
        CommandId::PubSubShardchannels | CommandId::PubSubShardnumsub => Topic::Shard,
        _ => Topic::Channel,
    }
}

/// Redis counts these arguments itself.
fn too_many(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let given = args.get(1).unwrap_or_default();
    let given = String::from_utf8_lossy(&given[..given.len().min(128)]);
    reply.error(&format!(
        "ERR unknown subcommand or wrong number of arguments for '{given}'. Try PUBSUB HELP."
    ));
}

const HELP: &[&str] = &[
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
];

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use korum_protocol::command::resolve;
    use korum_protocol::resp::ProtocolVersion::{Resp2, Resp3};
    use korum_protocol::rope::Rope;

    use super::*;
    use crate::command::subcommand::testing::answer;
    use crate::env::Tick;
    use crate::net::clients::{Place, Registry};
    use crate::net::outbox::Limits;
    use crate::net::pubsub::{Delivered, Message};
    use crate::net::session::PortKind;

    struct World {
        registry: Arc<Registry>,
        places: Vec<Place>,
    }

    impl World {
        fn new() -> Self {
            let registry = Arc::new(Registry::default());
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            let enter = |_| registry.enter(address, address, PortKind::Client, Tick(0), 9).unwrap();
            Self { places: (0..2).map(enter).collect(), registry }
        }

        /// What a client is answered, with `|` for line ends.
        fn ask(&self, who: usize, line: &str) -> String {
            let (hub, me) = (&self.registry.hub, &self.places[who].client);
            let text = answer(line, me.version(), |args, reply| {
                let spec = resolve(&args).expect("known");
                match subscription(spec.id) {
                    Some((topic, true)) => subscribe(args, topic, hub, me, reply),
                    Some((topic, false)) => unsubscribe(args, topic, hub, me, reply),
                    None if spec.id == CommandId::Ping => ping(args, reply),
                    None => pubsub(spec, args, hub, reply),
                }
            });
            text.replace("\r\n", "|")
        }

        fn publish(&self, is_shard: bool, channel: &str, limits: &Limits) -> Delivered {
            let channel = Bytes::copy_from_slice(channel.as_bytes());
            let message = Message { is_shard, channel, payload: Bytes::from_static(b"hi") };
            self.registry.hub.deliver(&message, limits, Tick(0))
        }

        fn messages(&self, who: usize) -> String {
            let mut out = Rope::new();
            if let Some(outbox) = self.places[who].client.outbox() {
                outbox.take(usize::MAX, &mut out);
            }
            String::from_utf8(out.copied().to_vec()).unwrap().replace("\r\n", "|")
        }
    }

    #[test]
    fn confirmations_are_those_of_redis() {
        let world = World::new();
        for (line, expected) in [
            ("unsubscribe", "*3|$11|unsubscribe|$-1|:0|"),
            ("subscribe a b a", "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|*3|$9|subscribe|$1|a|:2|"),
            ("psubscribe a*", "*3|$10|psubscribe|$2|a*|:3|"),
            ("ssubscribe s", "*3|$10|ssubscribe|$1|s|:1|"),
            ("punsubscribe zz", "*3|$12|punsubscribe|$2|zz|:3|"),
            ("unsubscribe", "*3|$11|unsubscribe|$1|a|:2|*3|$11|unsubscribe|$1|b|:1|"),
            ("punsubscribe", "*3|$12|punsubscribe|$2|a*|:0|"),
            ("sunsubscribe", "*3|$12|sunsubscribe|$1|s|:0|"),
            ("sunsubscribe", "*3|$12|sunsubscribe|$-1|:0|"),
            ("ping", "*2|$4|pong|$0||"),
            ("ping hi", "*2|$4|pong|$2|hi|"),
        ] {
            assert_eq!(world.ask(0, line), expected, "{line}");
        }
        world.places[0].client.set_version(Resp3);
        assert_eq!(world.ask(0, "subscribe a"), ">3|$9|subscribe|$1|a|:1|");
        world.ask(0, "unsubscribe");
        assert_eq!(world.ask(0, "unsubscribe"), ">3|$11|unsubscribe|_|:0|");
    }

    #[test]
    fn messages_reach_each_matching_subscription_once_in_its_protocol() {
        let world = World::new();
        world.places[1].client.set_version(Resp3);
        world.ask(0, "subscribe ab");
        world.ask(1, "psubscribe a* ?b x");
        world.ask(1, "ssubscribe ab");
        assert_eq!(world.publish(false, "ab", &Limits::default()).receivers, 3);
        assert_eq!(world.publish(true, "ab", &Limits::default()).receivers, 1);
        assert_eq!(world.publish(false, "no", &Limits::default()).receivers, 0);
        assert_eq!(world.messages(0), "*3|$7|message|$2|ab|$2|hi|");
        let got = world.messages(1);
        assert!(got.contains(">4|$8|pmessage|$2|a*|$2|ab|$2|hi|"), "{got}");
        assert!(got.contains(">4|$8|pmessage|$2|?b|$2|ab|$2|hi|"), "{got}");
        assert!(got.ends_with(">3|$8|smessage|$2|ab|$2|hi|"), "{got}");
        world.ask(0, "unsubscribe ab");
        assert_eq!(world.publish(false, "ab", &Limits::default()).receivers, 2);
        assert_eq!(world.messages(0), "");
    }

    #[test]
    fn pubsub_tells_who_listens() {
        let world = World::new();
        world.ask(0, "subscribe a b");
        world.ask(1, "subscribe a");
        world.ask(1, "psubscribe a* b*");
        world.ask(1, "ssubscribe s");
        for (line, expected) in [
            ("pubsub channels a*", "*1|$1|a|"),
            ("pubsub channels c*", "*0|"),
            ("pubsub numsub a b c", "*6|$1|a|:2|$1|b|:1|$1|c|:0|"),
            ("pubsub numsub", "*0|"),
            ("pubsub numpat", ":2|"),
            ("pubsub shardchannels", "*1|$1|s|"),
            ("pubsub shardnumsub s a", "*4|$1|s|:1|$1|a|:0|"),
            (
                "pubsub channels a b",
                "-ERR unknown subcommand or wrong number of arguments for 'channels'. Try PUBSUB HELP.|",
            ),
        ] {
            assert_eq!(world.ask(0, line), expected, "{line}");
        }
        assert!(world.ask(0, "pubsub help").starts_with("*14|+PUBSUB <subcommand>"));
    }

    #[test]
    fn who_listens_may_do_little_in_resp2() {
        let world = World::new();
        let me = &world.places[0].client;
        let spec = |name: &str| korum_protocol::command::lookup(name.as_bytes()).expect("known");
        assert_eq!(refusal(spec("get"), me, Resp2), None);
        world.ask(0, "ssubscribe s");
        let text = "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
                    this context";
        assert_eq!(refusal(spec("get"), me, Resp2).as_deref(), Some(text));
        assert_eq!(refusal(spec("get"), me, Resp3), None);
        for name in ["subscribe", "punsubscribe", "ping", "quit", "reset"] {
            assert_eq!(refusal(spec(name), me, Resp2), None, "{name}");
        }
    }

    #[test]
    fn who_does_not_read_is_closed_and_others_are_not() {
        let world = World::new();
        let limits = Limits { hard: 500, ..Limits::default() };
        world.ask(0, "subscribe a");
        world.ask(1, "subscribe a");
        let mut overruns = 0;
        for _ in 0..20 {
            overruns += world.publish(false, "a", &limits).overruns;
            world.messages(1);
        }
        assert_eq!(overruns, 1);
        assert!(world.places[0].client.is_killed() && !world.places[1].client.is_killed());
        assert!(world.places[0].client.line(Tick(0)).contains(" sub=1 psub=0 ssub=0 "));
    }

    #[test]
    fn who_goes_listens_no_more() {
        let mut world = World::new();
        world.ask(0, "subscribe a");
        world.ask(0, "psubscribe *");
        world.ask(0, "ssubscribe a");
        assert!(world.registry.hub.has_listeners(true) && world.registry.hub.has_listeners(false));
        world.places.remove(0);
        assert!(!world.registry.hub.has_listeners(true) && !world.registry.hub.has_listeners(false));
    }
}
