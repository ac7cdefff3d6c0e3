//! Who waits for something to come to a key.
//!
//! For: the order among those who wait, by key and by what they want.
//! Not here: who they are and what is done with them (`dispatch::blocking`).
//!
//! Pure. One who waits for several keys stands in the queue of each, with one number: numbers grow, so all queues
//! have the order in which they came.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::position::HashPosition;
use super::value::ValueRef;

/// The number of one who waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticket(u64);

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Wanted {
    /// An item of a list.
    ListItem,
    /// A member of a sorted set.
    Member,
    /// A new entry of a stream.
    Entry,
    /// A new entry of a stream for a group, and also that the stream, and so the group, is gone.
    GroupEntry,
}

impl Wanted {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::ListItem, Self::Member, Self::Entry, Self::GroupEntry];

    /// Is it there, in the value of a key?
    #[must_use]
    pub fn is_met(self, value: Option<ValueRef<'_>>) -> bool {
        match (self, value) {
            (Self::ListItem, Some(ValueRef::List(_)))
            | (Self::Member, Some(ValueRef::SortedSet(_)))
            | (Self::Entry, Some(ValueRef::Stream(_)))
            | (Self::GroupEntry, _) => true,
            (Self::ListItem | Self::Member | Self::Entry, _) => false,
        }
    }
}

#[derive(Debug)]
struct Place<T> {
    wanted: Wanted,
    keys: SmallVec<[HashPosition; 1]>,
    who: T,
}

/// All who wait in one partition.
#[derive(Debug)]
pub struct Waiting<T> {
    last: Ticket,
    places: BTreeMap<Ticket, Place<T>>,
    queues: BTreeSet<(HashPosition, Wanted, Ticket)>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { last: Ticket::default(), places: BTreeMap::new(), queues: BTreeSet::new() }
    }
}

impl<T> Waiting<T> {
    /// Nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Somebody new, behind all others in the queues of these keys.
    pub fn park(&mut self, keys: impl IntoIterator<Item = HashPosition>, wanted: Wanted, who: T) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        let keys: SmallVec<[HashPosition; 1]> = keys.into_iter().collect();
        self.queues.extend(keys.iter().map(|&key| (key, wanted, self.last)));
        self.places.insert(self.last, Place { wanted, keys, who });
        self.last
    }

    /// Takes somebody out of all queues.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let place = self.places.remove(&ticket)?;
        for &key in &place.keys {
            self.queues.remove(&(key, place.wanted, ticket));
        }
        Some(place.who)
    }

    /// Who this is.
    #[must_use]
    pub fn get(&self, ticket: Ticket) -> Option<&T> {
        self.places.get(&ticket).map(|place| &place.who)
    }

    /// The first behind `after` in a queue.
    #[must_use]
    pub fn next(&self, key: HashPosition, wanted: Wanted, after: Ticket) -> Option<Ticket> {
        let from = (key, wanted, Ticket(after.0 + 1));
        let (found, kind, ticket) = *self.queues.range(from..).next()?;
        ((found, kind) == (key, wanted)).then_some(ticket)
    }

    /// The first of whom this is true.
    pub fn find(&self, mut is_it: impl FnMut(&T) -> bool) -> Option<Ticket> {
        self.places.iter().find(|(_, place)| is_it(&place.who)).map(|(ticket, _)| *ticket)
    }

    /// Sends everybody away.
    pub fn clear(&mut self) {
        self.queues.clear();
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Park(Vec<u64>, usize),
        Remove(usize),
        Serve(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (proptest::collection::vec(0..4u64, 1..4), 0..4usize).prop_map(|(keys, kind)| Step::Park(keys, kind)),
            1 => (0..20usize).prop_map(Step::Remove),
            2 => (0..4u64, 0..4usize).prop_map(|(key, kind)| Step::Serve(key, kind)),
        ]
    }

    proptest! {
        #[test]
        fn every_queue_has_the_order_in_which_they_came(steps in proptest::collection::vec(step(), 1..80)) {
            let mut waiting = Waiting::default();
            let mut model: Vec<(Ticket, Vec<u64>, usize, usize)> = Vec::new();
            for (name, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Park(keys, kind) => {
                        let positions = keys.iter().map(|&key| HashPosition::new(key));
                        let ticket = waiting.park(positions, Wanted::ALL[kind], name);
                        model.push((ticket, keys, kind, name));
                    }
                    Step::Remove(at) if at < model.len() => {
                        let (ticket, _, _, name) = model.remove(at);
                        prop_assert_eq!(waiting.remove(ticket), Some(name));
                        prop_assert_eq!(waiting.remove(ticket), None);
                    }
                    Step::Remove(_) => {}
                    Step::Serve(key, kind) => {
                        let position = HashPosition::new(key);
                        let first = waiting.next(position, Wanted::ALL[kind], Ticket::default());
                        let at = model.iter().position(|place| place.1.contains(&key) && place.2 == kind);
                        prop_assert_eq!(first, at.map(|at| model[at].0));
                        if let Some(at) = at {
                            let (ticket, _, _, name) = model.remove(at);
                            prop_assert_eq!(waiting.remove(ticket), Some(name));
                        }
                    }
                }
                prop_assert_eq!(waiting.len(), model.len());
                for key in 0..4 {
                    for kind in 0..4 {
                        let mut found = Vec::new();
                        let mut at = Ticket::default();
                        while let Some(next) = waiting.next(HashPosition::new(key), Wanted::ALL[kind], at) {
                            found.push(next);
                            at = next;
                        }
                        let expected: Vec<Ticket> = model
                            .iter()
                            .filter(|place| place.1.contains(&key) && place.2 == kind)
                            .map(|place| place.0)
                            .collect();
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }
}
