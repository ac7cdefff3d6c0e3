//! Sets: members, each once.
//!
//! For: the data of `SADD` and kin; integers in order, or packed while there are few, else a table.
//! Not here: what a command means (`command::set`), bytes between nodes (`replication::effect`).
//!
//! Members keep an order that follows from the changes alone: integers that of their size, others that in which they
//! came; in a table the last one takes the place of one that is removed. So it is the same on all copies, as long as
//! they have it in the same form.

use std::borrow::Cow;

use indexmap::IndexSet;

use super::collection::{Keyed, Scan, table_bytes};
use super::int_set::IntSet;
use super::integer;
use super::packed::Packed;
use super::value::StringRef;

/// Most members of a set of integers (Redis' default).
pub const INTEGERS_MAX: usize = 512;
/// Most members of a packed set, and the longest, bytes (Redis' defaults).
pub const PACKED_MEMBERS_MAX: usize = 128;
/// See [`PACKED_MEMBERS_MAX`].
pub const PACKED_MEMBER_BYTES_MAX: usize = 64;

/// A set. Two are equal if they have the same members.
#[derive(Clone, Debug, Default)]
pub struct Set(Form);

#[derive(Clone, Debug)]
enum Form {
    Integers(IntSet),
    Packed(Packed),
    /// `items` counts the bytes of all members.
    Table {
        members: IndexSet<Box<[u8]>, Keyed>,
        items: usize,
    },
}

/// What happens to a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetChange<'a> {
    /// It has this member now.
    Add {
        /// The member.
        member: &'a [u8],
    },
    /// The member is gone.
    Remove {
        /// The member.
        member: &'a [u8],
    },
}

impl Default for Form {
    fn default() -> Self {
        Self::Integers(IntSet::default())
    }
}

impl Set {
    /// How it is kept, as a number for [`Set::in_form`].
    #[must_use]
    pub fn form(&self) -> u8 {
        match self.0 {
            Form::Integers(_) => 0,
            Form::Packed(_) => 1,
            Form::Table { .. } => 2,
        }
    }

    /// An empty one that is kept so, as long as its members allow.
    #[must_use]
    pub fn in_form(form: u8) -> Self {
        match form {
            0 => Self::default(),
            1 => Self(Form::Packed(Packed::default())),
            _ => Self::table(),
        }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Integers(integers) => integers.len(),
            Form::Packed(packed) => packed.len(),
            Form::Table { members, .. } => members.len(),
        }
    }

    /// No members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is a member.
    #[must_use]
    pub fn contains(&self, member: &[u8]) -> bool {
        match &self.0 {
            Form::Integers(integers) => {
                integer::parse(member).is_some_and(|number| integers.contains(number))
            }
            Form::Packed(packed) => packed.iter().any(|found| found == member),
            Form::Table { members, .. } => members.contains(member),
        }
    }

    /// Whether it is a member, however it is kept elsewhere.
    #[must_use]
    pub fn has(&self, member: StringRef<'_>) -> bool {
        match (&self.0, member) {
            (Form::Integers(integers), StringRef::Integer(number)) => integers.contains(number),
            _ => self.contains(&member.bytes()),
        }
    }

    /// The member with this index in the set's order.
    #[must_use]
    pub fn nth(&self, index: usize) -> Option<StringRef<'_>> {
        match &self.0 {
            Form::Integers(integers) => integers.get(index).map(StringRef::Integer),
            Form::Packed(packed) => packed.get(index).map(StringRef::Bytes),
            Form::Table { members, .. } => members.get_index(index).map(|member| StringRef::Bytes(member)),
        }
    }

    /// The index of a member of a table in the set's order.
    #[must_use]
    pub fn index_of(&self, member: &[u8]) -> Option<usize> {
        if let Form::Table { members, .. } = &self.0 { members.get_index_of(member) } else { None }
    }

    /// An empty one that never was small.
    #[must_use]
    pub fn table() -> Self {
        let mut set = Self::default();
        set.unpack();
        set
    }

    /// Whether it is a table.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.0, Form::Table { .. })
    }

    /// All members, in the set's order.
    pub fn iter(&self) -> impl Iterator<Item = StringRef<'_>> {
        let (integers, packed, table) = match &self.0 {
            Form::Integers(integers) => (Some(integers.iter().map(StringRef::Integer)), None, None),
            Form::Packed(packed) => (None, Some(packed.iter().map(StringRef::Bytes)), None),
            Form::Table { members, .. } => {
                (None, None, Some(members.iter().map(|member| StringRef::Bytes(member))))
            }
        };
        let small = integers.into_iter().flatten().chain(packed.into_iter().flatten());
        small.chain(table.into_iter().flatten())
    }

    /// The next members of a walk, by their indexes; see [`Scan::downwards`]. A small set is walked in one step.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: usize) -> Scan {
        match &self.0 {
            Form::Integers(_) | Form::Packed(_) => Scan::whole(self.len()),
            Form::Table { members, .. } => Scan::downwards(members.len(), cursor, count),
        }
    }

    /// Does what a primary did.
    pub fn apply(&mut self, change: &SetChange<'_>) {
        match *change {
            SetChange::Add { member } => self.add(member),
            SetChange::Remove { member } => self.remove(member),
        }
    }

    /// Adds a member that may be there.
    pub fn add(&mut self, member: &[u8]) {
        if let Form::Integers(integers) = &mut self.0 {
            match integer::parse(member) {
                Some(number) => {
                    if integers.insert(number) && integers.len() > INTEGERS_MAX {
                        self.unpack();
                    }
                    return;
                }
                // As in Redis: what does not fit packed becomes a table at once.
                None if integers.len() < PACKED_MEMBERS_MAX && member.len() <= PACKED_MEMBER_BYTES_MAX => {
                    let texts: Vec<_> = integers.iter().map(|number| number.to_string()).collect();
                    self.0 = Form::Packed(texts.iter().map(|text| text.as_bytes()).collect());
                }
                None => self.unpack(),
            }
        }
        if let Form::Packed(packed) = &mut self.0 {
            if packed.iter().any(|found| found == member) {
                return;
            }
            if packed.len() < PACKED_MEMBERS_MAX && member.len() <= PACKED_MEMBER_BYTES_MAX {
                return packed.push(member);
            }
            self.unpack();
        }
        if let Form::Table { members, items } = &mut self.0
            && !members.contains(member)
        {
            *items += member.len();
            members.insert(member.into());
        }
    }

    fn remove(&mut self, member: &[u8]) {
        match &mut self.0 {
            Form::Integers(integers) => {
                if let Some(number) = integer::parse(member) {
                    integers.remove(number);
                }
            }
            Form::Packed(packed) => {
                if let Some(index) = packed.iter().position(|found| found == member) {
                    packed.remove(index, 1);
                }
            }
            Form::Table { members, items } => {
                if members.swap_remove(member) {
                    *items -= member.len();
                    if members.capacity() > 4 * members.len().max(8) {
                        members.shrink_to(2 * members.len());
                    }
                }
            }
        }
    }

    /// Becomes a table, in the same order.
    fn unpack(&mut self) {
        if let Form::Table { .. } = self.0 {
            return;
        }
        let mut members = IndexSet::with_capacity_and_hasher(self.len() + 1, Keyed);
        let mut items = 0;
        for member in self.iter() {
            items += member.len();
            members.insert(match member.bytes() {
                Cow::Borrowed(bytes) => bytes.into(),
                Cow::Owned(bytes) => bytes.into_boxed_slice(),
            });
        }
        self.0 = Form::Table { members, items };
    }

    /// Bytes of all members, or somewhat more.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match &self.0 {
            // An integer is written in digits.
            Form::Integers(integers) => 20 * integers.len(),
            Form::Packed(packed) => packed.bytes(),
            Form::Table { items, .. } => *items,
        }
    }

    /// What it holds on the heap, itself included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Form::Integers(integers) => integers.heap_bytes(),
                Form::Packed(packed) => packed.heap_bytes(),
                Form::Table { members, items } => items + table_bytes::<Box<[u8]>>(members.capacity()),
            }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Form::Integers(_) => "intset",
            Form::Packed(_) => "listpack",
            Form::Table { .. } => "hashtable",
        }
    }
}

