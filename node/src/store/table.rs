//! Entries in hash order: an extendible hash.
//!
//! For: finding, inserting and removing without ever moving more than about a thousand entries at once.
//! Not here: deadlines and accounts of entries (`keyspace`).
//!
//! ```text
//! position 0110…  --top `depth` bits-->  directory [0,0,1,2]  -->  segments: 0 (0…), 1 (10…), 2 (11…)
//! ```
//! A full segment splits in two by the next bit of the position; the directory doubles when that bit is
//! one it does not have yet. Two neighbours that became small merge. An empty table holds no allocation.

use super::entry::Entry;
use super::position::{HashPosition, HashRange};
use super::segment::{Entries, MERGE_ENTRIES_MAX, Segment, rebuild_below, rebuilt, room, table_hash};

/// Where an entry is, until the next insertion or removal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    segment: usize,
    bucket: usize,
}

/// All entries of a partition.
#[derive(Debug)]
pub struct Table {
    pub(super) seed: u64,
    pub(super) depth: u32,
    /// `2^depth` indexes into `segments`; empty while there is nothing.
    pub(super) directory: Vec<u32>,
    pub(super) segments: Vec<Segment>,
    /// Places in `segments` that are free.
    pub(super) free: Vec<u32>,
    /// Segments of the directory's own depth: at zero it can be halved.
    pub(super) deepest: usize,
    pub(super) len: usize,
    /// Allocations of the segments, bytes.
    pub(super) bucket_bytes: usize,
}

