//! Values that are made of items.
//!
//! For: what all collections share: how a key of one is changed, walked, and carried to another node.
//! Not here: each of them (`hash` and its neighbours), the bytes of effects (`replication::effect`).
//! Next: a new kind is a variant of [`Kind`], [`Change`], `Value` and `ValueRef`; the compiler asks for the rest.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use ahash::{AHasher, RandomState};

use super::Entry;
use super::garbage::Garbage;
use super::hash::{Hash, HashChange};
use super::keyspace::{Keyspace, Place};
use super::list::{List, ListChange};
use super::set::{Set, SetChange};
use super::sorted_set::{SortedSet, SortedSetChange};
use super::value::{Value, ValueRef};
use super::xstream::{Stream, StreamChange};

/// The kinds of collections; the number is their byte between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Items in order.
    List = 1,
    /// Members, each once.
    Set = 2,
    /// Members with scores.
    SortedSet = 3,
    /// Fields with values.
    Hash = 4,
    /// Entries in the order of their ids.
    Stream = 15,
}

/// What happens inside a collection: decided by a primary, done by every copy in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// To a hash.
    Hash(HashChange<'a>),
    /// To a list.
    List(ListChange<'a>),
    /// To a stream.
    Stream(StreamChange<'a>),
    /// To a set.
    Set(SetChange<'a>),
    /// To a sorted set.
    SortedSet(SortedSetChange<'a>),
}

/// A collection, seen from a value.
pub trait Collection: Sized {
    /// The collection that a value is, if it is of this kind.
    fn of(value: ValueRef<'_>) -> Option<&Self>;
}

impl Collection for Hash {
    fn of(value: ValueRef<'_>) -> Option<&Self> {
        if let ValueRef::Hash(hash) = value { Some(hash) } else { None }
    }
}

impl Collection for List {
    fn of(value: ValueRef<'_>) -> Option<&Self> {
        if let ValueRef::List(list) = value { Some(list) } else { None }
    }
}

impl Collection for Stream {
    fn of(value: ValueRef<'_>) -> Option<&Self> {
        if let ValueRef::Stream(stream) = value { Some(stream) } else { None }
    }
}

impl Collection for Set {
    fn of(value: ValueRef<'_>) -> Option<&Self> {
        if let ValueRef::Set(set) = value { Some(set) } else { None }
    }
}

impl Collection for SortedSet {
    fn of(value: ValueRef<'_>) -> Option<&Self> {
        if let ValueRef::SortedSet(set) = value { Some(set) } else { None }
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::List, Self::Hash, Self::Stream, Self::Set, Self::SortedSet];

    /// An empty collection of this kind.
    #[must_use]
    pub fn empty(self) -> Value {
        match self {
            Self::Hash => Value::Hash(Box::default()),
            Self::List => Value::List(Box::default()),
            Self::Stream => Value::Stream(Box::default()),
            Self::Set => Value::Set(Box::default()),
            Self::SortedSet => Value::SortedSet(Box::default()),
        }
    }
}

impl Kind {
    /// An empty collection of this kind, in the form that large ones have.
    #[must_use]
    pub fn empty_table(self) -> Value {
        match self {
            Self::Hash => Value::Hash(Box::new(Hash::table())),
            Self::Set => Value::Set(Box::new(Set::table())),
            Self::SortedSet => Value::SortedSet(Box::new(SortedSet::table())),
            Self::List | Self::Stream => self.empty(),
        }
    }
}

impl Change<'_> {
    /// What kind of collection it happens to.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hash(_) => Kind::Hash,
            Self::List(_) => Kind::List,
            Self::Stream(_) => Kind::Stream,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
        }
    }

    /// Changes `value`; whether nothing is left of it, so that its key ends. A value of another kind stays.
    pub(super) fn apply(&self, value: &mut Value) -> bool {
        match (self, value) {
            (Self::Hash(change), Value::Hash(hash)) => {
                hash.apply(change);
                hash.is_empty()
            }
            (Self::List(change), Value::List(list)) => {
                list.apply(change);
                list.is_empty()
            }
            (Self::Stream(change), Value::Stream(stream)) => {
                stream.apply(change);
                // An empty stream stays: its last id must not be given out again.
                false
            }
            (Self::Set(change), Value::Set(set)) => {
                set.apply(change);
                set.is_empty()
            }
            (Self::SortedSet(change), Value::SortedSet(set)) => {
                set.apply(change);
                set.is_empty()
            }
            (Self::Hash(_) | Self::List(_) | Self::Stream(_) | Self::Set(_) | Self::SortedSet(_), _) => false,
        }
    }
}

impl Keyspace {
    /// Changes the collection of a key; a missing one is created first, and an empty one is removed.
    pub fn change_collection(&mut self, place: Place<'_>, change: &Change<'_>, garbage: &mut Garbage) {
        self.follow_in_parts(place, change);
        let is_over = self.change(place, |value| change.apply(value)).unwrap_or_else(|| {
            let mut value = change.kind().empty();
            let is_over = change.apply(&mut value);
            self.insert(place, Entry::from_value(place.key, value, None, self.second));
            is_over
        });
        if is_over {
            self.remove(place, garbage);
        }
    }
}

/// The next items of a walk over a collection, by their indexes in its order, and the cursor to go on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scan {
    /// Which items come next.
    pub indexes: std::ops::Range<usize>,
    /// Where to go on; 0 at the end.
    pub next: u64,
}

impl Scan {
    /// All of `len` items at once.
    #[must_use]
    pub fn whole(len: usize) -> Self {
        Self { indexes: 0..len, next: 0 }
    }

    /// About `count` of `len` items in an order of which a removal moves the last item into the gap. Items below
    /// the cursor are still to come, and whatever moves, moves down: so what stays is seen at least once.
    #[must_use]
    pub fn downwards(len: usize, cursor: u64, count: usize) -> Self {
        let end = match usize::try_from(cursor) {
            Ok(0) | Err(_) => len,
            Ok(cursor) => cursor.min(len),
        };
        let start = end.saturating_sub(count.max(1));
        Self { indexes: start..end, next: start as u64 }
    }
}

/// Hashes items with keys that nobody outside knows, the same ones in the whole process: the tables of collections
/// need not keep keys of their own.
#[derive(Clone, Copy, Default, Debug)]
pub struct Keyed;

impl BuildHasher for Keyed {
    type Hasher = AHasher;

    fn build_hasher(&self) -> AHasher {
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        KEYS.get_or_init(RandomState::new).build_hasher()
    }
}

/// What an `IndexMap` of this capacity takes for entries of type `T`: each with its hash, its index and a control
/// byte, at a load of at most 7/8.
#[must_use]
pub fn table_bytes<T>(capacity: usize) -> usize {
    capacity * (size_of::<T>() + size_of::<u64>()) + capacity * 8 / 7 * (size_of::<usize>() + 1)
}