impl<'a> FromIterator<StringRef<'a>> for Set {
    fn from_iter<T: IntoIterator<Item = StringRef<'a>>>(members: T) -> Self {
        let mut set = Self::default();
        members.into_iter().for_each(|member| set.add(&member.bytes()));
        set
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|member| other.has(member))
    }
}

impl Eq for Set {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    /// Members of which the first kind are integers, the second short texts, the third long ones.
    fn member(kind: u8, number: u16) -> Vec<u8> {
        match kind {
            0 => number.to_string().into_bytes(),
            1 => format!("m{number}").into_bytes(),
            _ => format!("m{number}").repeat(30).into_bytes(),
        }
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_set(
            steps in proptest::collection::vec((0..5u8, 0..3u8, 0..700u16), 1..1500),
            kinds in 1..4u8,
        ) {
            let (mut set, mut model) = (Set::default(), BTreeSet::new());
            for (what, kind, number) in steps {
                let member = member(kind % kinds, number);
                if what == 0 {
                    set.apply(&SetChange::Remove { member: &member });
                    model.remove(&member);
                } else {
                    set.apply(&SetChange::Add { member: &member });
                    model.insert(member.clone());
                }
                prop_assert_eq!(set.contains(&member), model.contains(&member));
                prop_assert_eq!(set.len(), model.len());
            }
            let found: BTreeSet<_> = set.iter().map(|member| member.bytes().into_owned()).collect();
            prop_assert_eq!(&found, &model);
            prop_assert!(set.iter().enumerate().all(|(at, member)| set.nth(at) == Some(member)));
            prop_assert_eq!(set.iter().collect::<Set>(), set.clone());
            if let Form::Table { items, .. } = set.0 {
                prop_assert_eq!(items, model.iter().map(Vec::len).sum::<usize>());
            }
        }
    }

    #[test]
    fn encodings_are_those_of_redis() {
        let mut set = Set::default();
        (0..512).for_each(|number: u16| set.add(number.to_string().as_bytes()));
        assert_eq!(set.encoding(), "intset");
        set.add(b"-1");
        assert_eq!(set.encoding(), "hashtable");

        let mut set: Set = (0..127).map(StringRef::Integer).collect();
        set.add(b"x");
        assert_eq!(set.encoding(), "listpack");
        set.add(b"x");
        assert_eq!(set.encoding(), "listpack");
        set.add(b"y");
        assert_eq!((set.encoding(), set.len()), ("hashtable", 129));

        let mut set: Set = (0..128).map(StringRef::Integer).collect();
        set.add(b"x");
        assert_eq!(set.encoding(), "hashtable");

        let mut set = Set::default();
        set.add(&[b'x'; 64]);
        assert_eq!(set.encoding(), "listpack");
        set.add(&[b'x'; 65]);
        assert_eq!(set.encoding(), "hashtable");
    }
}
