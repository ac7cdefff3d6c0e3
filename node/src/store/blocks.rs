//! Byte strings in a row of packed blocks.
//!
//! For: long lists: both ends at once, the middle by walking over blocks.
//! Not here: short lists (`packed`), what lists are for (`list`).
//!
//! A block takes 8 KiB at most, or a single longer item. No block is empty. What moves when something is put in or
//! taken out is at most a block, and the row of blocks, which has 32 bytes for each.

use std::collections::VecDeque;

use super::packed::{Packed, item_bytes};

/// Most bytes of the items of one block: Redis' default (`list-max-listpack-size -2`). Large enough that the row is
/// short, small enough that moving one costs little.
pub const BLOCK_BYTES: usize = 8 << 10;
/// Two neighbours of at most so many bytes together become one. Less than [`BLOCK_BYTES`], so that what was put
/// together is not taken apart by the next item.
const MERGED_BYTES: usize = BLOCK_BYTES * 3 / 4;

/// A sequence of byte strings.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    row: VecDeque<Packed>,
    /// Number of items.
    len: usize,
    /// Bytes of all items.
    bytes: usize,
    /// What the blocks hold on the heap, bytes.
    heap: usize,
}

impl From<Packed> for Blocks {
    fn from(block: Packed) -> Self {
        let mut blocks = Self::default();
        if !block.is_empty() {
            blocks.put_block(0, block);
        }
        blocks
    }
}

