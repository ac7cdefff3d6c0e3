//! The full state of a collection, as bytes.
//!
//! For: chunks, repairs, and commands that make a whole collection.
//! Not here: changes inside one (`change`).
//!
//! ```text
//! state = kind | varint number of items | items       item = varint length, bytes
//! hash  = field value field value … [deadlines]      deadlines: of each field, varint deadline + 1, or 0
//! ```
//! What is read is checked whole, so that making a value of it cannot fail.

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_length, take_varint};
use crate::store::{Hash, HashChange, Kind, Value, ValueRef};

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
            let deadlines = hash.deadlines();
            head(out, Kind::Hash, 2 * hash.total() + usize::from(deadlines.is_some()));
            for (field, value) in hash.all() {
                put_bytes(out, field);
                put_bytes(out, value);
            }
            if let Some(deadlines) = deadlines {
                let mut part = BytesMut::new();
                deadlines.for_each(|deadline| {
                    put_varint(&mut part, deadline.map_or(0, |at| at.saturating_add(1)))
                });
                put_bytes(out, &part);
            }
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
            Kind::Hash => {
                let fields = self.count / 2;
                let mut deadlines = self.items().skip(2 * fields).map(take_deadlines);
                fields > 0 && deadlines.all(|found| found.is_some_and(|all| all.len() == fields))
            }
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
                let mut fields = Vec::new();
                for _ in 0..self.count / 2 {
                    let Some((field, value)) = items.next().zip(items.next()) else { break };
                    hash.apply(&HashChange::Set { field, value });
                    fields.push(field);
                }
                let deadlines = items.next().and_then(take_deadlines).unwrap_or_default();
                for (field, deadline_ms) in fields.into_iter().zip(deadlines) {
                    hash.apply(&HashChange::Deadline { field, deadline_ms });
                }
                Value::Hash(Box::new(hash))
            }
        }
    }
}

/// Deadlines of fields, in the order of the fields.
fn take_deadlines(mut part: &[u8]) -> Option<Vec<Option<u64>>> {
    let mut deadlines = Vec::new();
    while !part.is_empty() {
        deadlines.push(take_varint(&mut part).ok()?.checked_sub(1));
    }
    Some(deadlines)
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
        fn a_hash_reads_back(
            pairs in proptest::collection::hash_map(any::<Vec<u8>>(), any::<(Vec<u8>, Option<u64>)>(), 1..50),
        ) {
            let mut hash = Hash::default();
            for (field, (value, deadline)) in &pairs {
                hash.apply(&HashChange::Set { field, value });
                let deadline_ms = deadline.filter(|deadline| *deadline < u64::MAX);
                hash.apply(&HashChange::Deadline { field, deadline_ms });
            }
            let value = Value::Hash(Box::new(hash));
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
