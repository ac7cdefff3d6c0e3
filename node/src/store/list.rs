//! Lists: items in order.
//!
//! For: the data of `LPUSH` and kin; short ones in one packed block, longer ones in a row of blocks.
//! Not here: what a command means (`command::list`), bytes between nodes (`replication::effect`).

use super::blocks::{BLOCK_BYTES, Blocks};
use super::packed::{Packed, item_bytes};

/// A row of blocks becomes one block again when its items take no more than this, bytes: half of a block, so that a
/// list does not go to and fro.
const PACKED_AGAIN_BYTES: usize = BLOCK_BYTES / 2;

/// A list. Two are equal if they have the same items in the same order.
#[derive(Clone, Debug, Default)]
pub struct List(Form);

#[derive(Clone, Debug)]
enum Form {
    Packed(Packed),
    Blocks(Box<Blocks>),
}

/// What happens to a list. What is out of its bounds does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChange<'a> {
    /// An item comes before all others.
    PushFront {
        /// The item.
        item: &'a [u8],
    },
    /// An item comes behind all others.
    PushBack {
        /// The item.
        item: &'a [u8],
    },
    /// The first items are gone.
    PopFront {
        /// How many.
        count: usize,
    },
    /// The last items are gone.
    PopBack {
        /// How many.
        count: usize,
    },
    /// There is another item in this place.
    Set {
        /// The place.
        index: usize,
        /// The item.
        item: &'a [u8],
    },
    /// An item comes before the one in this place.
    Insert {
        /// The place.
        index: usize,
        /// The item.
        item: &'a [u8],
    },
    /// Items that are equal to this one are gone.
    RemoveEqual {
        /// The item.
        item: &'a [u8],
        /// How many at most.
        limit: usize,
        /// The last ones, not the first.
        from_back: bool,
    },
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl List {
    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.len(),
            Form::Blocks(blocks) => blocks.len(),
        }
    }

    /// No items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        match &self.0 {
            Form::Packed(packed) => packed.get(index),
            Form::Blocks(blocks) => blocks.get(index),
        }
    }

    fn blocks(&self) -> impl DoubleEndedIterator<Item = &Packed> {
        let (packed, row) = match &self.0 {
            Form::Packed(packed) => (Some(packed), None),
            Form::Blocks(blocks) => (None, Some(blocks.row())),
        };
        packed.into_iter().chain(row.into_iter().flatten())
    }

    /// The items from index `start` on.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (block, offset) = match &self.0 {
            Form::Packed(_) => (0, start),
            Form::Blocks(blocks) if start < blocks.len() => blocks.locate(start),
            Form::Blocks(_) => (usize::MAX, 0),
        };
        let from_here = self.blocks().skip(block).enumerate();
        from_here.flat_map(move |(at, items)| items.iter().skip(if at == 0 { offset } else { 0 }))
    }

    /// The items, in order; from either end.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.blocks().flat_map(Packed::iter)
    }

    /// Does what a primary did.
    pub fn apply(&mut self, change: &ListChange<'_>) {
        match *change {
            ListChange::PushFront { item } => self.insert(0, item),
            ListChange::PushBack { item } => self.insert(usize::MAX, item),
            ListChange::Insert { index, item } => self.insert(index, item),
            ListChange::Set { index, item } => self.replace(index, item),
            ListChange::PopFront { count } => match &mut self.0 {
                Form::Packed(packed) => packed.remove(0, count),
                Form::Blocks(blocks) => blocks.pop_front(count),
            },
            ListChange::PopBack { count } => match &mut self.0 {
                Form::Packed(packed) => packed.remove(packed.len().saturating_sub(count), count),
                Form::Blocks(blocks) => blocks.pop_back(count),
            },
            ListChange::RemoveEqual { item, limit, from_back } => match &mut self.0 {
                Form::Packed(packed) => *packed = packed.without(item, limit, from_back),
                Form::Blocks(blocks) => blocks.remove_equal(item, limit, from_back),
            },
        }
        if let Form::Blocks(blocks) = &self.0
            && blocks.bytes() <= PACKED_AGAIN_BYTES
        {
            self.pack();
        }
    }

    fn insert(&mut self, index: usize, item: &[u8]) {
        match &mut self.0 {
            Form::Packed(packed) if packed.bytes() + item_bytes(item.len()) <= BLOCK_BYTES => {
                packed.insert(index, item);
            }
            _ => self.blocks_mut().insert(index, item),
        }
    }

    fn replace(&mut self, index: usize, item: &[u8]) {
        match &mut self.0 {
            Form::Packed(packed) if packed.bytes() + item_bytes(item.len()) <= BLOCK_BYTES => {
                packed.replace(index, item);
            }
            _ => self.blocks_mut().replace(index, item),
        }
    }

    /// The blocks, which it becomes if it is packed.
    fn blocks_mut(&mut self) -> &mut Blocks {
        if let Form::Packed(packed) = &mut self.0 {
            self.0 = Form::Blocks(Box::new(Blocks::from(std::mem::take(packed))));
        }
        match &mut self.0 {
            Form::Blocks(blocks) => blocks,
            Form::Packed(_) => unreachable!("it was unpacked above"),
        }
    }

    fn pack(&mut self) {
        if let Form::Blocks(blocks) = &self.0 {
            self.0 = Form::Packed(blocks.to_packed());
        }
    }

    /// Bytes of all items with their lengths.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.bytes(),
            Form::Blocks(blocks) => blocks.bytes(),
        }
    }

    /// What it holds on the heap, itself included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Form::Packed(packed) => packed.heap_bytes(),
                Form::Blocks(blocks) => size_of::<Blocks>() + blocks.heap_bytes(),
            }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Form::Packed(_) => "listpack",
            Form::Blocks(_) => "quicklist",
        }
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for List {}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    type Model = VecDeque<Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        PushFront(Vec<u8>),
        PushBack(Vec<u8>),
        PopFront(usize),
        PopBack(usize),
        Set(usize, Vec<u8>),
        Insert(usize, Vec<u8>),
        RemoveEqual(Vec<u8>, usize, bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let item = || {
            prop_oneof![
                4 => (0..4u8).prop_map(|byte| vec![byte]),
                4 => (0..4u8, 100..900usize).prop_map(|(byte, length)| vec![byte; length]),
                1 => Just(vec![9; 3000]),
                1 => Just(vec![9; 9000]),
            ]
        };
        let count = || prop_oneof![4 => 0..4usize, 1 => 0..60usize];
        prop_oneof![
            3 => item().prop_map(Step::PushFront),
            3 => item().prop_map(Step::PushBack),
            1 => count().prop_map(Step::PopFront),
            1 => count().prop_map(Step::PopBack),
            2 => (0..120usize, item()).prop_map(|(index, item)| Step::Set(index, item)),
            4 => (0..120usize, item()).prop_map(|(index, item)| Step::Insert(index, item)),
            1 => (item(), count(), any::<bool>()).prop_map(|(item, limit, back)| Step::RemoveEqual(item, limit, back)),
        ]
    }

    fn change(step: &Step) -> ListChange<'_> {
        match step {
            Step::PushFront(item) => ListChange::PushFront { item },
            Step::PushBack(item) => ListChange::PushBack { item },
            Step::PopFront(count) => ListChange::PopFront { count: *count },
            Step::PopBack(count) => ListChange::PopBack { count: *count },
            Step::Set(index, item) => ListChange::Set { index: *index, item },
            Step::Insert(index, item) => ListChange::Insert { index: *index, item },
            Step::RemoveEqual(item, limit, from_back) => {
                ListChange::RemoveEqual { item, limit: *limit, from_back: *from_back }
            }
        }
    }

    fn change_model(model: &mut Model, step: Step) {
        match step {
            Step::PushFront(item) => model.push_front(item),
            Step::PushBack(item) => model.push_back(item),
            Step::PopFront(count) => drop(model.drain(..count.min(model.len()))),
            Step::PopBack(count) => model.truncate(model.len().saturating_sub(count)),
            Step::Set(index, item) => {
                if let Some(old) = model.get_mut(index) {
                    *old = item;
                }
            }
            Step::Insert(index, item) => model.insert(index.min(model.len()), item),
            Step::RemoveEqual(item, limit, from_back) => {
                for _ in 0..limit {
                    let found = if from_back {
                        model.iter().rposition(|other| *other == item)
                    } else {
                        model.iter().position(|other| *other == item)
                    };
                    if let Some(index) = found {
                        model.remove(index);
                    }
                }
            }
        }
    }

    fn check(list: &List, model: &Model) {
        assert_eq!(list.len(), model.len());
        assert!(list.iter().eq(model.iter()));
        assert!(list.iter().rev().eq(model.iter().rev()));
        for at in 0..=model.len() {
            assert_eq!(list.get(at), model.get(at).map(Vec::as_slice));
            assert!(list.iter_from(at).eq(model.range(at..)));
        }
        let bytes: usize = model.iter().map(|item| item_bytes(item.len())).sum();
        match &list.0 {
            Form::Packed(packed) => assert!(packed.bytes() == bytes && bytes <= BLOCK_BYTES),
            Form::Blocks(blocks) => {
                blocks.check();
                assert!(bytes > PACKED_AGAIN_BYTES);
            }
        }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_deque(steps in proptest::collection::vec(step(), 1..200)) {
            let (mut list, mut model) = (List::default(), Model::default());
            for step in steps {
                list.apply(&change(&step));
                change_model(&mut model, step);
                check(&list, &model);
            }
        }
    }

    #[test]
    fn items_of_one_byte_fill_blocks_from_both_ends() {
        let mut list = List::default();
        for number in 0..20_000u32 {
            list.apply(&ListChange::PushFront { item: &number.to_le_bytes() });
            list.apply(&ListChange::PushBack { item: &number.to_le_bytes() });
        }
        // 40,000 items of 6 bytes: a block and a half beside the full ones, and room that grows by doubling.
        assert!(list.heap_bytes() < 40_000 * 6 * 2, "{}", list.heap_bytes());
        assert_eq!(list.encoding(), "quicklist");
        list.apply(&ListChange::PopFront { count: 19_990 });
        list.apply(&ListChange::PopBack { count: 19_990 });
        assert_eq!((list.len(), list.encoding()), (20, "listpack"));
        assert_eq!(list.get(0), Some(&9u32.to_le_bytes()[..]));
    }
}
