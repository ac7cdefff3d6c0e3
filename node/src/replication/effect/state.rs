//! The full state of a collection, as bytes.
//!
//! For: chunks, repairs, and commands that make a whole collection.
//! Not here: changes inside one (`change`).
//!
//! ```text
//! state = kind | varint number of items | items       item = varint length, bytes
//! hash  = field value field value …
//! list  = item item …
//! ```
//! What is read is checked whole, so that making a value of it cannot fail.

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_length};
use crate::store::{Hash, HashChange, Kind, List, ListChange, Value, ValueRef};

/// A collection's state, still as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<'a> {
    kind: Kind,
    count: usize,
    items: &'a [u8],
}

/// Appends a collection's state; a string has none.
pub(super) fn put(out: &mut BytesMut, value: ValueRef<'_>) {
    match value {
        ValueRef::String(_) => debug_assert!(false, "a string is a value, not a state"),
        ValueRef::Hash(hash) => {
            head(out, Kind::Hash, 2 * hash.len());
            for (field, value) in hash.iter() {
                put_bytes(out, field);
                put_bytes(out, value);
            }
        }
        ValueRef::List(list) => {
            head(out, Kind::List, list.len());
            list.iter().for_each(|item| put_bytes(out, item));
        }
    }
}

fn head(out: &mut BytesMut, kind: Kind, items: usize) {
    out.put_u8(kind as u8);
    put_varint(out, items as u64);
}

impl<'a> State<'a> {
    /// Appends the bytes that it was read from.
    pub(super) fn put(&self, out: &mut BytesMut) {
        head(out, self.kind, self.count);
        out.put_slice(self.items);
    }

    /// Takes a state from the front of `input`.
    pub(super) fn take(input: &mut &'a [u8]) -> Result<Self, EffectError> {
        let kind = take_byte(input)?;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = kind.ok_or(EffectError::Malformed)?;
        let count = take_length(input)?;
        let start = *input;
        for _ in 0..count {
            take_bytes(input)?;
        }
        let state = Self { kind, count, items: &start[..start.len() - input.len()] };
        if state.is_whole() { Ok(state) } else { Err(EffectError::Malformed) }
    }

    fn is_whole(&self) -> bool {
        match self.kind {
            Kind::Hash => self.count > 0 && self.count.is_multiple_of(2),
            Kind::List => self.count > 0,
        }
    }

    /// The items, in order.
    fn items(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.items;
        std::iter::from_fn(move || take_bytes(&mut rest).ok())
    }

    /// The collection.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut items = self.items();
        match self.kind {
            Kind::Hash => {
                let mut hash = Hash::default();
                while let Some((field, value)) = items.next().zip(items.next()) {
                    hash.apply(&HashChange::Set { field, value });
                }
                Value::Hash(Box::new(hash))
            }
            Kind::List => {
                let mut list = List::default();
                items.for_each(|item| list.apply(&ListChange::PushBack { item }));
                Value::List(Box::new(list))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_back(value: &Value) -> Value {
        let mut out = BytesMut::new();
        put(&mut out, value.as_ref());
        let mut input = &out[..];
        let state = State::take(&mut input).expect("it was just written");
        assert!(input.is_empty());
        for len in 0..out.len() {
            assert!(State::take(&mut &out[..len]).is_err(), "a part is not a state");
        }
        let mut again = BytesMut::new();
        state.put(&mut again);
        assert_eq!(again, out);
        state.to_value()
    }

    proptest! {
        #[test]
        fn a_hash_reads_back(pairs in proptest::collection::hash_map(any::<Vec<u8>>(), any::<Vec<u8>>(), 1..50)) {
            let mut hash = Hash::default();
            for (field, value) in &pairs {
                hash.apply(&HashChange::Set { field, value });
            }
            let value = Value::Hash(Box::new(hash));
            prop_assert_eq!(read_back(&value), value);
        }

        #[test]
        fn a_list_reads_back(items in proptest::collection::vec(any::<Vec<u8>>(), 1..50)) {
            let mut list = List::default();
            items.iter().for_each(|item| list.apply(&ListChange::PushBack { item }));
            let value = Value::List(Box::new(list));
            prop_assert_eq!(read_back(&value), value);
        }

        #[test]
        fn any_bytes_are_a_state_or_an_error(bytes: Vec<u8>) {
            for kind in Kind::ALL {
                let input = [&[kind as u8][..], &bytes].concat();
                if let Ok(state) = State::take(&mut &input[..]) {
                    let _ = state.to_value();
                }
            }
        }
    }
}
