//! An order of items by rank.
//!
//! For: sorted sets: which item has which rank, and where one belongs, for any number of items.
//! Not here: the items and how they compare: they are numbers here, and callers say which come before a place.
//!
//! Items stand in blocks, blocks in chunks, both with bounded lengths; so a search looks at the last items of some
//! chunks and blocks, a rank adds up their lengths, and a change moves a block's items. An item takes 4 bytes, and
//! half as much for the room that blocks leave.

/// Most items of a block.
const BLOCK_ITEMS_MAX: usize = 256;
/// Most blocks of a chunk.
const CHUNK_BLOCKS_MAX: usize = 128;

/// Items in order.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    chunks: Vec<Chunk>,
    len: usize,
    blocks: usize,
}

#[derive(Clone, Debug)]
struct Chunk {
    /// Items of all its blocks.
    len: usize,
    /// None of them empty, each with room for all that it may have.
    blocks: Vec<Vec<u32>>,
}

/// Where an item stands, or belongs.
#[derive(Clone, Copy, Debug)]
struct Spot {
    chunk: usize,
    block: usize,
    offset: usize,
    rank: usize,
}

fn block_of(items: &[u32]) -> Vec<u32> {
    let mut block = Vec::with_capacity(BLOCK_ITEMS_MAX);
    block.extend_from_slice(items);
    block
}

impl Ranks {
    /// What it holds on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.blocks * (BLOCK_ITEMS_MAX * size_of::<u32>() + size_of::<Vec<u32>>())
            + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// The spot of the first item for which `is_before` is not true; behind the last one if it is for all.
    fn find(&self, mut is_before: impl FnMut(u32) -> bool) -> Spot {
        let mut ends_before = |block: &Vec<u32>| block.last().is_some_and(|&item| is_before(item));
        let chunk = self.chunks.partition_point(|chunk| chunk.blocks.last().is_some_and(&mut ends_before));
        // Behind the last item: in the last block.
        let chunk = chunk.min(self.chunks.len().saturating_sub(1));
        let Some(within) = self.chunks.get(chunk) else {
            return Spot { chunk: 0, block: 0, offset: 0, rank: 0 };
        };
        let block = within.blocks.partition_point(&mut ends_before).min(within.blocks.len() - 1);
        let offset = within.blocks[block].partition_point(|&item| is_before(item));
        Spot { chunk, block, offset, rank: self.before(chunk, block) + offset }
    }

    /// Items before a block.
    fn before(&self, chunk: usize, block: usize) -> usize {
        let chunks: usize = self.chunks[..chunk].iter().map(|chunk| chunk.len).sum();
        chunks + self.chunks[chunk].blocks[..block].iter().map(Vec::len).sum::<usize>()
    }

    /// The spot of a rank that there is.
    fn spot(&self, rank: usize) -> Option<Spot> {
        let mut left = rank;
        for (chunk, within) in self.chunks.iter().enumerate() {
            if left >= within.len {
                left -= within.len;
                continue;
            }
            for (block, items) in within.blocks.iter().enumerate() {
                if left < items.len() {
                    return Some(Spot { chunk, block, offset: left, rank });
                }
                left -= items.len();
            }
        }
        None
    }

    /// How many items come before the first one for which `is_before` is not true.
    #[must_use]
    pub fn partition_point(&self, is_before: impl FnMut(u32) -> bool) -> usize {
        self.find(is_before).rank
    }

    /// The item with this rank.
    #[must_use]
    pub fn get(&self, rank: usize) -> Option<u32> {
        self.spot(rank).map(|spot| self.chunks[spot.chunk].blocks[spot.block][spot.offset])
    }

    /// The items from `rank` on, upwards.
    pub fn upwards(&self, rank: usize) -> impl Iterator<Item = u32> {
        let spot = self.spot(rank);
        let chunk = spot.map(|spot| &self.chunks[spot.chunk].blocks);
        let first = spot.zip(chunk).map_or(&[][..], |(spot, blocks)| &blocks[spot.block][spot.offset..]);
        let rest = spot.zip(chunk).map_or(&[][..], |(spot, blocks)| &blocks[spot.block + 1..]);
        let others = spot.map_or(&[][..], |spot| &self.chunks[spot.chunk + 1..]);
        let others = others.iter().flat_map(|chunk| &chunk.blocks);
        first.iter().chain(rest.iter().chain(others).flatten()).copied()
    }

