//! Copying a partition to another node, a bounded piece at a time.
//!
//! For: writing a range of hash order as full states, and making a range equal to what was written.
//! Not here: pace, order and the live effects between the pieces (`rebalance`, `replication`).

use bytes::{Bytes, BytesMut};
use hashbrown::HashTable;

use super::entry::Entry;
use super::garbage::{Garbage, LARGE_VALUE_BYTES};
use super::keyspace::Keyspace;
use super::position::{HashPosition, HashRange};
use super::segment::SEGMENT_ENTRIES_MAX;
use super::value::Value;
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
    /// Appends the full state of the entries from `from` on to `out`, until `budget_bytes` are reached or
    /// about a segment's worth was written; at least one position, so that a stream always progresses.
    pub fn read_chunk(&self, from: HashPosition, budget_bytes: usize, out: &mut BytesMut) -> Chunk {
        let start = out.len();
        self.read_entries(from, HashPosition::END, budget_bytes, |entry| {
            let (key, value, deadline_ms) = (entry.key(), entry.value(), entry.deadline_ms());
            Effect::Set { key, value, deadline_ms }.encode(out);
            out.len() - start
        })
    }

    /// As [`Self::read_chunk`], in pieces whose concatenation is the chunk: large values are not copied but
    /// shared, so that the time under the lock does not grow with them. Stays within one segment.
    pub fn read_chunk_shared(&mut self, from: HashPosition, budget_bytes: usize) -> (Chunk, Vec<Bytes>) {
        let until = self.share_large(from);
        let mut pieces = Vec::new();
        let (mut tail, mut bytes) = (BytesMut::new(), 0);
        let chunk = self.read_entries(from, until, budget_bytes, |entry| {
            let (key, value, deadline_ms) = (entry.key(), entry.value(), entry.deadline_ms());
            let before = tail.len();
            match entry.to_shared() {
                Some(shared) => {
                    let mut behind = BytesMut::new();
                    Effect::encode_around(key, shared.len(), deadline_ms, &mut tail, &mut behind);
                    bytes += tail.len() - before + shared.len() + behind.len();
                    pieces.push(tail.split().freeze());
                    pieces.push(shared);
                    tail = behind;
                }
                None => {
                    Effect::Set { key, value, deadline_ms }.encode(&mut tail);
                    bytes += tail.len() - before;
                }
            }
            bytes
        });
        if !tail.is_empty() {
            pieces.push(tail.freeze());
        }
        (chunk, pieces)
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
            self.change(self.place(key), |value| match value {
                Value::String(string) => drop(string.share()),
            });
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
            self.apply(&Effect::decode(&mut input)?, garbage);
        }
        Ok(())
    }
}
