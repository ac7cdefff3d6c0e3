//! A segment: the entries whose positions share their top bits.
//!
//! For: how large a segment gets, and keeping removed entries from growing it.
//! Not here: which segments there are (`table`).

use hashbrown::HashTable;

use super::entry::Entry;
use super::position::HashPosition;

/// Most entries of a segment: what hashbrown keeps in 1024 buckets.
pub(super) const SEGMENT_ENTRIES_MAX: usize = 896;
/// Buckets of a full segment.
pub(super) const SEGMENT_BUCKETS_MAX: usize = 1024;
/// A table whose free buckets are used up by graves of removed entries is rebuilt at its size below this
/// many quarters of living ones, and grows or splits above: rebuilding must buy room for a while.
pub(super) const REBUILD_QUARTERS: usize = 3;
/// Two neighbours merge at this sum: far enough from a split that the two do not alternate.
pub(super) const MERGE_ENTRIES_MAX: usize = SEGMENT_ENTRIES_MAX / 4;
/// A directory never has more than 2^20 places (900 million entries); behind that segments just grow.
pub(super) const DEPTH_MAX: u32 = 20;

/// A segment's entries.
pub(super) type Entries = HashTable<Entry>;

#[derive(Debug)]
pub(super) struct Segment {
    /// How many top bits of their positions its entries share.
    pub(super) depth: u32,
    pub(super) entries: Entries,
}

impl Segment {
    /// Whether it is to be split before anything is inserted.
    pub(super) fn is_full(&self) -> bool {
        let entries = &self.entries;
        entries.num_buckets() >= SEGMENT_BUCKETS_MAX
            && entries.len() == entries.capacity()
            && entries.len() >= rebuild_below(entries)
            && self.depth < DEPTH_MAX
    }
}

pub(super) fn table_hash(seed: u64, entry: &Entry) -> u64 {
    HashPosition::of(seed, entry.key()).table_hash()
}

/// How many entries a table of this size takes; hashbrown leaves an eighth of the buckets free.
pub(super) fn room(entries: &Entries) -> usize {
    entries.num_buckets() / 8 * 7
}

/// At fewer entries than these, graves are cleared away instead of growing.
pub(super) fn rebuild_below(entries: &Entries) -> usize {
    room(entries) / 4 * REBUILD_QUARTERS
}

/// A table without graves, with room for `room` entries.
pub(super) fn rebuilt(seed: u64, entries: impl IntoIterator<Item = Entry>, room: usize) -> Entries {
    let mut fresh = Entries::with_capacity(room);
    for entry in entries {
        fresh.insert_unique(table_hash(seed, &entry), entry, |entry| table_hash(seed, entry));
    }
    fresh
}