impl Blocks {
    /// Number of items.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that all items take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it holds on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.heap + self.row.capacity() * size_of::<Packed>()
    }

    /// The blocks, in order.
    #[must_use]
    pub fn row(&self) -> std::collections::vec_deque::Iter<'_, Packed> {
        self.row.iter()
    }

    /// All items in one block.
    #[must_use]
    pub fn to_packed(&self) -> Packed {
        let mut all = Packed::default();
        self.row.iter().for_each(|block| all.append(block));
        all
    }

    /// The block and the place in it of the item with this index, which is below [`Self::len`]; from the nearer end.
    #[must_use]
    pub fn locate(&self, index: usize) -> (usize, usize) {
        if index < self.len / 2 {
            let mut before = 0;
            for (block, items) in self.row.iter().enumerate() {
                if index < before + items.len() {
                    return (block, index - before);
                }
                before += items.len();
            }
        } else {
            let mut before = self.len;
            for (block, items) in self.row.iter().enumerate().rev() {
                before -= items.len();
                if index >= before {
                    return (block, index - before);
                }
            }
        }
        (self.row.len(), 0)
    }

    /// The item with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (block, offset) = self.locate(index);
        self.row.get(block)?.get(offset)
    }

    /// Adds an item before the one with index `index`; at the end if there is none.
    pub fn insert(&mut self, index: usize, item: &[u8]) {
        let (mut block, mut offset) = if index == 0 {
            (0, 0)
        } else if index < self.len {
            self.locate(index)
        } else {
            let last = self.row.len().saturating_sub(1);
            (last, self.row.get(last).map_or(0, Packed::len))
        };
        if offset == 0 && block > 0 && !self.has_room(block, item) {
            block -= 1;
            offset = self.row[block].len();
        }
        if self.has_room(block, item) {
            return self.edit(block, |items| items.insert(offset, item));
        }
        let new = [item].into_iter().collect();
        if self.row.is_empty() || offset == 0 {
            return self.put_block(block, new);
        }
        if offset < self.row[block].len() {
            let rest = self.edit(block, |items| items.split_off(offset));
            self.put_block(block + 1, rest);
        }
        self.put_block(block + 1, new);
        // What was taken apart may now have room for the item on either side.
        self.tidy(block + 1);
    }

    /// Puts another item in the place of the one with this index, if there is one.
    pub fn replace(&mut self, index: usize, item: &[u8]) {
        if index >= self.len {
            return;
        }
        let (block, offset) = self.locate(index);
        let items = &self.row[block];
        let old = items.get(offset).map_or(0, |old| item_bytes(old.len()));
        if items.len() == 1 || items.bytes() - old + item_bytes(item.len()) <= BLOCK_BYTES {
            self.edit(block, |items| items.replace(offset, item));
            return self.tidy(block);
        }
        self.edit(block, |items| items.remove(offset, 1));
        self.insert(index, item);
    }

    /// Removes the first items, `count` or as many as there are.
    pub fn pop_front(&mut self, mut count: usize) {
        while let Some(length) = self.row.front().map(Packed::len).filter(|_| count > 0) {
            if length <= count {
                self.drop_block(0);
            } else {
                self.edit(0, |items| items.remove(0, count));
            }
            count -= length.min(count);
        }
        self.shrink();
    }

    /// Removes the last items, `count` or as many as there are.
    pub fn pop_back(&mut self, mut count: usize) {
        while let Some(length) = self.row.back().map(Packed::len).filter(|_| count > 0) {
            let last = self.row.len() - 1;
            if length <= count {
                self.drop_block(last);
            } else {
                self.edit(last, |items| items.remove(length - count, count));
            }
            count -= length.min(count);
        }
        self.shrink();
    }

    /// Removes the items that are equal to `item`, at most `limit`: the first ones, or the last ones.
    pub fn remove_equal(&mut self, item: &[u8], limit: usize, from_back: bool) {
        let (mut left, mut touched) = (limit, Vec::new());
        for step in 0..self.row.len() {
            let block = if from_back { self.row.len() - 1 - step } else { step };
            let equal = self.row[block].iter().filter(|found| *found == item).count();
            if equal == 0 {
                continue;
            }
            self.edit(block, |items| *items = items.without(item, left, from_back));
            touched.push(block);
            left -= equal.min(left);
            if left == 0 {
                break;
            }
        }
        match touched[..] {
            [] => {}
            [block] => self.tidy(block),
            _ => self.tidy_all(),
        }
        self.shrink();
    }

    fn has_room(&self, block: usize, item: &[u8]) -> bool {
        self.row.get(block).is_some_and(|items| items.bytes() + item_bytes(item.len()) <= BLOCK_BYTES)
    }

    /// Changes a block, with the accounts.
    fn edit<R>(&mut self, block: usize, edit: impl FnOnce(&mut Packed) -> R) -> R {
        let items = &mut self.row[block];
        let (len, bytes, heap) = (items.len(), items.bytes(), items.heap_bytes());
        let result = edit(items);
        self.len = self.len + items.len() - len;
        self.bytes = self.bytes + items.bytes() - bytes;
        self.heap = self.heap + items.heap_bytes() - heap;
        result
    }

    fn put_block(&mut self, block: usize, items: Packed) {
        self.len += items.len();
        self.bytes += items.bytes();
        self.heap += items.heap_bytes();
        self.row.insert(block, items);
    }

    fn drop_block(&mut self, block: usize) -> Packed {
        let items = self.row.remove(block).expect("the block was found in the row");
        self.len -= items.len();
        self.bytes -= items.bytes();
        self.heap -= items.heap_bytes();
        items
    }

    /// Drops an empty block; puts a small one together with its neighbours.
    fn tidy(&mut self, block: usize) {
        if self.row[block].is_empty() {
            self.drop_block(block);
            return;
        }
        for first in [block, block.wrapping_sub(1)] {
            let both = self.row.get(first).zip(self.row.get(first.wrapping_add(1)));
            if both.is_some_and(|(one, other)| one.bytes() + other.bytes() <= MERGED_BYTES) {
                let other = self.drop_block(first + 1);
                self.edit(first, |items| items.append(&other));
            }
        }
    }

    /// As [`Self::tidy`], for all blocks at once.
    fn tidy_all(&mut self) {
        let old = std::mem::take(self);
        for items in old.row {
            match self.row.back() {
                _ if items.is_empty() => {}
                Some(last) if last.bytes() + items.bytes() <= MERGED_BYTES => {
                    self.edit(self.row.len() - 1, |last| last.append(&items));
                }
                _ => self.put_block(self.row.len(), items),
            }
        }
    }

    fn shrink(&mut self) {
        if self.row.capacity() > 4 * self.row.len().max(8) {
            self.row.shrink_to(2 * self.row.len());
        }
    }
}

#[cfg(test)]
impl Blocks {
    /// Derives again what is kept.
    pub fn check(&self) {
        assert_eq!(self.len, self.row.iter().map(Packed::len).sum::<usize>());
        assert_eq!(self.bytes, self.row.iter().map(Packed::bytes).sum::<usize>());
        assert_eq!(self.heap, self.row.iter().map(Packed::heap_bytes).sum::<usize>());
        for items in &self.row {
            assert!(!items.is_empty());
            assert!(items.len() == 1 || items.bytes() <= BLOCK_BYTES);
        }
    }
}
