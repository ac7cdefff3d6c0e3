//! Deriving every relation of the store again.
//!
//! For: tests and simulations, after each step.

use std::collections::HashSet;

use super::counts::Counts;
use super::database;
use super::keyspace::Keyspace;
use super::position::HashPosition;
use super::segment::{DEPTH_MAX, SEGMENT_BUCKETS_MAX};
use super::table::Table;

impl Keyspace {
    /// Derives every account and index again.
    ///
    /// # Panics
    /// When one does not hold. For tests and simulations.
    pub fn check(&self) {
        self.table.check();
        let (mut bytes, mut counts) = (0, Counts::default());
        let mut due = HashSet::new();
        let mut at = HashPosition::START;
        while let Some((range, entries)) = self.table.segment(at) {
            for entry in entries {
                bytes += entry.heap_bytes();
                let room = database::split(entry.key()).0;
                counts.add(room);
                counts.move_deadline(room, None, entry.deadline_ms());
                if let Some(deadline) = entry.dues().first {
                    let position = self.hash_position(entry.key());
                    assert!(self.expiry.contains(deadline, position), "a deadline is indexed");
                    due.insert((deadline.min((1 << 48) - 1), position));
                }
            }
            at = range.until;
        }
        assert_eq!(self.entry_bytes, bytes, "bytes of entries");
        assert_eq!(self.counts, counts, "keys of each room, and their deadlines");
        assert_eq!(self.expiry.len(), due.len(), "nothing else is indexed");
    }
}

impl Table {
    /// Derives every relation again.
    ///
    /// # Panics
    /// When one does not hold.
    pub(super) fn check(&self) {
        if self.len == 0 {
            assert!(self.directory.is_empty() && self.segments.is_empty() && self.free.is_empty());
            assert_eq!((self.depth, self.deepest, self.bucket_bytes), (0, 0, 0));
            return;
        }
        assert_eq!(self.directory.len(), 1 << self.depth);
        let (mut at, mut len, mut used, mut deepest, mut bytes) = (HashPosition::START, 0, 0, 0, 0);
        while let Some((range, entries)) = self.segment(at) {
            let index = self.segment_index(at).expect("it was just found");
            let depth = self.segments[index].depth;
            assert_eq!(range.from, at, "segments follow each other");
            let width = self.depth - depth;
            let first = at.prefix(depth) << width;
            assert!(self.directory[first..first + (1 << width)].iter().all(|&place| place as usize == index));
            assert!(entries.num_buckets() <= SEGMENT_BUCKETS_MAX || depth == DEPTH_MAX);
            for entry in entries {
                let position = HashPosition::of(self.seed, entry.key());
                assert!(range.contains(position), "an entry is in its segment");
                assert!(self.find(position, entry.key()).is_some(), "an entry is found");
            }
            deepest += usize::from(depth == self.depth);
            bytes += entries.allocation_size();
            len += entries.len();
            used += 1;
            at = range.until;
        }
        assert_eq!(at, HashPosition::END);
        assert_eq!((self.len, self.deepest, self.bucket_bytes), (len, deepest, bytes));
        assert_eq!(self.segments.len(), used + self.free.len());
    }
}
