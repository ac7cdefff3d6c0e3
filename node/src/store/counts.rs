//! How many keys each room has.
//!
//! For: `DBSIZE` and `INFO keyspace`, without a walk.
//! Not here: which room a key is in (`database`).

use std::collections::BTreeMap;

/// The keys of one room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// All of them, those that are expired and not yet removed included.
    pub keys: usize,
    /// Those with a deadline.
    pub expires: usize,
    /// The sum of their deadlines, Unix ms.
    pub deadlines_ms: u128,
}

impl Count {
    /// What is left until the deadlines, all of them together, ms; expired keys count as nothing.
    #[must_use]
    pub fn left_ms(&self, now_ms: u64) -> u128 {
        self.deadlines_ms.saturating_sub(self.expires as u128 * u128::from(now_ms))
    }
}

/// The keys of all rooms. Most partitions have keys of the first alone, and no allocation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    first: Count,
    others: BTreeMap<u8, Count>,
}

impl Counts {
    /// The keys of a room.
    #[must_use]
    pub fn of(&self, room: u8) -> Count {
        if room == 0 { self.first } else { self.others.get(&room).copied().unwrap_or_default() }
    }

    /// All rooms that have keys.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Count)> {
        let others = self.others.iter().map(|(room, count)| (*room, *count));
        std::iter::once((0, self.first)).chain(others).filter(|(_, count)| count.keys > 0)
    }

    #[inline]
    fn at(&mut self, room: u8) -> &mut Count {
        if room == 0 { &mut self.first } else { self.others.entry(room).or_default() }
    }

    /// A key comes, without a deadline so far.
    pub(super) fn add(&mut self, room: u8) {
        self.at(room).keys += 1;
    }

    /// A key goes, which has no deadline any more.
    pub(super) fn remove(&mut self, room: u8) {
        let count = self.at(room);
        count.keys -= 1;
        if count.keys == 0 && room != 0 {
            self.others.remove(&room);
        }
    }

    /// A key has another deadline.
    pub(super) fn move_deadline(&mut self, room: u8, old: Option<u64>, new: Option<u64>) {
        let count = self.at(room);
        count.expires = count.expires + usize::from(new.is_some()) - usize::from(old.is_some());
        count.deadlines_ms += u128::from(new.unwrap_or(0));
        count.deadlines_ms -= u128::from(old.unwrap_or(0));
    }
}