    /// The items from `rank` on, downwards.
    pub fn downwards(&self, rank: usize) -> impl Iterator<Item = u32> {
        let spot = self.spot(rank);
        let chunk = spot.map(|spot| &self.chunks[spot.chunk].blocks);
        let first = spot.zip(chunk).map_or(&[][..], |(spot, blocks)| &blocks[spot.block][..=spot.offset]);
        let rest = spot.zip(chunk).map_or(&[][..], |(spot, blocks)| &blocks[..spot.block]);
        let others = spot.map_or(&[][..], |spot| &self.chunks[..spot.chunk]);
        let others = others.iter().rev().flat_map(|chunk| chunk.blocks.iter().rev());
        first
            .iter()
            .rev()
            .chain(rest.iter().rev().chain(others).flat_map(|block| block.iter().rev()))
            .copied()
    }

    /// Adds an item behind all for which `is_before` is true.
    pub fn insert(&mut self, item: u32, is_before: impl FnMut(u32) -> bool) {
        let mut spot = self.find(is_before);
        if self.chunks.is_empty() {
            self.chunks.push(Chunk { len: 0, blocks: vec![block_of(&[])] });
            self.blocks = 1;
        }
        let is_last = spot.rank == self.len;
        let chunk = &mut self.chunks[spot.chunk];
        if chunk.blocks[spot.block].len() == BLOCK_ITEMS_MAX {
            // What comes in order leaves full blocks behind.
            let at = if is_last { BLOCK_ITEMS_MAX } else { BLOCK_ITEMS_MAX / 2 };
            let rest = block_of(&chunk.blocks[spot.block][at..]);
            chunk.blocks[spot.block].truncate(at);
            chunk.blocks.insert(spot.block + 1, rest);
            self.blocks += 1;
            if spot.offset > at || is_last {
                spot.block += 1;
                spot.offset -= at;
            }
        }
        chunk.blocks[spot.block].insert(spot.offset, item);
        chunk.len += 1;
        self.len += 1;
        if chunk.blocks.len() > CHUNK_BLOCKS_MAX {
            let at = if is_last { CHUNK_BLOCKS_MAX } else { CHUNK_BLOCKS_MAX / 2 };
            let blocks = chunk.blocks.split_off(at);
            let len = blocks.iter().map(Vec::len).sum();
            chunk.len -= len;
            self.chunks.insert(spot.chunk + 1, Chunk { len, blocks });
        }
    }

    /// Puts another item in the place of the first one for which `is_before` is not true.
    pub fn replace(&mut self, item: u32, is_before: impl FnMut(u32) -> bool) {
        let spot = self.find(is_before);
        let block = self.chunks.get_mut(spot.chunk).map(|chunk| &mut chunk.blocks[spot.block]);
        if let Some(place) = block.and_then(|block| block.get_mut(spot.offset)) {
            *place = item;
        }
    }

    /// Removes the first item for which `is_before` is not true.
    pub fn remove(&mut self, is_before: impl FnMut(u32) -> bool) -> Option<u32> {
        let spot = self.find(is_before);
        let chunk = self.chunks.get_mut(spot.chunk)?;
        let block = &mut chunk.blocks[spot.block];
        if spot.offset >= block.len() {
            return None;
        }
        let item = block.remove(spot.offset);
        chunk.len -= 1;
        self.len -= 1;
        let left = block.len();
        let next = chunk.blocks.get(spot.block + 1).map(Vec::len);
        if left == 0 {
            chunk.blocks.remove(spot.block);
            self.blocks -= 1;
        } else if next.is_some_and(|next| left + next <= BLOCK_ITEMS_MAX / 2) {
            let next = chunk.blocks.remove(spot.block + 1);
            chunk.blocks[spot.block].extend_from_slice(&next);
            self.blocks -= 1;
        }
        self.tidy(spot.chunk);
        Some(item)
    }

