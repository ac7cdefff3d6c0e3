//! Picking a key by chance.
//!
//! For: `RANDOMKEY`, sampling.

use rand::Rng;

use super::database;
use super::entry::Entry;
use super::keyspace::Keyspace;
use super::position::{HashPosition, POSITION_BITS};
use crate::env::random::Random;

/// Most places that are tried before the next living entry in table order is taken.
const TRIES_MAX: usize = 100;

impl Keyspace {
    /// A living entry of a room, each about equally likely; `None` if there is none or nearly all are expired.
    pub fn random(&self, room: u8, now_ms: u64, random: &mut Random) -> Option<&Entry> {
        let held = self.count(room).keys;
        if held == 0 {
            return None;
        }
        let is_it = |entry: &&Entry| database::split(entry.key()).0 == room && !entry.is_expired(now_ms);
        let (mut last, mut place) = (None, HashPosition::START);
        for _ in 0..TRIES_MAX {
            // A segment is as likely as its share of all positions, and so holds that share of all keys.
            place = HashPosition::new(random.next_u64() >> (64 - POSITION_BITS));
            let (_, entries) = self.table.segment(place)?;
            let bucket = random.next_u64() as usize & (entries.num_buckets().max(1) - 1);
            match entries.get_bucket(bucket) {
                Some(entry) if is_it(&entry) => return Some(entry),
                _ => last = Some(entries),
            }
        }
        let found = last?.iter().find(is_it);
        if found.is_some() || held == self.len() {
            return found;
        }
        // A room with a small share of the keys: the next one, all around.
        self.walk(place).chain(self.walk(HashPosition::START)).find(is_it)
    }

    /// All entries from the segment of a position on, in no order within a segment.
    fn walk(&self, from: HashPosition) -> impl Iterator<Item = &Entry> {
        let mut at = from;
        let segments = std::iter::from_fn(move || {
            let (range, entries) = self.table.segment(at)?;
            at = range.until;
            Some(entries)
        });
        segments.flat_map(|entries| entries.iter())
    }
}
