//! What a key holds.
//!
//! For: values owned by the store (`Value`) and seen from outside (`ValueRef`).
//! Not here: their place in memory (`entry`), their bytes on the wire (`replication::effect`).
//! Next: `collection` for what is made of items.

use std::borrow::Cow;

use bytes::Bytes;
use korum_protocol::resp::reply::decimal;

use super::hash::Hash;
use super::integer;
use super::list::List;
use super::set::Set;
use super::sorted_set::SortedSet;
use super::xstream::Stream;

/// Longest string that Redis keeps in one piece with its header (`embstr`), bytes.
pub const EMBEDDED_BYTES_MAX: usize = 44;

/// A value that the store owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Of `SET` and kin.
    String(StringValue),
    /// Of `HSET` and kin.
    Hash(Box<Hash>),
    /// Of `LPUSH` and kin.
    List(Box<List>),
    /// Of `XADD` and kin.
    Stream(Box<Stream>),
    /// Of `SADD` and kin.
    Set(Box<Set>),
    /// Of `ZADD` and kin.
    SortedSet(Box<SortedSet>),
}

/// A string that the store owns; two are equal if no command can tell them apart.
#[derive(Clone, Debug)]
pub enum StringValue {
    /// The only spelling of an integer is kept as the integer.
    Integer(i64),
    /// Any other string, as it was set. A reader may hold on to it without copying; it is never changed.
    Bytes(Bytes),
    /// A string that was changed in place and may grow again; Redis calls it `raw` at any length.
    Raw(Vec<u8>),
}

