//! Copying a partition to another node, a bounded piece at a time.
//!
//! For: writing a range of hash order as full states, and making a range equal to what was written.
//! Not here: pace, order and the live effects between the pieces (`rebalance`, `replication`).

use hashbrown::HashTable;
use korum_protocol::rope::Rope;

use super::entry::Entry;
use super::garbage::{Garbage, LARGE_VALUE_BYTES};
use super::keyspace::Keyspace;
use super::position::{HashPosition, HashRange};
use super::segment::SEGMENT_ENTRIES_MAX;
use super::source::Source;
use crate::replication::effect::{Effect, EffectError};

/// What [`Keyspace::read_chunk`] has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// All entries of this range were written.
    pub range: HashRange,
    /// How many they were.
    pub entries: u32,
    /// Where to go on; `None` at the end.
    pub next: Option<HashPosition>,
}

impl Keyspace {
    /// Appends the full state of the entries from `from` on to `out`, until `budget_bytes` are reached or the
    /// segment of `from` ends; at least one position, so that a stream always progresses. Large values are not
    /// copied but shared, so that the time under the lock does not grow with them.
    pub fn read_chunk(&mut self, from: HashPosition, budget_bytes: usize, out: &mut Rope) -> Chunk {
        let until = self.share_large(from);
        let start = out.mark();
        self.read_entries(from, until, budget_bytes, |entry| {
            let (key, value, deadline_ms) = (entry.key(), entry.value(), entry.deadline_ms());
            match entry.to_shared() {
                Some(shared) => Effect::encode_held(key, shared, deadline_ms, out),
                None => Effect::Set { key, value, deadline_ms }.encode(out.copied_mut()),
            }
            out.len_since(start)
        })
    }

    /// Lets the large values of the segment of `from` be shared; returns where the segment ends.
    fn share_large(&mut self, from: HashPosition) -> HashPosition {
        let Some((range, entries)) = self.table.segment(from) else { return HashPosition::END };
        let large: Vec<Box<[u8]>> = entries
            .iter()
            .filter(|entry| entry.heap_bytes() >= LARGE_VALUE_BYTES && entry.to_shared().is_none())
            .map(|entry| entry.key().into())
            .collect();
        for key in &large {
            self.share(self.place(key));
        }
        range.until
    }

    /// Visits entries in hash order, until `write`, which returns the bytes written so far, reaches the
    /// budget, or `until` is reached, which is the end of a segment.
    fn read_entries(
        &self,
        from: HashPosition,
        until: HashPosition,
        budget_bytes: usize,
        mut write: impl FnMut(&Entry) -> usize,
    ) -> Chunk {
        let (mut at, mut entries, mut bytes) = (from, 0, 0);
        while at < until
            && let Some((range, _)) = self.table.segment(at)
        {
            let mut last = None;
            for (position, entry) in self.sorted(at) {
                let full = bytes >= budget_bytes || entries as usize >= SEGMENT_ENTRIES_MAX;
                // Entries of one position are never parted.
                if full && entries > 0 && last != Some(position) {
                    let range = HashRange { from, until: position };
                    return Chunk { range, entries, next: Some(position) };
                }
                bytes = write(entry);
                entries += 1;
                last = Some(position);
            }
            at = range.until;
        }
        let next = (until < HashPosition::END).then_some(until);
        Chunk { range: HashRange { from, until }, entries, next }
    }

    /// Makes the content of `range` equal to a chunk: keys that are not in it are removed.
    ///
    /// # Errors
    /// When `entries` are not full states of keys of the range; then nothing has changed.
    pub fn apply_chunk(
        &mut self,
        range: HashRange,
        entries: &[u8],
        source: &Source,
        garbage: &mut Garbage,
    ) -> Result<(), EffectError> {
        let mut kept: HashTable<(HashPosition, &[u8])> = HashTable::new();
        let mut input = entries;
        while !input.is_empty() {
            let Effect::Set { key, .. } = Effect::decode(&mut input)? else {
                return Err(EffectError::NotOfChunk);
            };
            let position = self.hash_position(key);
            if !range.contains(position) {
                return Err(EffectError::NotOfChunk);
            }
            kept.insert_unique(position.table_hash(), (position, key), |(position, _)| position.table_hash());
        }
        let is_kept = |position: HashPosition, key: &[u8]| {
            kept.find(position.table_hash(), |(_, kept)| *kept == key).is_some()
        };
        let mut at = range.from;
        while at < range.until
            && let Some((segment, _)) = self.table.segment(at)
        {
            let gone: Vec<(HashPosition, Box<[u8]>)> = self
                .sorted(at)
                .into_iter()
                .filter(|(position, entry)| *position < range.until && !is_kept(*position, entry.key()))
                .map(|(position, entry)| (position, entry.key().into()))
                .collect();
            for (position, key) in &gone {
                self.remove(super::keyspace::Place { key, position: *position }, garbage);
            }
            // A removal may have merged the segment with its neighbours: its end is still a border or lies inside.
            at = segment.until;
        }
        let mut input = entries;
        while !input.is_empty() {
            self.apply(&Effect::decode(&mut input)?, source, garbage);
        }
        Ok(())
    }
}
