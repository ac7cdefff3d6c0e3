//! Who listens to what; pure.
//!
//! For: subscriptions of clients to channels, patterns and shard channels, looked at from both sides.
//! Not here: messages and how they are handed over (`super`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use korum_protocol::command::glob;

/// Subscriptions of one client.
const SUBSCRIPTIONS_MAX: usize = 1 << 20;
/// Bytes of the names that one client subscribes to.
const NAMES_BYTES_MAX: usize = 64 << 20;

/// What can be subscribed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    /// A channel, by its name.
    Channel = 0,
    /// Channels whose names match a pattern.
    Pattern = 1,
    /// A shard channel, which belongs to a slot.
    Shard = 2,
}

impl Topic {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];
}

/// How many subscriptions a client has, by [`Topic`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts(pub [usize; 3]);

impl Counts {
    /// The number that a confirmation names: channels and patterns together, shard channels apart.
    #[must_use]
    pub fn shown(self, topic: Topic) -> usize {
        match topic {
            Topic::Channel | Topic::Pattern => self.0[0] + self.0[1],
            Topic::Shard => self.0[2],
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(self) -> usize {
        self.0.iter().sum()
    }
}

/// Too many subscriptions, or names that are too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// The subscriptions of all clients; `S` is how a client is reached.
#[derive(Debug)]
pub struct Registry<S> {
    topics: [HashMap<Bytes, BTreeMap<u64, S>>; 3],
    clients: HashMap<u64, Own>,
}

/// What one client has subscribed to.
#[derive(Debug, Default)]
struct Own {
    names: [BTreeSet<Bytes>; 3],
    bytes: usize,
}

impl Own {
    fn counts(&self) -> Counts {
        Counts([0, 1, 2].map(|topic| self.names[topic].len()))
    }
}

impl<S> Default for Registry<S> {
    fn default() -> Self {
        Self { topics: Default::default(), clients: HashMap::new() }
    }
}

impl<S: Clone> Registry<S> {
    /// Subscribes a client, if it is not yet subscribed.
    ///
    /// # Errors
    /// When it has as much as a client may have.
    pub fn add(&mut self, id: u64, client: &S, topic: Topic, name: &[u8]) -> Result<(), Full> {
        let own = self.clients.get(&id);
        if own.is_some_and(|own| own.names[topic as usize].contains(name)) {
            return Ok(());
        }
        let (count, bytes) = own.map_or((0, 0), |own| (own.counts().total(), own.bytes));
        if count >= SUBSCRIPTIONS_MAX || bytes + name.len() > NAMES_BYTES_MAX {
            return Err(Full);
        }
        // One copy of the name for all who listen to it.
        let topics = &mut self.topics[topic as usize];
        let known = topics.get_key_value(name).map(|(name, _)| name.clone());
        let name = known.unwrap_or_else(|| Bytes::copy_from_slice(name));
        topics.entry(name.clone()).or_default().insert(id, client.clone());
        let own = self.clients.entry(id).or_default();
        own.bytes += name.len();
        own.names[topic as usize].insert(name);
        Ok(())
    }

    /// Ends a subscription; whether there was one.
    pub fn remove(&mut self, id: u64, topic: Topic, name: &[u8]) -> bool {
        let Some(own) = self.clients.get_mut(&id) else { return false };
        if !own.names[topic as usize].remove(name) {
            return false;
        }
        own.bytes -= name.len();
        if own.counts().total() == 0 {
            self.clients.remove(&id);
        }
        self.forget(id, topic, name);
        true
    }

    fn forget(&mut self, id: u64, topic: Topic, name: &[u8]) {
        let topics = &mut self.topics[topic as usize];
        if let Some(listeners) = topics.get_mut(name) {
            listeners.remove(&id);
            if listeners.is_empty() {
                topics.remove(name);
            }
        }
    }

    /// Ends all subscriptions of a client.
    pub fn leave(&mut self, id: u64) {
        let Some(own) = self.clients.remove(&id) else { return };
        for topic in Topic::ALL {
            own.names[topic as usize].iter().for_each(|name| self.forget(id, topic, name));
        }
    }
}

impl<S> Registry<S> {
    /// What a client has subscribed to, by name.
    #[must_use]
    pub fn names(&self, id: u64, topic: Topic) -> Vec<Bytes> {
        self.clients.get(&id).map_or_else(Vec::new, |own| own.names[topic as usize].iter().cloned().collect())
    }

    /// How many subscriptions a client has.
    #[must_use]
    pub fn counts(&self, id: u64) -> Counts {
        self.clients.get(&id).map(Own::counts).unwrap_or_default()
    }

    /// Who listens to exactly this.
    pub fn listeners(&self, topic: Topic, name: &[u8]) -> impl Iterator<Item = &S> {
        self.topics[topic as usize].get(name).into_iter().flat_map(BTreeMap::values)
    }

    /// The patterns that match a channel, each with its listeners.
    pub fn matching<'r>(
        &'r self,
        channel: &'r [u8],
    ) -> impl Iterator<Item = (&'r Bytes, impl Iterator<Item = &'r S>)> {
        let patterns = self.topics[Topic::Pattern as usize].iter();
        patterns
            .filter(|(pattern, _)| glob::matches(pattern, channel))
            .map(|(pattern, it)| (pattern, it.values()))
    }

    /// How many listen to exactly this.
    #[must_use]
    pub fn count(&self, topic: Topic, name: &[u8]) -> usize {
        self.topics[topic as usize].get(name).map_or(0, BTreeMap::len)
    }

    /// What anybody listens to, by number.
    #[must_use]
    pub fn len(&self, topic: Topic) -> usize {
        self.topics[topic as usize].len()
    }

    /// The names that anybody listens to, if they match.
    #[must_use]
    pub fn active(&self, topic: Topic, pattern: Option<&[u8]>) -> Vec<Bytes> {
        let is_wanted = |name: &&Bytes| pattern.is_none_or(|pattern| glob::matches(pattern, name));
        self.topics[topic as usize].keys().filter(is_wanted).cloned().collect()
    }

    /// All who listen to a kind, with what they listen to.
    pub fn each(&self, topic: Topic) -> impl Iterator<Item = (&Bytes, u64, &S)> {
        let topics = self.topics[topic as usize].iter();
        topics.flat_map(|(name, listeners)| listeners.iter().map(move |(id, client)| (name, *id, client)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Add(u64, Topic, usize),
        Remove(u64, Topic, usize),
        Leave(u64),
    }

    const NAMES: [&str; 6] = ["a", "ab", "b", "a*", "*", "?b"];

    fn step() -> impl Strategy<Value = Step> {
        let topic = proptest::sample::select(Topic::ALL.to_vec());
        let place = (0..4u64, topic, 0..NAMES.len());
        prop_oneof![
            4 => place.clone().prop_map(|(id, topic, name)| Step::Add(id, topic, name)),
            3 => place.prop_map(|(id, topic, name)| Step::Remove(id, topic, name)),
            1 => (0..4u64).prop_map(Step::Leave),
        ]
    }

    proptest! {
        /// The model is a plain set of who listens to what.
        #[test]
        fn both_sides_agree_with_a_set(steps in proptest::collection::vec(step(), 0..80)) {
            let mut registry = Registry::default();
            let mut model: BTreeSet<(u64, usize, &str)> = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Add(id, topic, name) => {
                        prop_assert_eq!(registry.add(id, &id, topic, NAMES[name].as_bytes()), Ok(()));
                        model.insert((id, topic as usize, NAMES[name]));
                    }
                    Step::Remove(id, topic, name) => {
                        let was_there = model.remove(&(id, topic as usize, NAMES[name]));
                        prop_assert_eq!(registry.remove(id, topic, NAMES[name].as_bytes()), was_there);
                    }
                    Step::Leave(id) => {
                        registry.leave(id);
                        model.retain(|it| it.0 != id);
                    }
                }
                for topic in Topic::ALL {
                    for id in 0..4 {
                        let mine = model.iter().filter(|it| it.0 == id && it.1 == topic as usize).count();
                        prop_assert_eq!(registry.counts(id).0[topic as usize], mine);
                        prop_assert_eq!(registry.names(id, topic).len(), mine);
                    }
                    for name in NAMES {
                        let ids = model.iter().filter(|it| it.1 == topic as usize && it.2 == name);
                        let ids: Vec<u64> = ids.map(|it| it.0).collect();
                        prop_assert_eq!(registry.count(topic, name.as_bytes()), ids.len());
                        let found: Vec<u64> = registry.listeners(topic, name.as_bytes()).copied().collect();
                        prop_assert_eq!(found, ids);
                    }
                    let names: BTreeSet<&str> =
                        model.iter().filter(|it| it.1 == topic as usize).map(|it| it.2).collect();
                    prop_assert_eq!(registry.len(topic), names.len());
                    prop_assert_eq!(registry.active(topic, None).len(), names.len());
                }
                let matching: usize = registry.matching(b"ab").map(|(_, listeners)| listeners.count()).sum();
                let expected = model.iter().filter(|it| it.1 == 1 && ["ab", "a*", "*", "?b"].contains(&it.2)).count();
                prop_assert_eq!(matching, expected);
            }
            // Nothing is left behind.
            (0..4).for_each(|id| registry.leave(id));
            prop_assert!(registry.clients.is_empty() && Topic::ALL.iter().all(|&topic| registry.len(topic) == 0));
        }
    }

    #[test]
    fn names_of_one_client_are_bounded() {
        let mut registry = Registry::default();
        let long = vec![b'x'; NAMES_BYTES_MAX - 1];
        assert_eq!(registry.add(1, &(), Topic::Channel, &long), Ok(()));
        assert_eq!(registry.add(1, &(), Topic::Shard, b"xy"), Err(Full));
        assert_eq!(registry.add(1, &(), Topic::Shard, b"x"), Ok(()));
        assert_eq!(registry.add(2, &(), Topic::Shard, b"xy"), Ok(()));
        assert!(registry.remove(1, Topic::Channel, &long));
        assert_eq!(registry.add(1, &(), Topic::Shard, b"xy"), Ok(()));
    }
}
