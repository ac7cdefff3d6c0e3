//! Which database stands behind which number.
//!
//! For: `SWAPDB`: clients number the databases, keys are stored in *rooms*, and a swap changes which room a number
//! leads to, so that no key moves. It is a setting of the map: all nodes agree on it, in one order.
//! Not here: how a stored key tells its room (the node's `store::database`), when a swap is seen (the node's
//! `dispatch::databases`).

use super::apply::{Edit, forbidden, outdated};
use super::{ClusterMap, Refusal, View};

/// The setting that holds the order: the number of swaps so far, then the room of each database from 0 on, up to the
/// last one whose room is another than its number.
pub const SETTING_DATABASES: &str = "databases";

/// Most databases: the room of a key is told in one byte, and the last one is for keys of Korum's own.
pub const DATABASES_MAX: u16 = 255;

/// The rooms of the databases, after so many swaps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatabaseOrder {
    swaps: u64,
    rooms: Vec<u8>,
}

impl DatabaseOrder {
    /// How many swaps made it: an older order has fewer.
    #[must_use]
    pub fn swaps(&self) -> u64 {
        self.swaps
    }

    /// The room of a database.
    #[must_use]
    pub fn room(&self, database: u8) -> u8 {
        self.rooms.get(usize::from(database)).copied().unwrap_or(database)
    }

    /// The database of a room.
    #[must_use]
    pub fn database(&self, room: u8) -> u8 {
        let found = self.rooms.iter().position(|&other| other == room);
        found.and_then(|found| u8::try_from(found).ok()).unwrap_or(room)
    }

    /// The order after one more swap.
    #[must_use]
    pub fn swapped(&self, first: u8, second: u8) -> Self {
        let mut rooms = self.rooms.clone();
        for database in rooms.len()..=usize::from(first.max(second)) {
            rooms.push(database as u8);
        }
        rooms.swap(usize::from(first), usize::from(second));
        while rooms.last().is_some_and(|&room| usize::from(room) == rooms.len() - 1) {
            rooms.pop();
        }
        Self { swaps: self.swaps + 1, rooms }
    }

    /// The order that a text means; `None` if it means none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let swaps = words.next()?.parse().ok()?;
        let rooms: Vec<u8> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let mut sorted = rooms.clone();
        sorted.sort_unstable();
        let is_whole = sorted.iter().enumerate().all(|(number, &room)| number == usize::from(room));
        is_whole.then_some(Self { swaps, rooms })
    }

    /// The text that means it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let rooms = self.rooms.iter().map(|room| format!(" {room}"));
        std::iter::once(self.swaps.to_string()).chain(rooms).collect()
    }
}

impl ClusterMap {
    /// Which room each database has.
    #[must_use]
    pub fn databases(&self) -> DatabaseOrder {
        let text = self.settings.get(SETTING_DATABASES);
        text.and_then(|text| DatabaseOrder::parse(text)).unwrap_or_default()
    }
}

/// Two databases change their rooms, if there were so many swaps before.
pub(super) fn swap(view: &View, first: u8, second: u8, swaps: u64) -> Result<Edit, Refusal> {
    if u16::from(first.max(second)) >= DATABASES_MAX {
        return Err(forbidden(format!("there are at most {DATABASES_MAX} databases")));
    }
    let order = view.map.databases();
    if order.swaps != swaps {
        return Err(outdated(format!("databases were swapped {} times, not {swaps}", order.swaps)));
    }
    let mut map = view.map.clone();
    map.settings.insert(SETTING_DATABASES.to_owned(), order.swapped(first, second).to_text());
    Ok(Edit::new(map, false))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_order_is_that_of_its_swaps_and_reads_back(swaps: Vec<(u8, u8)>) {
            let mut rooms: Vec<u8> = (0..=u8::MAX).collect();
            let mut order = DatabaseOrder::default();
            for &(first, second) in &swaps {
                rooms.swap(usize::from(first), usize::from(second));
                order = order.swapped(first, second);
            }
            for database in 0..=u8::MAX {
                prop_assert_eq!(order.room(database), rooms[usize::from(database)]);
                prop_assert_eq!(order.database(order.room(database)), database);
            }
            prop_assert_eq!(order.swaps(), swaps.len() as u64);
            prop_assert_eq!(DatabaseOrder::parse(&order.to_text()), Some(order));
        }

        #[test]
        fn any_text_is_an_order_or_none(text: String) {
            let _ = DatabaseOrder::parse(&text);
        }
    }

    #[test]
    fn what_is_no_order_is_refused() {
        for text in ["", "x", "1 1", "1 0 0", "1 0 300", "1  0"] {
            assert_eq!(DatabaseOrder::parse(text), None, "{text}");
        }
        let twice = DatabaseOrder::default().swapped(3, 5).swapped(5, 3);
        assert_eq!(twice.to_text(), "2");
        assert_eq!(DatabaseOrder::parse("1 1 0").map(|order| order.room(0)), Some(1));
    }
}
