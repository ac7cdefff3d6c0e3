//! Which entry is due next.
//!
//! For: active expiry in order of deadlines.
//! Not here: what happens to an entry that is due (`keyspace`).

use std::collections::BTreeSet;

use super::position::HashPosition;

/// Deadlines are indexed with this many bits, ms: until the year 10889. Later ones stand at the end
/// and are never due.
const DEADLINE_MAX: u64 = (1 << 48) - 1;

/// A deadline and a position, 48 bits each, in 12 bytes instead of 16: there is one per expiring key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due([u32; 3]);

impl Due {
    fn new(deadline_ms: u64, position: HashPosition) -> Self {
        let deadline = deadline_ms.min(DEADLINE_MAX);
        let position = position.get();
        Self([
            (deadline >> 16) as u32,
            ((deadline & 0xffff) << 16) as u32 | (position >> 32) as u32,
            position as u32,
        ])
    }

    fn deadline_ms(self) -> u64 {
        u64::from(self.0[0]) << 16 | u64::from(self.0[1] >> 16)
    }

    fn position(self) -> HashPosition {
        HashPosition::new(u64::from(self.0[1] & 0xffff) << 32 | u64::from(self.0[2]))
    }
}

/// The deadlines of a partition, in order.
#[derive(Default, Debug)]
pub struct ExpiryIndex {
    due: BTreeSet<Due>,
}

impl ExpiryIndex {
    /// Notes that an entry at `position` ends at `deadline_ms`.
    pub fn insert(&mut self, deadline_ms: u64, position: HashPosition) {
        self.due.insert(Due::new(deadline_ms, position));
    }

    /// Forgets that.
    pub fn remove(&mut self, deadline_ms: u64, position: HashPosition) {
        self.due.remove(&Due::new(deadline_ms, position));
    }

    /// The earliest deadline and where it stands.
    #[must_use]
    pub fn first(&self) -> Option<(u64, HashPosition)> {
        self.due.first().map(|due| (due.deadline_ms(), due.position()))
    }

    /// Whether exactly this is noted.
    #[must_use]
    pub fn contains(&self, deadline_ms: u64, position: HashPosition) -> bool {
        self.due.contains(&Due::new(deadline_ms, position))
    }

    /// How many different pairs are noted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Nothing is noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// An estimate of its memory, bytes: a tree node holds 11 and is two thirds full.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.due.len() * 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_by_deadline_then_position() {
        let mut index = ExpiryIndex::default();
        let position = HashPosition::new;
        index.insert(u64::MAX, position(1));
        index.insert(0x1_0000_0001, position((1 << 48) - 1));
        index.insert(0x1_0000_0001, position(7));
        assert_eq!(index.first(), Some((0x1_0000_0001, position(7))));
        index.remove(0x1_0000_0001, position(7));
        assert_eq!(index.first(), Some((0x1_0000_0001, position((1 << 48) - 1))));
        index.remove(0x1_0000_0001, position((1 << 48) - 1));
        assert!(index.contains(u64::MAX, position(1)));
        index.remove(u64::MAX, position(1));
        assert!(index.is_empty());
    }
}