/// A value, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueRef<'a> {
    /// Of `SET` and kin.
    String(StringRef<'a>),
    /// Of `HSET` and kin.
    Hash(&'a Hash),
    /// Of `LPUSH` and kin.
    List(&'a List),
    /// Of `XADD` and kin.
    Stream(&'a Stream),
    /// Of `SADD` and kin.
    Set(&'a Set),
    /// Of `ZADD` and kin.
    SortedSet(&'a SortedSet),
}

/// A string, borrowed; the variants are those of [`StringValue`], and so is equality.
#[derive(Clone, Copy, Debug)]
pub enum StringRef<'a> {
    /// Kept as an integer.
    Integer(i64),
    /// As it was set.
    Bytes(&'a [u8]),
    /// Changed in place.
    Raw(&'a [u8]),
}

impl Value {
    /// This value, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::String(string) => ValueRef::String(string.as_ref()),
            Self::Hash(hash) => ValueRef::Hash(hash),
            Self::List(list) => ValueRef::List(list),
            Self::Stream(stream) => ValueRef::Stream(stream),
            Self::Set(set) => ValueRef::Set(set),
            Self::SortedSet(set) => ValueRef::SortedSet(set),
        }
    }

    /// What it holds on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::String(StringValue::Integer(_)) => 0,
            Self::String(StringValue::Bytes(bytes)) => bytes.len(),
            Self::String(StringValue::Raw(bytes)) => bytes.capacity(),
            Self::Hash(hash) => hash.heap_bytes(),
            Self::List(list) => list.heap_bytes(),
            Self::Stream(stream) => stream.heap_bytes(),
            Self::Set(set) => set.heap_bytes(),
            Self::SortedSet(set) => set.heap_bytes(),
        }
    }
}

impl StringValue {
    /// This string, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> StringRef<'_> {
        match self {
            Self::Integer(number) => StringRef::Integer(*number),
            Self::Bytes(bytes) => StringRef::Bytes(bytes),
            Self::Raw(bytes) => StringRef::Raw(bytes),
        }
    }

    /// The bytes, to be changed in place: the string becomes `raw`. They are copied only while a reader
    /// holds on to them.
    pub fn raw_mut(&mut self) -> &mut Vec<u8> {
        if !matches!(self, Self::Raw(_)) {
            *self = Self::Raw(match std::mem::replace(self, Self::Integer(0)) {
                Self::Integer(number) => StringRef::Integer(number).bytes().into_owned(),
                Self::Bytes(bytes) => bytes.into(),
                Self::Raw(bytes) => bytes,
            });
        }
        match self {
            Self::Raw(bytes) => bytes,
            _ => unreachable!("it was made raw above"),
        }
    }

    /// The bytes of a string longer than [`EMBEDDED_BYTES_MAX`], to hold on to without copying them.
    pub fn share(&mut self) -> Option<Bytes> {
        if self.as_ref().len() <= EMBEDDED_BYTES_MAX {
            return None;
        }
        if let Self::Raw(bytes) = self {
            // At this length no command sees the difference.
            *self = Self::Bytes(std::mem::take(bytes).into());
        }
        match self {
            Self::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

impl PartialEq for StringValue {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for StringValue {}

impl<'a> ValueRef<'a> {
    /// A string from a client: an integer if it is the only spelling of one.
    #[must_use]
    pub fn string(bytes: &'a [u8]) -> Self {
        Self::String(match integer::parse(bytes) {
            Some(number) => StringRef::Integer(number),
            None => StringRef::Bytes(bytes),
        })
    }

    /// An owned copy.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::String(string) => Value::String(string.to_value()),
            Self::Hash(hash) => Value::Hash(Box::new(hash.clone())),
            Self::List(list) => Value::List(Box::new(list.clone())),
            Self::Stream(stream) => Value::Stream(Box::new(stream.clone())),
            Self::Set(set) => Value::Set(Box::new(set.clone())),
            Self::SortedSet(set) => Value::SortedSet(Box::new(set.clone())),
        }
    }

    /// What its full state takes between nodes, or somewhat more, bytes.
    #[must_use]
    pub fn state_bytes(self) -> usize {
        /// What the length of an item takes at most, or a deadline or score beside it.
        const BESIDE: usize = 10;
        match self {
            Self::String(string) => string.len(),
            Self::Hash(hash) => hash.item_bytes() + 3 * BESIDE * hash.total(),
            Self::List(list) => list.item_bytes(),
            Self::Stream(stream) => stream.heap_bytes(),
            Self::Set(set) => set.item_bytes() + BESIDE * set.len(),
            Self::SortedSet(set) => set.item_bytes() + 2 * BESIDE * set.len(),
        }
    }

    /// What `TYPE` answers.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Stream(_) => "stream",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        match self {
            Self::String(string) => string.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::List(list) => list.encoding(),
            Self::Stream(stream) => stream.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
        }
    }
}

impl PartialEq for StringRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.encoding() == other.encoding() && self.bytes() == other.bytes()
    }
}

impl Eq for StringRef<'_> {}

impl<'a> StringRef<'a> {
    /// An owned copy.
    #[must_use]
    pub fn to_value(self) -> StringValue {
        match self {
            Self::Integer(number) => StringValue::Integer(number),
            Self::Bytes(bytes) => StringValue::Bytes(Bytes::copy_from_slice(bytes)),
            Self::Raw(bytes) => StringValue::Raw(bytes.to_vec()),
        }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Integer(_) => "int",
            Self::Bytes(bytes) if bytes.len() <= EMBEDDED_BYTES_MAX => "embstr",
            Self::Bytes(_) | Self::Raw(_) => "raw",
        }
    }

    /// Its length as text, bytes.
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Integer(number) => integer::text_len(number),
            Self::Bytes(bytes) | Self::Raw(bytes) => bytes.len(),
        }
    }

    /// Whether it is the empty string.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its text; copied only where it is kept as an integer.
    #[must_use]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::Integer(number) => Cow::Owned(decimal(number, &mut [0; 20]).to_vec()),
            Self::Bytes(bytes) | Self::Raw(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The integer that it is or spells.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Bytes(bytes) | Self::Raw(bytes) => integer::parse(bytes),
        }
    }
}
