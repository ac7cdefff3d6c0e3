//! Byte strings, one after the other, in one allocation.
//!
//! For: small collections, and the blocks of large lists: two bytes beside each short item.
//! Not here: what the items mean (`hash`, `list`, `set`, `sorted_set`).
//!
//! An item is `length | bytes | length backwards`, the length in base 128 with the lowest digits first and, behind
//! the bytes, in the opposite order; so a walk can begin at either end. Walking is linear: callers keep these short.

use std::ops::Range;

use super::blocks::BLOCK_BYTES;

/// While it is shorter than this it gets exactly the room that it needs, bytes: most stay small.
const EXACT_BYTES: usize = 1 << 10;

/// A sequence of byte strings. Equal if the items are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packed {
    bytes: Vec<u8>,
    len: u32,
}

/// The items from both ends, with the places of their bytes.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
    len: usize,
}

/// Digits of base 128 that a length takes.
fn digits(length: usize) -> usize {
    (usize::BITS - (length | 1).leading_zeros()).div_ceil(7) as usize
}

/// Bytes that an item of `length` takes.
#[must_use]
pub fn item_bytes(length: usize) -> usize {
    length + 2 * digits(length)
}

fn digit(length: usize, index: usize, count: usize) -> u8 {
    let more = if index + 1 < count { 0x80 } else { 0 };
    (length >> (7 * index)) as u8 & 0x7f | more
}

/// Writes an item into `room`, which has exactly its bytes.
fn write(item: &[u8], room: &mut [u8]) {
    let count = digits(item.len());
    for index in 0..count {
        let byte = digit(item.len(), index, count);
        room[index] = byte;
        room[count + item.len() + count - 1 - index] = byte;
    }
    room[count..count + item.len()].copy_from_slice(item);
}

/// Reads a length whose digits `bytes` gives in order.
fn length(bytes: impl Iterator<Item = u8>) -> usize {
    let mut length = 0;
    for (index, byte) in bytes.enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            break;
        }
    }
    length
}

impl Packed {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// No items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that all items take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What it holds on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The items, from the first on.
    #[must_use]
    pub fn iter(&self) -> Items<'_> {
        Items { bytes: &self.bytes, front: 0, back: self.bytes.len(), len: self.len() }
    }

    /// The item with this index, from the nearer end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.place(index).map(|(_, content)| &self.bytes[content])
    }

    /// Where the item with this index begins, and its content.
    fn place(&self, index: usize) -> Option<(usize, Range<usize>)> {
        if index >= self.len() {
            return None;
        }
        let mut items = self.iter();
        let content = if index < self.len() / 2 {
            (0..=index).map_while(|_| items.next_place()).last()
        } else {
            (index..self.len()).map_while(|_| items.next_back_place()).last()
        };
        content.map(|content| (content.start - digits(content.len()), content))
    }

    /// Adds an item before the one with index `index`; at the end if there is none.
    pub fn insert(&mut self, index: usize, item: &[u8]) {
        let at = self.place(index).map_or(self.bytes.len(), |(start, _)| start);
        self.splice(at, 0, item_bytes(item.len()));
        write(item, &mut self.bytes[at..at + item_bytes(item.len())]);
        self.len += 1;
    }

    /// Adds an item at the end.
    pub fn push(&mut self, item: &[u8]) {
        self.insert(self.len(), item);
    }

    /// Puts another item in the place of the one with this index, which is there.
    pub fn replace(&mut self, index: usize, item: &[u8]) {
        let Some((start, content)) = self.place(index) else { return };
        self.splice(start, item_bytes(content.len()), item_bytes(item.len()));
        write(item, &mut self.bytes[start..start + item_bytes(item.len())]);
    }

    /// Removes `count` items from `index` on, or as many as there are.
    pub fn remove(&mut self, index: usize, count: usize) {
        let count = count.min(self.len().saturating_sub(index));
        let Some((start, _)) = self.place(index).filter(|_| count > 0) else { return };
        let end = self.place(index + count).map_or(self.bytes.len(), |(end, _)| end);
        self.splice(start, end - start, 0);
        self.len -= count as u32;
    }

    /// Splits off all items from `index` on.
    #[must_use]
    pub fn split_off(&mut self, index: usize) -> Self {
        let at = self.place(index).map_or(self.bytes.len(), |(start, _)| start);
        let rest =
            Self { bytes: self.bytes[at..].to_vec(), len: (self.len() - index.min(self.len())) as u32 };
        self.splice(at, self.bytes.len() - at, 0);
        self.len -= rest.len;
        rest
    }

    /// The items without those that are equal to `item`, at most `limit` of them: the first ones, or the last ones.
    #[must_use]
    pub fn without(&self, item: &[u8], limit: usize, from_back: bool) -> Self {
        let equal = self.iter().filter(|found| *found == item).count();
        let first = if from_back { equal.saturating_sub(limit) } else { 0 };
        let mut seen = 0..;
        self.iter()
            .filter(|found| {
                *found != item || seen.next().is_some_and(|index| index < first || index - first >= limit)
            })
            .collect()
    }

    /// Appends all items of `other`.
    pub fn append(&mut self, other: &Self) {
        let at = self.bytes.len();
        self.splice(at, 0, other.bytes.len());
        self.bytes[at..].copy_from_slice(&other.bytes);
        self.len += other.len;
    }

    /// Makes `new` bytes of room where `old` bytes were.
    fn splice(&mut self, at: usize, old: usize, new: usize) {
        let (end, total) = (self.bytes.len(), self.bytes.len() - old + new);
        if new > old {
            let room = self.bytes.capacity();
            if total > room {
                let room = match total {
                    ..EXACT_BYTES => total,
                    // A full block of a list is to have no room left over.
                    EXACT_BYTES..=BLOCK_BYTES => (2 * room).clamp(total, BLOCK_BYTES),
                    _ => (2 * room).max(total),
                };
                self.bytes.reserve_exact(room - end);
            }
            self.bytes.resize(total, 0);
            self.bytes.copy_within(at + old..end, at + new);
        } else {
            self.bytes.copy_within(at + old..end, at + new);
            self.bytes.truncate(total);
            if self.bytes.capacity() > 2 * total.max(32) {
                self.bytes.shrink_to(total);
            }
        }
    }
}

