//! Databases: whose a stored key is.
//!
//! For: the form in which keys are stored, which tells their *room*; and which room the database of a number has.
//! Not here: which database a client has chosen (`net::session`), the keys of one command (`command::names`).
//!
//! ```text
//! stored key = key                 of room 0, unless it begins with FF
//!            | FF room key         of any other room, and of room 0 if the key begins with FF
//! ```
//! So the store, effects, streams and queues know no databases: keys of two of them are simply two keys. The slot is
//! that of the key alone: a key has one partition in all databases.

use std::borrow::Cow;
use std::sync::Arc;

use korum_protocol::map::{DATABASES_MAX, DatabaseOrder};

/// What a stored key begins with that tells its room.
pub const MARK: u8 = 0xFF;

/// Databases of a node that is told nothing else, as of Redis.
pub const DATABASES: u16 = 16;

/// The stored form of a key in a room.
#[must_use]
pub fn stored(room: u8, key: &[u8]) -> Cow<'_, [u8]> {
    if room == 0 && key.first() != Some(&MARK) {
        return Cow::Borrowed(key);
    }
    let mut stored = Vec::with_capacity(key.len() + 2);
    stored.extend([MARK, room]);
    stored.extend_from_slice(key);
    Cow::Owned(stored)
}

/// Room and key of a stored key.
#[must_use]
#[inline]
pub fn split(stored: &[u8]) -> (u8, &[u8]) {
    match stored {
        [MARK, room, key @ ..] => (*room, key),
        key => (0, key),
    }
}

/// Which databases there are, and which room each has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Databases {
    count: u16,
    /// `None`: nothing was ever swapped.
    order: Option<Arc<DatabaseOrder>>,
}

impl Default for Databases {
    fn default() -> Self {
        Self::new(DATABASES, DatabaseOrder::default())
    }
}

impl Databases {
    /// So many, in this order.
    #[must_use]
    pub fn new(count: u16, order: DatabaseOrder) -> Self {
        let order = (order != DatabaseOrder::default()).then(|| Arc::new(order));
        Self { count: count.clamp(1, DATABASES_MAX), order }
    }

    /// How often two of them were swapped.
    #[must_use]
    pub fn swaps(&self) -> u64 {
        self.order.as_ref().map_or(0, |order| order.swaps())
    }

    /// The room of a database.
    #[must_use]
    #[inline]
    pub fn room(&self, database: u8) -> u8 {
        self.order.as_ref().map_or(database, |order| order.room(database))
    }

    /// The database of a room.
    #[must_use]
    pub fn database(&self, room: u8) -> u8 {
        self.order.as_ref().map_or(room, |order| order.database(room))
    }

    /// The database of a number, if there is one.
    #[must_use]
    pub fn find(&self, number: i64) -> Option<u8> {
        u8::try_from(number).ok().filter(|&number| u16::from(number) < self.count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stored_key_tells_its_room_and_no_two_are_one(
            keys in prop::collection::vec((prop_oneof![Just(0), any::<u8>()], marked()), 2),
        ) {
            let stored_keys: Vec<_> = keys.iter().map(|(room, key)| stored(*room, key)).collect();
            for ((room, key), stored) in keys.iter().zip(&stored_keys) {
                prop_assert_eq!(split(stored), (*room, &key[..]));
                prop_assert!(stored.len() <= key.len() + 2);
            }
            prop_assert_eq!(keys[0] == keys[1], stored_keys[0] == stored_keys[1]);
        }
    }

    /// Keys that often look like stored ones.
    fn marked() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(MARK), Just(0), Just(1), any::<u8>()], 0..5)
    }

    #[test]
    fn keys_of_the_first_room_are_stored_as_they_are() {
        for key in [&b""[..], b"k", b"k\xff"] {
            assert!(matches!(stored(0, key), Cow::Borrowed(same) if same == key));
        }
        assert_eq!(stored(0, b"\xffk")[..], *b"\xff\x00\xffk");
        assert_eq!(stored(3, b"")[..], *b"\xff\x03");
    }

    #[test]
    fn numbers_lead_to_rooms_and_back() {
        let databases = Databases::new(4, DatabaseOrder::default().swapped(0, 3));
        let rooms: Vec<u8> = (0..4).map(|database| databases.room(database)).collect();
        assert_eq!((rooms, databases.swaps()), (vec![3, 1, 2, 0], 1));
        assert_eq!(databases.database(3), 0);
        assert_eq!(
            [-1, 0, 3, 4, 256].map(|number| databases.find(number)),
            [None, Some(0), Some(3), None, None]
        );
    }
}