impl Table {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            depth: 0,
            directory: Vec::new(),
            segments: Vec::new(),
            free: Vec::new(),
            deepest: 0,
            len: 0,
            bucket_bytes: 0,
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Allocations of the table itself, bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bucket_bytes
            + self.segments.capacity() * size_of::<Segment>()
            + (self.directory.capacity() + self.free.capacity()) * size_of::<u32>()
    }

    pub(super) fn segment_index(&self, position: HashPosition) -> Option<usize> {
        self.directory.get(position.prefix(self.depth)).map(|&index| index as usize)
    }

    pub(super) fn find(&self, position: HashPosition, key: &[u8]) -> Option<Slot> {
        let segment = self.segment_index(position)?;
        let entries = &self.segments[segment].entries;
        let bucket = entries.find_bucket_index(position.table_hash(), |entry| entry.key() == key)?;
        Some(Slot { segment, bucket })
    }

    pub(super) fn get(&self, slot: Slot) -> &Entry {
        self.segments[slot.segment].entries.get_bucket(slot.bucket).expect("a slot is used at once")
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Entry {
        self.segments[slot.segment].entries.get_bucket_mut(slot.bucket).expect("a slot is used at once")
    }

    /// Inserts an entry whose key is not there yet.
    pub(super) fn insert(&mut self, position: HashPosition, entry: Entry) {
        debug_assert!(self.find(position, entry.key()).is_none());
        if self.directory.is_empty() {
            self.segments.push(Segment { depth: 0, entries: Entries::new() });
            self.directory.push(0);
            self.deepest = 1;
        }
        let mut index = self.directory[position.prefix(self.depth)] as usize;
        while self.segments[index].is_full() {
            self.split(index, position);
            index = self.directory[position.prefix(self.depth)] as usize;
        }
        let seed = self.seed;
        let entries = &mut self.segments[index].entries;
        let before = entries.allocation_size();
        if entries.len() == entries.capacity() && entries.len() < rebuild_below(entries) {
            let room = room(entries);
            *entries = rebuilt(seed, std::mem::take(entries), room);
        }
        entries.insert_unique(position.table_hash(), entry, |entry| table_hash(seed, entry));
        self.bucket_bytes = self.bucket_bytes + entries.allocation_size() - before;
        self.len += 1;
    }

    /// Splits the segment in which `position` lies by the next bit.
    fn split(&mut self, index: usize, position: HashPosition) {
        let seed = self.seed;
        let depth = self.segments[index].depth + 1;
        if depth > self.depth {
            self.directory = self.directory.iter().flat_map(|&segment| [segment, segment]).collect();
            self.depth = depth;
            self.deepest = 0;
        }
        let old = &mut self.segments[index];
        let before = old.entries.allocation_size();
        let is_upper = |entry: &mut Entry| HashPosition::of(seed, entry.key()).prefix(depth) & 1 == 1;
        let upper: Vec<Entry> = old.entries.extract_if(is_upper).collect();
        let lower_len = old.entries.len();
        let lower = std::mem::take(&mut old.entries);
        old.entries = rebuilt(seed, lower, lower_len);
        old.depth = depth;
        let upper_len = upper.len();
        let upper = Segment { depth, entries: rebuilt(seed, upper, upper_len) };
        self.bucket_bytes += upper.entries.allocation_size();
        self.bucket_bytes = self.bucket_bytes + old.entries.allocation_size() - before;
        let upper_index = match self.free.pop() {
            Some(free) => {
                self.segments[free as usize] = upper;
                free
            }
            None => {
                self.segments.push(upper);
                (self.segments.len() - 1) as u32
            }
        };
        self.point(position.prefix(depth) | 1, depth, upper_index);
        if depth == self.depth {
            self.deepest += 2;
        }
    }

    /// Lets all places of the directory below `prefix` lead to `segment`.
    fn point(&mut self, prefix: usize, depth: u32, segment: u32) {
        let width = self.depth - depth;
        self.directory[prefix << width..(prefix + 1) << width].fill(segment);
    }

    pub(super) fn remove(&mut self, position: HashPosition, slot: Slot) -> Entry {
        let entries = &mut self.segments[slot.segment].entries;
        let entry = entries.get_bucket_entry(slot.bucket).expect("a slot is used at once").remove().0;
        self.len -= 1;
        if self.len == 0 {
            *self = Self::new(self.seed);
        } else {
            self.tidy(slot.segment, position);
        }
        entry
    }

    /// After removals from the segment at `position`: merges it with its neighbour, shrinks it.
    fn tidy(&mut self, mut index: usize, position: HashPosition) {
        let seed = self.seed;
        loop {
            let depth = self.segments[index].depth;
            if depth == 0 {
                break;
            }
            let prefix = position.prefix(depth);
            let neighbour = self.directory[(prefix ^ 1) << (self.depth - depth)] as usize;
            let sum = self.segments[index].entries.len() + self.segments[neighbour].entries.len();
            if self.segments[neighbour].depth != depth || sum > MERGE_ENTRIES_MAX {
                break;
            }
            let gone = std::mem::take(&mut self.segments[neighbour].entries);
            self.bucket_bytes -= gone.allocation_size();
            let kept = &mut self.segments[index];
            let before = kept.entries.allocation_size();
            for entry in gone {
                kept.entries.insert_unique(table_hash(seed, &entry), entry, |entry| table_hash(seed, entry));
            }
            kept.depth = depth - 1;
            self.bucket_bytes = self.bucket_bytes + kept.entries.allocation_size() - before;
            self.free.push(neighbour as u32);
            self.point(prefix >> 1, depth - 1, index as u32);
            if depth == self.depth {
                self.deepest -= 2;
                self.halve();
            }
        }
        index = self.directory[position.prefix(self.depth)] as usize;
        let entries = &mut self.segments[index].entries;
        if entries.capacity() > 64 && entries.len() * 8 < entries.capacity() {
            let before = entries.allocation_size();
            entries.shrink_to(entries.len() * 2, |entry| table_hash(seed, entry));
            self.bucket_bytes = self.bucket_bytes + entries.allocation_size() - before;
        }
    }

    /// Halves the directory while no segment needs its last bit.
    fn halve(&mut self) {
        while self.deepest == 0 && self.depth > 0 {
            self.directory = self.directory.iter().copied().step_by(2).collect();
            self.depth -= 1;
            let free: Vec<bool> = self.free_places();
            self.deepest = self
                .segments
                .iter()
                .zip(free)
                .filter(|(segment, free)| !free && segment.depth == self.depth)
                .count();
        }
    }

    fn free_places(&self) -> Vec<bool> {
        let mut places = vec![false; self.segments.len()];
        for &index in &self.free {
            places[index as usize] = true;
        }
        places
    }

    /// The segment in which `position` lies, and which positions are its own; `None` at the end or
    /// where nothing is held.
    pub(super) fn segment(&self, position: HashPosition) -> Option<(HashRange, &Entries)> {
        if position >= HashPosition::END {
            return None;
        }
        let segment = &self.segments[self.segment_index(position)?];
        let prefix = position.prefix(segment.depth);
        let range = HashRange {
            from: HashPosition::of_prefix(prefix, segment.depth),
            until: HashPosition::of_prefix(prefix + 1, segment.depth),
        };
        Some((range, &segment.entries))
    }

    /// The entries at exactly `position`.
    pub(super) fn at(&self, position: HashPosition) -> impl Iterator<Item = &Entry> {
        let segment = self.segment_index(position).map(|index| &self.segments[index]);
        let seed = self.seed;
        segment
            .into_iter()
            .flat_map(move |segment| segment.entries.iter_hash(position.table_hash()))
            .filter(move |entry| HashPosition::of(seed, entry.key()) == position)
    }
}
