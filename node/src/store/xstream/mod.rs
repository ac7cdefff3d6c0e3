//! Streams: entries in the order of their ids, and groups that read them. (`store::stream` is about another thing:
//! how a partition travels.)
//!
//! For: the data of `XADD` and kin.
//! Not here: what a command means (`command::stream`), bytes between nodes (`replication::effect`).
//! Next: `block` holds entries, `group` what was given to whom; `change` is the only way to change a stream, `trim`
//! says what is too old, `parts` takes a stream apart for its way to another node.

use std::collections::BTreeMap;

mod block;
mod change;
mod fields;
mod group;
mod id;
mod parts;
#[cfg(test)]
mod tests;
mod trim;

use block::Block;

pub use change::StreamChange;
pub use fields::{Entry, Fields};
pub use group::{Consumer, Deliveries, Group, Pending};
pub use id::{ID_BYTES, Ids, StreamId};
pub use trim::{Trim, Trimmed, Until};

/// A stream. It may be empty, and stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    /// By the first id of each.
    blocks: BTreeMap<StreamId, Block>,
    len: u64,
    last_id: StreamId,
    max_deleted: StreamId,
    entries_added: u64,
    groups: BTreeMap<Box<[u8]>, Group>,
    /// Bytes of all blocks.
    block_bytes: usize,
    /// Bytes of all groups with their names.
    group_bytes: usize,
}

impl Stream {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// No entries; groups may be there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The greatest id that it ever gave out, or was told that it did.
    #[must_use]
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The greatest id of an entry that was deleted by its id.
    #[must_use]
    pub fn max_deleted(&self) -> StreamId {
        self.max_deleted
    }

    /// How many entries were ever added.
    #[must_use]
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// The id of the first entry; the least id if there is none.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The id of the last entry; the least id if there is none.
    #[must_use]
    pub fn top_id(&self) -> StreamId {
        self.range_back(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The entry with this id.
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The entries from `start` to `end`, both included, in order.
    pub fn range(&self, start: StreamId, end: StreamId) -> impl Iterator<Item = Entry<'_>> + Clone + use<'_> {
        self.blocks_of(start, end)
            .flat_map(|(first, block)| block.entries(*first))
            .skip_while(move |entry| entry.id < start)
            .take_while(move |entry| entry.id <= end)
    }

    /// The same entries, the last one first.
    pub fn range_back(
        &self,
        start: StreamId,
        end: StreamId,
    ) -> impl Iterator<Item = Entry<'_>> + Clone + use<'_> {
        self.blocks_of(start, end)
            .rev()
            .flat_map(|(first, block)| block.entries(*first).collect::<Vec<_>>().into_iter().rev())
            .skip_while(move |entry| entry.id > end)
            .take_while(move |entry| entry.id >= start)
    }

    /// The blocks that may hold entries of a range.
    fn blocks_of(
        &self,
        start: StreamId,
        end: StreamId,
    ) -> impl DoubleEndedIterator<Item = (&StreamId, &Block)> + Clone + use<'_> {
        let from = self.blocks.range(..=start).next_back().map_or(start, |(first, _)| *first);
        (start <= end).then(|| self.blocks.range(from..=end)).into_iter().flatten()
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The first ids of the blocks, in order.
    pub fn block_ids(&self) -> impl Iterator<Item = StreamId> {
        self.blocks.keys().copied()
    }

    /// The first id of the last block.
    #[must_use]
    pub fn last_block(&self) -> Option<StreamId> {
        self.blocks.keys().next_back().copied()
    }

    /// The group of this name.
    #[must_use]
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// All groups, in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&name[..], group))
    }

    /// Whether entries behind `id` may have been deleted by their ids.
    #[must_use]
    pub fn has_gaps_from(&self, id: StreamId) -> bool {
        !self.is_empty()
            && self.max_deleted != StreamId::MIN
            && id <= self.max_deleted
            && self.first_id() <= self.max_deleted
    }

    /// How many entries had been added when the one with this id was, if that can be told.
    #[must_use]
    pub fn entries_until(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if id == self.last_id || (self.is_empty() && id < self.last_id) {
            return Some(self.entries_added);
        }
        let first = self.first_id();
        let before_first = self.entries_added.wrapping_sub(self.len);
        if id > self.last_id || (self.max_deleted != StreamId::MIN && self.max_deleted >= first) {
            return None;
        }
        match id.cmp(&first) {
            std::cmp::Ordering::Less => Some(before_first),
            std::cmp::Ordering::Equal => Some(before_first.wrapping_add(1)),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// What it holds on the heap, itself included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let blocks = self.blocks.len() * size_of::<(StreamId, Block)>() * 7 / 4;
        size_of::<Self>() + blocks + self.block_bytes + self.group_bytes
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        "stream"
    }

    /// Derives every relation again.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let ids: Vec<_> = self.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "ids grow");
        assert!(ids.last().is_none_or(|top| *top <= self.last_id));
        assert_eq!(ids.len() as u64, self.len);
        assert!(self.blocks.values().all(|block| block.len > 0 && block.len <= block.used));
        assert_eq!(self.block_bytes, self.blocks.values().map(Block::bytes).sum::<usize>());
        let groups = self.groups.iter().map(|(name, group)| change::group_bytes(name, group));
        assert_eq!(self.group_bytes, groups.sum::<usize>());
        self.groups.values().for_each(Group::check);
    }
}
