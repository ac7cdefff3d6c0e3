//! Picking a key by chance.
//!
//! For: `RANDOMKEY`, sampling.

use rand::Rng;

use super::entry::Entry;
use super::keyspace::Keyspace;
use super::position::{HashPosition, POSITION_BITS};
use crate::env::random::Random;

/// Most places that are tried before the next living entry in table order is taken.
const TRIES_MAX: usize = 100;

impl Keyspace {
    /// A living entry, each about equally likely; `None` if there is none or nearly all are expired.
    pub fn random(&self, now_ms: u64, random: &mut Random) -> Option<&Entry> {
        let mut last = None;
        for _ in 0..TRIES_MAX {
            // A segment is as likely as its share of all positions, and so holds that share of all keys.
            let position = HashPosition::new(random.next_u64() >> (64 - POSITION_BITS));
            let (_, entries) = self.table.segment(position)?;
            let bucket = random.next_u64() as usize & (entries.num_buckets().max(1) - 1);
            match entries.get_bucket(bucket) {
                Some(entry) if !entry.is_expired(now_ms) => return Some(entry),
                _ => last = Some(entries),
            }
        }
        last?.iter().find(|entry| !entry.is_expired(now_ms))
    }
}
