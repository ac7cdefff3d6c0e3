//! Which waiting commands of other nodes' clients have been served.
//!
//! For: a node that lost the connection on which it waited asks here whether the answer was lost with it.
//! Not here: waiting (`waiting`), asking (`dispatch::blocking`).
//!
//! A service belongs to the place in hash order at which something was taken, and goes with the content of that
//! place: as an effect beside what was taken, and, where the state of places is sent instead of effects (`stream`),
//! with that state. So a copy knows of a service if, and only if, it has what the service did: also one that was
//! repaired back, or that is being streamed at that moment. A client waits in one command at a time: at each place its
//! last one is all that is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::position::{HashPosition, HashRange};

/// Services that are kept, per partition. A node asks within about a second, as soon as its connection breaks; and
/// only a partition in which so many clients have waited ever keeps so many.
pub const SERVICES_MAX: usize = 16_384;

/// A waiting command of a client of another node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token {
    /// The client's node.
    pub node: u64,
    /// The client, as that node counts.
    pub client: u64,
    /// The command: a number by chance.
    pub number: u64,
}

/// A command that was served, and the place of the key that served it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// The place.
    pub place: HashPosition,
    /// Which command.
    pub token: Token,
}

/// The last command of each client that was served at each place, at most [`SERVICES_MAX`] in all.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// By node, client and place: the command, and its age.
    last: BTreeMap<(u64, u64, HashPosition), (u64, u64)>,
    /// By place, node and client.
    places: BTreeSet<(HashPosition, u64, u64)>,
    /// By age, the oldest first.
    ages: BTreeMap<u64, (u64, u64, HashPosition)>,
    newest: u64,
}

impl Served {
    /// This command has been served at `place`.
    pub fn note(&mut self, place: HashPosition, token: Token) {
        let key = (token.node, token.client, place);
        self.newest += 1;
        if let Some((_, age)) = self.last.insert(key, (token.number, self.newest)) {
            self.ages.remove(&age);
        }
        self.places.insert((place, token.node, token.client));
        self.ages.insert(self.newest, key);
        while self.ages.len() > SERVICES_MAX {
            let Some((_, oldest)) = self.ages.pop_first() else { break };
            self.last.remove(&oldest);
            self.places.remove(&(oldest.2, oldest.0, oldest.1));
        }
    }

    /// Has this command been served?
    #[must_use]
    pub fn has(&self, token: Token) -> bool {
        let of = |place| (token.node, token.client, place);
        let mut commands = self.last.range(of(HashPosition::START)..=of(HashPosition::END));
        commands.any(|(_, (number, _))| *number == token.number)
    }

    /// What was served at the places of `range`, in the order in which it was.
    #[must_use]
    pub fn within(&self, range: HashRange) -> Vec<Service> {
        let places = self.places.range((range.from, 0, 0)..(range.until, 0, 0));
        let mut found: Vec<(u64, Service)> = places.filter_map(|&place| self.service(place)).collect();
        found.sort_unstable_by_key(|(age, _)| *age);
        found.into_iter().map(|(_, service)| service).collect()
    }

    /// What was served at `places`, which are in order.
    #[must_use]
    pub fn at(&self, places: &[HashPosition]) -> Vec<Service> {
        if self.ages.is_empty() {
            return Vec::new();
        }
        let at = |&from: &HashPosition| self.within(HashRange { from, until: from.next() });
        places.iter().flat_map(at).collect()
    }

    fn service(&self, (place, node, client): (HashPosition, u64, u64)) -> Option<(u64, Service)> {
        let (number, age) = *self.last.get(&(node, client, place))?;
        Some((age, Service { place, token: Token { node, client, number } }))
    }

    /// What was served in `range` is exactly this.
    pub fn replace(&mut self, range: HashRange, services: &[Service]) {
        self.forget(range);
        services.iter().for_each(|service| self.note(service.place, service.token));
    }

    /// What was served at `places` is exactly this.
    pub fn replace_at(&mut self, places: &[HashPosition], services: &[Service]) {
        for &from in places {
            self.forget(HashRange { from, until: from.next() });
        }
        services.iter().for_each(|service| self.note(service.place, service.token));
    }

    fn forget(&mut self, range: HashRange) {
        let from = (range.from, 0, 0);
        while let Some(&place) = self.places.range(from..(range.until, 0, 0)).next() {
            self.places.remove(&place);
            if let Some((_, age)) = self.last.remove(&(place.1, place.2, place.0)) {
                self.ages.remove(&age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(place: u64) -> HashPosition {
        HashPosition::new(place)
    }

    fn token(client: u64, number: u64) -> Token {
        Token { node: 1, client, number }
    }

    #[test]
    fn the_last_command_of_each_client_is_known() {
        let mut served = Served::default();
        served.note(at(5), token(1, 10));
        served.note(at(5), token(2, 20));
        served.note(at(5), token(1, 11));
        assert!(!served.has(token(1, 10)) && served.has(token(1, 11)) && served.has(token(2, 20)));
        assert!(!served.has(Token { node: 2, client: 1, number: 11 }));
        for client in 3..3 + SERVICES_MAX as u64 {
            served.note(at(client % 7), token(client, 1));
        }
        assert!(!served.has(token(1, 11)) && !served.has(token(2, 20)) && served.has(token(3, 1)));
        assert_eq!((served.last.len(), served.places.len()), (SERVICES_MAX, SERVICES_MAX));
        assert_eq!(served.ages.len(), SERVICES_MAX);
    }

    #[test]
    fn what_was_served_goes_with_its_place() {
        let (mut served, mut copy) = (Served::default(), Served::default());
        served.note(at(9), token(1, 10));
        served.note(at(3), token(2, 20));
        served.note(at(4), token(1, 11));
        // What the copy has too much at a place goes, and elsewhere stays.
        copy.note(at(3), token(7, 70));
        copy.note(at(8), token(7, 71));
        let range = HashRange { from: at(3), until: at(5) };
        let within = served.within(range);
        assert_eq!(within.iter().map(|service| service.token.number).collect::<Vec<_>>(), [20, 11]);
        copy.replace(range, &within);
        assert!(copy.has(token(2, 20)) && copy.has(token(1, 11)) && !copy.has(token(1, 10)));
        assert!(!copy.has(token(7, 70)) && copy.has(token(7, 71)));
        copy.replace_at(&[at(8), at(9)], &served.at(&[at(8), at(9)]));
        assert!(copy.has(token(1, 10)) && !copy.has(token(7, 71)));
        assert_eq!(copy.within(HashRange::ALL).len(), 3);
    }
}