    /// Ends a chunk without blocks, and joins a small one with the next.
    fn tidy(&mut self, chunk: usize) {
        let left = self.chunks[chunk].blocks.len();
        let next = self.chunks.get(chunk + 1).map(|next| next.blocks.len());
        if left == 0 {
            self.chunks.remove(chunk);
        } else if next.is_some_and(|next| left + next <= CHUNK_BLOCKS_MAX / 2) {
            let next = self.chunks.remove(chunk + 1);
            self.chunks[chunk].len += next.len;
            self.chunks[chunk].blocks.extend(next.blocks);
        }
    }

    #[cfg(test)]
    fn check(&self) {
        let blocks: Vec<_> = self.chunks.iter().flat_map(|chunk| &chunk.blocks).collect();
        assert!(blocks.iter().all(|block| (1..=BLOCK_ITEMS_MAX).contains(&block.len())));
        assert!(blocks.iter().all(|block| block.capacity() >= BLOCK_ITEMS_MAX));
        assert!(self.chunks.iter().all(|chunk| (1..=CHUNK_BLOCKS_MAX).contains(&chunk.blocks.len())));
        assert!(
            self.chunks.iter().all(|chunk| chunk.len == chunk.blocks.iter().map(Vec::len).sum::<usize>())
        );
        assert_eq!(self.len, self.chunks.iter().map(|chunk| chunk.len).sum::<usize>());
        assert_eq!(self.blocks, blocks.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    fn compare(ranks: &Ranks, model: &BTreeSet<u32>) -> Result<(), TestCaseError> {
        ranks.check();
        prop_assert_eq!(ranks.len, model.len());
        prop_assert!(ranks.upwards(0).eq(model.iter().copied()));
        let step = (model.len() / 7).max(1);
        for (rank, item) in model.iter().enumerate().step_by(step) {
            prop_assert_eq!(ranks.get(rank), Some(*item));
            prop_assert_eq!(ranks.partition_point(|other| other < *item), rank);
            prop_assert!(ranks.upwards(rank).eq(model.iter().skip(rank).copied()));
            prop_assert!(ranks.downwards(rank).eq(model.iter().take(rank + 1).rev().copied()));
        }
        prop_assert_eq!(ranks.get(model.len()), None);
        prop_assert_eq!(ranks.upwards(model.len()).chain(ranks.downwards(model.len())).count(), 0);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_behaves_like_an_ordered_set(
            runs in proptest::collection::vec((0..4u8, 0..3000u32, 1..700u32, 1..30u32), 1..25),
        ) {
            let (mut ranks, mut model) = (Ranks::default(), BTreeSet::new());
            for (kind, start, count, stride) in runs {
                for step in 0..count {
                    let item = (start + step * stride) % 5000;
                    if kind > 0 {
                        if model.insert(item) {
                            ranks.insert(item, |other| other < item);
                        }
                    } else {
                        let removed = model.remove(&item).then(|| ranks.remove(|other| other < item));
                        prop_assert!(removed.is_none_or(|removed| removed == Some(item)));
                    }
                }
                compare(&ranks, &model)?;
            }
            while let Some(item) = model.pop_last() {
                prop_assert_eq!(ranks.remove(|other| other < item), Some(item));
            }
            compare(&ranks, &model)?;
        }
    }

    #[test]
    fn many_items_make_chunks_and_leave_none_behind() {
        let mut ranks = Ranks::default();
        let count = 3 * BLOCK_ITEMS_MAX as u32 * CHUNK_BLOCKS_MAX as u32;
        (0..count).for_each(|item| ranks.insert(2 * item, |other| other < 2 * item));
        assert!(ranks.chunks.len() == 3 && ranks.blocks == 3 * CHUNK_BLOCKS_MAX, "full blocks and chunks");
        (0..count).for_each(|item| ranks.insert(2 * item + 1, |other| other < 2 * item + 1));
        ranks.check();
        assert!(ranks.upwards(0).eq(0..2 * count));
        ranks.replace(9, |other| other < 9);
        for item in 0..2 * count {
            // Now from the front, now from the middle.
            let item = if item % 2 == 0 { item / 2 } else { 2 * count - 1 - item / 2 };
            assert_eq!(ranks.remove(|other| other < item), Some(item));
        }
        ranks.check();
        assert!(ranks.chunks.is_empty());
        assert_eq!(ranks.remove(|_| true), None);
    }
}
