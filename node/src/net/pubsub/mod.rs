//! Who listens at this node, and handing messages to them.
//!
//! For: subscriptions of this node's clients, delivery of one message to all of them, shard channels whose slot
//! moves away.
//! Not here: commands (`command::pubsub`), other nodes (`dispatch::publish`), the queue of a client (`outbox`).
//!
//! A message is handed over under the registry's read lock, and subscriptions change under its write lock. So when a
//! subscription has ended, nothing of it comes any more, and who published something afterwards finds nobody.

pub mod registry;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use korum_protocol::id::NodeId;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{ProtocolVersion, ReplyWriter};

use super::clients::{Client, Flag};
use super::outbox::{Frame, Limits};
use super::session::PortKind;
use crate::env::Tick;

pub use registry::{Counts, Full, Registry, Topic};

/// Something that was published.
#[derive(Clone, Debug)]
pub struct Message {
    /// It is of a shard channel.
    pub is_shard: bool,
    /// Where.
    pub channel: Bytes,
    /// What.
    pub payload: Bytes,
}

/// What became of a message at this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivered {
    /// Those who got it, once for each subscription that matches.
    pub receivers: usize,
    /// Clients that are closed because they do not read.
    pub overruns: usize,
}

/// The subscriptions of a node's clients.
#[derive(Default)]
pub struct Hub {
    registry: RwLock<Registry<Arc<Client>>>,
    /// Channels and patterns, and shard channels, that anybody listens to: looked at without the lock.
    plain: AtomicUsize,
    shard: AtomicUsize,
}

impl Hub {
    fn read(&self) -> RwLockReadGuard<'_, Registry<Arc<Client>>> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Registry<Arc<Client>>> {
        self.registry.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, registry: &Registry<Arc<Client>>) {
        let plain = registry.len(Topic::Channel) + registry.len(Topic::Pattern);
        self.plain.store(plain, Ordering::SeqCst);
        self.shard.store(registry.len(Topic::Shard), Ordering::SeqCst);
    }

    /// Somebody listens to a channel or pattern, or to a shard channel: any.
    pub fn has_listeners(&self, is_shard: bool) -> bool {
        let count = if is_shard { &self.shard } else { &self.plain };
        count.load(Ordering::SeqCst) > 0
    }

    /// Subscribes a client; how many subscriptions it has then.
    ///
    /// # Errors
    /// When it has as many as it may have.
    pub fn subscribe(&self, client: &Arc<Client>, topic: Topic, name: &[u8]) -> Result<Counts, Full> {
        let mut registry = self.write();
        registry.add(client.id, client, topic, name)?;
        let counts = registry.counts(client.id);
        self.count(&registry);
        client.set_subscriptions(counts);
        Ok(counts)
    }

    /// Ends a subscription, if there is one; how many are left.
    pub fn unsubscribe(&self, client: &Client, topic: Topic, name: &[u8]) -> Counts {
        let mut registry = self.write();
        registry.remove(client.id, topic, name);
        let counts = registry.counts(client.id);
        self.count(&registry);
        client.set_subscriptions(counts);
        counts
    }

    /// Ends all subscriptions of a client.
    pub fn leave(&self, client: &Client) {
        if client.has_flag(Flag::Subscribed) {
            let mut registry = self.write();
            registry.leave(client.id);
            self.count(&registry);
            client.set_subscriptions(Counts::default());
        }
    }

    /// What a client has subscribed to.
    pub fn names(&self, client: &Client, topic: Topic) -> Vec<Bytes> {
        self.read().names(client.id, topic)
    }

    /// How many subscriptions a client has.
    pub fn counts(&self, client: &Client) -> Counts {
        self.read().counts(client.id)
    }

    /// The names that anybody listens to.
    pub fn active(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Bytes> {
        self.read().active(topic, pattern)
    }

    /// How many listen to exactly this.
    pub fn listeners(&self, topic: Topic, name: &[u8]) -> usize {
        self.read().count(topic, name)
    }

    /// How many channels, patterns or shard channels anybody listens to.
    pub fn len(&self, topic: Topic) -> usize {
        self.read().len(topic)
    }

    /// Hands a message to all who listen here. Never waits for any of them.
    pub fn deliver(&self, message: &Message, limits: &Limits, now: Tick) -> Delivered {
        let mut delivered = Delivered::default();
        if !self.has_listeners(message.is_shard) {
            return delivered;
        }
        let registry = self.read();
        let (topic, word): (_, &[u8]) =
            if message.is_shard { (Topic::Shard, b"smessage") } else { (Topic::Channel, b"message") };
        let plain = |reply: &mut ReplyWriter<'_>| {
            reply.push(3);
            reply.bulk(word);
            reply.bulk(&message.channel);
            reply.bulk_held(&message.payload);
        };
        hand_over(registry.listeners(topic, &message.channel), plain, limits, now, &mut delivered);
        if message.is_shard {
            return delivered;
        }
        for (pattern, listeners) in registry.matching(&message.channel) {
            let with_pattern = |reply: &mut ReplyWriter<'_>| {
                reply.push(4);
                reply.bulk(b"pmessage");
                reply.bulk(pattern);
                reply.bulk(&message.channel);
                reply.bulk_held(&message.payload);
            };
            hand_over(listeners, with_pattern, limits, now, &mut delivered);
        }
        delivered
    }

    /// A new map is in force: who listens through the cluster port to a shard channel that another node serves now is
    /// told so, as Redis Cluster does, and listens no more. On the client port channels work at any node.
    pub fn leave_moved(&self, view: &View, me: NodeId, limits: &Limits, now: Tick) -> Delivered {
        let mut delivered = Delivered::default();
        if !self.has_listeners(true) {
            return delivered;
        }
        let mut registry = self.write();
        let is_elsewhere = |channel: &[u8]| {
            let primary = view.row(view.partition_of_slot(slot_of(channel))).primary;
            primary.is_some_and(|primary| primary != me)
        };
        let moved: Vec<(Bytes, Arc<Client>)> = registry
            .each(Topic::Shard)
            .filter(|(channel, _, client)| client.port == PortKind::Cluster && is_elsewhere(channel))
            .map(|(channel, _, client)| (channel.clone(), Arc::clone(client)))
            .collect();
        for (channel, client) in moved {
            registry.remove(client.id, Topic::Shard, &channel);
            let counts = registry.counts(client.id);
            client.set_subscriptions(counts);
            let write = |reply: &mut ReplyWriter<'_>| {
                reply.push(3);
                reply.bulk(b"sunsubscribe");
                reply.bulk(&channel);
                reply.integer(counts.shown(Topic::Shard) as i64);
            };
            hand_over(std::iter::once(&client), write, limits, now, &mut delivered);
        }
        self.count(&registry);
        delivered
    }
}

/// Hands what `write` writes to clients: once written for each version of RESP among them.
fn hand_over<'c>(
    clients: impl Iterator<Item = &'c Arc<Client>>,
    write: impl Fn(&mut ReplyWriter<'_>),
    limits: &Limits,
    now: Tick,
    delivered: &mut Delivered,
) {
    let mut written: [Option<Frame>; 2] = [None, None];
    for client in clients {
        let version = client.version();
        let place = &mut written[usize::from(version == ProtocolVersion::Resp3)];
        let frame = place.get_or_insert_with(|| Frame::write(version, &write)).clone();
        delivered.receivers += 1;
        delivered.overruns += usize::from(client.push(frame, limits, now));
    }
}