impl<'a> FromIterator<&'a [u8]> for Packed {
    fn from_iter<T: IntoIterator<Item = &'a [u8]>>(items: T) -> Self {
        let mut packed = Self::default();
        items.into_iter().for_each(|item| packed.push(item));
        packed
    }
}

impl Items<'_> {
    fn next_place(&mut self) -> Option<Range<usize>> {
        self.len = self.len.checked_sub(1)?;
        let length = length(self.bytes[self.front..].iter().copied());
        let start = self.front + digits(length);
        self.front += item_bytes(length);
        Some(start..start + length)
    }

    fn next_back_place(&mut self) -> Option<Range<usize>> {
        self.len = self.len.checked_sub(1)?;
        let length = length(self.bytes[..self.back].iter().rev().copied());
        let end = self.back - digits(length);
        self.back -= item_bytes(length);
        Some(end - length..end)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_place().map(|place| &self.bytes[place])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl DoubleEndedIterator for Items<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_back_place().map(|place| &self.bytes[place])
    }
}

impl ExactSizeIterator for Items<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(usize, Vec<u8>),
        Replace(usize, Vec<u8>),
        Remove(usize, usize),
        SplitAndAppend(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let item = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..5),
            proptest::collection::vec(any::<u8>(), 120..135),
            Just(vec![7; 20_000]),
        ];
        let index = 0..30usize;
        prop_oneof![
            4 => (index.clone(), item.clone()).prop_map(|(at, item)| Step::Insert(at, item)),
            1 => (index.clone(), item).prop_map(|(at, item)| Step::Replace(at, item)),
            1 => (index.clone(), 0..4usize).prop_map(|(at, count)| Step::Remove(at, count)),
            1 => index.prop_map(Step::SplitAndAppend),
        ]
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_vector(steps in proptest::collection::vec(step(), 1..60)) {
            let (mut packed, mut model) = (Packed::default(), Vec::<Vec<u8>>::new());
            for step in steps {
                match step {
                    Step::Insert(at, item) => {
                        packed.insert(at, &item);
                        model.insert(at.min(model.len()), item);
                    }
                    Step::Replace(at, item) => {
                        packed.replace(at, &item);
                        if let Some(old) = model.get_mut(at) {
                            *old = item;
                        }
                    }
                    Step::Remove(at, count) => {
                        packed.remove(at, count);
                        let from = at.min(model.len());
                        model.drain(from..(from + count).min(model.len()));
                    }
                    Step::SplitAndAppend(at) => {
                        let rest = packed.split_off(at);
                        let split = model.split_off(at.min(model.len()));
                        prop_assert!(rest.iter().eq(split.iter().map(Vec::as_slice)));
                        packed.append(&rest);
                        model.extend(split);
                    }
                }
                prop_assert_eq!(packed.len(), model.len());
                prop_assert!(packed.iter().eq(model.iter().map(Vec::as_slice)));
                prop_assert!(packed.iter().rev().eq(model.iter().rev().map(Vec::as_slice)));
                prop_assert!((0..=model.len()).all(|at| packed.get(at) == model.get(at).map(Vec::as_slice)));
                prop_assert_eq!(packed.bytes(), model.iter().map(|item| item_bytes(item.len())).sum::<usize>());
            }
        }
    }
}
