//! Copying a partition to another node, a bounded piece at a time.
//!
//! For: writing a range of hash order, or single places of it, as full states, and making them equal to what was
//! written.
//! Not here: pace, order and the live effects between the pieces (`rebalance`, `replication`).

use hashbrown::HashTable;
use korum_protocol::rope::Rope;
use smallvec::SmallVec;

use super::entry::Entry;
use super::garbage::{Garbage, LARGE_VALUE_BYTES};
use super::keyspace::{Keyspace, Place};
use super::parts::{PartsId, is_parted};
use super::position::{HashPosition, HashRange};
use super::segment::SEGMENT_ENTRIES_MAX;
use super::served::Service;
use super::source::Source;
use super::value::ValueRef;
use crate::replication::effect::{Effect, EffectError};

/// Keys with their positions.
type Keys<'a> = HashTable<(HashPosition, &'a [u8])>;

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
    /// segment of `from` ends; at least one position, so that a stream always progresses. Large strings are not
    /// copied but shared, so that the time under the lock does not grow with them; before a large collection it stops,
    /// which is to be read in parts ([`Self::begin_parts`]).
    pub fn read_chunk(&mut self, from: HashPosition, budget_bytes: usize, out: &mut Rope) -> Chunk {
        let until = self.share_large(from);
        let parted = self.first_parted(from, budget_bytes).filter(|parted| *parted > from);
        let until = parted.map_or(until, |parted| until.min(parted));
        let start = out.mark();
        self.read_entries(from, until, budget_bytes, |entry| {
            write(entry, out);
            out.len_since(start)
        })
    }

    /// The first large collection of the segment of `from`, there or behind.
    fn first_parted(&self, from: HashPosition, chunk_bytes: usize) -> Option<HashPosition> {
        let (_, entries) = self.table.segment(from)?;
        let parted = entries.iter().filter(|entry| is_parted(entry, chunk_bytes));
        parted.map(|entry| self.hash_position(entry.key())).filter(|position| *position >= from).min()
    }

    /// Appends the full state of the entries at `position` to `out`, but names only the collection of which all parts
    /// were read; its copying ends with that.
    pub fn read_parted(&mut self, position: HashPosition, id: PartsId, out: &mut Rope) -> Chunk {
        let parted = self.end_parts(id).unwrap_or_default();
        self.share_large_at(position);
        let mut entries = 0;
        for entry in self.table.at(position) {
            entries += 1;
            if *entry.key() == *parted {
                let (key, deadline_ms) = (entry.key(), entry.deadline_ms());
                Effect::Parted { key, deadline_ms }.encode(out.copied_mut());
            } else {
                write(entry, out);
            }
        }
        let until = position.next();
        let next = (until < HashPosition::END).then_some(until);
        Chunk { range: HashRange { from: position, until }, entries, next }
    }

    /// Appends the full state of the entries at `places` to `out` and returns their number; `None`, with anything
    /// in `out`, if they take more than `budget_bytes`. Large strings are shared.
    pub fn read_places(
        &mut self,
        places: &[HashPosition],
        budget_bytes: usize,
        out: &mut Rope,
    ) -> Option<u64> {
        let (start, mut count) = (out.mark(), 0);
        for &position in places {
            self.share_large_at(position);
            for entry in self.table.at(position) {
                let is_collection = !matches!(entry.value(), ValueRef::String(_));
                if is_collection && entry.heap_bytes() > budget_bytes {
                    return None;
                }
                write(entry, out);
                count += 1;
            }
            if out.len_since(start) > budget_bytes {
                return None;
            }
        }
        Some(count)
    }

    fn share_large_at(&mut self, position: HashPosition) {
        let is_large =
            |entry: &&Entry| entry.heap_bytes() >= LARGE_VALUE_BYTES && entry.to_shared().is_none();
        let large: SmallVec<[Box<[u8]>; 1]> =
            self.table.at(position).filter(is_large).map(|entry| entry.key().into()).collect();
        for key in &large {
            self.share(Place { key, position });
        }
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
    /// budget, or `until` is reached.
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
                if position >= until {
                    break;
                }
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

    /// Makes the content of `range` equal to a chunk: keys and services that are not in it are removed.
    ///
    /// # Errors
    /// When `entries` are not full states of keys of the range, or services are of elsewhere; then nothing has
    /// changed.
    pub fn apply_chunk(
        &mut self,
        range: HashRange,
        services: &[Service],
        entries: &[u8],
        source: &Source,
        garbage: &mut Garbage,
    ) -> Result<(), EffectError> {
        let kept = self.keys_of(entries, |position| range.contains(position))?;
        if !services.iter().all(|service| range.contains(service.place)) {
            return Err(EffectError::NotOfChunk);
        }
        self.served.replace(range, services);
        let mut at = range.from;
        while at < range.until
            && let Some((segment, _)) = self.table.segment(at)
        {
            let gone: Vec<(HashPosition, Box<[u8]>)> = self
                .sorted(at)
                .into_iter()
                .filter(|(position, entry)| {
                    *position < range.until && !is_kept(&kept, *position, entry.key())
                })
                .map(|(position, entry)| (position, entry.key().into()))
                .collect();
            for (position, key) in &gone {
                self.remove(Place { key, position: *position }, garbage);
            }
            // A removal may have merged the segment with its neighbours: its end is still a border or lies inside.
            at = segment.until;
        }
        self.apply_states(entries, source, garbage)?;
        // Parts of what the primary has not copied to the end.
        self.drop_arriving(garbage);
        Ok(())
    }

    /// Makes the content of `places`, which are in order, equal to what [`Self::read_places`] wrote: keys and services
    /// that are not in it are removed.
    ///
    /// # Errors
    /// When `entries` are not full states of keys of the places, or services are of elsewhere; then nothing has
    /// changed.
    pub fn apply_places(
        &mut self,
        places: &[HashPosition],
        services: &[Service],
        entries: &[u8],
        source: &Source,
        garbage: &mut Garbage,
    ) -> Result<(), EffectError> {
        let belongs = |position: HashPosition| places.binary_search(&position).is_ok();
        let kept = self.keys_of(entries, belongs)?;
        if !services.iter().all(|service| belongs(service.place)) {
            return Err(EffectError::NotOfChunk);
        }
        self.served.replace_at(places, services);
        for &position in places {
            let gone: SmallVec<[Box<[u8]>; 1]> = self
                .table
                .at(position)
                .filter(|entry| !is_kept(&kept, position, entry.key()))
                .map(|entry| entry.key().into())
                .collect();
            for key in &gone {
                self.remove(Place { key, position }, garbage);
            }
        }
        self.apply_states(entries, source, garbage)
    }

    /// The keys of full states; an error if there is anything else, or a key that does not belong there.
    fn keys_of<'a>(
        &self,
        mut entries: &'a [u8],
        belongs: impl Fn(HashPosition) -> bool,
    ) -> Result<Keys<'a>, EffectError> {
        let mut keys = Keys::new();
        while !entries.is_empty() {
            let key = match Effect::decode(&mut entries)? {
                Effect::Set { key, .. } | Effect::Collection { key, .. } => key,
                Effect::Parted { key, .. } if self.has_arrived(key) => key,
                _ => return Err(EffectError::NotOfChunk),
            };
            let position = self.hash_position(key);
            if !belongs(position) {
                return Err(EffectError::NotOfChunk);
            }
            keys.insert_unique(position.table_hash(), (position, key), |(position, _)| position.table_hash());
        }
        Ok(keys)
    }

    fn apply_states(
        &mut self,
        mut entries: &[u8],
        source: &Source,
        garbage: &mut Garbage,
    ) -> Result<(), EffectError> {
        while !entries.is_empty() {
            self.apply(&Effect::decode(&mut entries)?, source, garbage);
        }
        Ok(())
    }
}

fn is_kept(kept: &Keys<'_>, position: HashPosition, key: &[u8]) -> bool {
    kept.find(position.table_hash(), |(_, kept)| *kept == key).is_some()
}

/// Appends an entry's full state; a value that can be shared is.
fn write(entry: &Entry, out: &mut Rope) {
    let (key, value, deadline_ms) = (entry.key(), entry.value(), entry.deadline_ms());
    match entry.to_shared() {
        Some(shared) => Effect::encode_held(key, shared, deadline_ms, out),
        None => Effect::Set { key, value, deadline_ms }.encode(out.copied_mut()),
    }
}
