//! The full state of a collection, as bytes.
//!
//! For: chunks, repairs, and commands that make a whole collection.
//! Not here: changes inside one (`change`).
//!
//! ```text
//! state = kind + 16 * form | varint number of items | items       item = varint length, bytes
//! hash  = field value field value … [deadlines]      deadlines: of each field, varint deadline + 1, or 0
//! list  = item item …
//! stream: see `store::xstream::parts`
//! set   = member member …
//! sorted set = member score member score …                   score = 8 bytes, little-endian, not NaN
//! ```
//! The form is that in which the collection is kept (a hash or sorted set, 1: a table; a set, 1: packed, 2: a table).
//! It does not follow from the items: what has shrunk stays a table, and the order after the next change hangs on it.
//! What is read is checked whole, so that making a value of it cannot fail.

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_length, take_varint};
use crate::store::{Hash, HashChange, Kind, ListChange, Score, Set, SortedSet, Stream, Value, ValueRef};

/// A collection's state, still as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State<'a> {
    kind: Kind,
    form: u8,
    count: usize,
    items: &'a [u8],
}

/// Appends a collection's state; a string has none.
pub(super) fn put(out: &mut BytesMut, value: ValueRef<'_>) {
    match value {
        ValueRef::String(_) => debug_assert!(false, "a string is a value, not a state"),
        ValueRef::Hash(hash) => {
            let deadlines = hash.deadlines();
            head(out, Kind::Hash, hash.form(), 2 * hash.total() + usize::from(deadlines.is_some()));
            for (field, value) in hash.all() {
                put_bytes(out, field);
                put_bytes(out, value);
            }
            if let Some(deadlines) = deadlines {
                put_bytes(out, &put_deadlines(deadlines));
            }
        }
        ValueRef::List(list) => {
            head(out, Kind::List, 0, list.len());
            list.iter().for_each(|item| put_bytes(out, item));
        }
        ValueRef::Stream(stream) => {
            head(out, Kind::Stream, 0, stream.parts_len());
            stream.parts(|part| put_bytes(out, part));
        }
        ValueRef::Set(set) => {
            head(out, Kind::Set, set.form(), set.len());
            set.iter().for_each(|member| put_bytes(out, &member.bytes()));
        }
        ValueRef::SortedSet(set) => {
            head(out, Kind::SortedSet, set.form(), 2 * set.len());
            for (member, score) in set.iter() {
                put_bytes(out, member);
                put_bytes(out, &score.to_bytes());
            }
        }
    }
}

/// The deadlines of fields, in the order of the fields.
pub(super) fn put_deadlines(deadlines: impl Iterator<Item = Option<u64>>) -> BytesMut {
    let mut part = BytesMut::new();
    deadlines.for_each(|deadline| put_varint(&mut part, deadline.map_or(0, |at| at.saturating_add(1))));
    part
}

/// Largest number of a form.
const FORM_MAX: u8 = 2;

fn head(out: &mut BytesMut, kind: Kind, form: u8, items: usize) {
    out.put_u8(kind as u8 | form << 4);
    put_varint(out, items as u64);
}

impl<'a> State<'a> {
    /// Appends the bytes that it was read from.
    pub(super) fn put(&self, out: &mut BytesMut) {
        head(out, self.kind, self.form, self.count);
        out.put_slice(self.items);
    }

    /// Takes a state from the front of `input`.
    pub(super) fn take(input: &mut &'a [u8]) -> Result<Self, EffectError> {
        let byte = take_byte(input)?;
        let form = byte >> 4;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == byte & 0xf && form <= FORM_MAX);
        let kind = kind.ok_or(EffectError::Malformed)?;
        let count = take_length(input)?;
        let start = *input;
        for _ in 0..count {
            take_bytes(input)?;
        }
        let state = Self { kind, form, count, items: &start[..start.len() - input.len()] };
        if state.is_whole() { Ok(state) } else { Err(EffectError::Malformed) }
    }

    fn is_whole(&self) -> bool {
        match self.kind {
            Kind::Hash => {
                let fields = self.count / 2;
                let mut deadlines = self.items().skip(2 * fields).map(take_deadlines);
                fields > 0 && deadlines.all(|found| found.is_some_and(|all| all.len() == fields))
            }
            Kind::List => self.count > 0,
            // What may be wrong with it shows when it is built.
            Kind::Stream => Stream::from_parts(self.items()).is_some(),
            Kind::Set => self.count > 0,
            Kind::SortedSet => {
                let mut scores = self.items().skip(1).step_by(2);
                self.count > 0
                    && self.count.is_multiple_of(2)
                    && scores.all(|score| Score::from_bytes(score).is_some())
            }
        }
    }

    /// The items, in order.
    fn items(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.items;
        std::iter::from_fn(move || take_bytes(&mut rest).ok())
    }

    /// What kind of collection it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The collection.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = match self.kind {
            Kind::Hash => Value::Hash(Box::new(Hash::in_form(self.form))),
            Kind::Set => Value::Set(Box::new(Set::in_form(self.form))),
            Kind::SortedSet => Value::SortedSet(Box::new(SortedSet::in_form(self.form))),
            Kind::List | Kind::Stream => self.kind.empty(),
        };
        // A stream that is none stays empty.
        let _ = self.append_to(&mut value);
        value
    }

    /// Adds its items behind those of a collection of the same kind; whether they fit there.
    #[must_use]
    pub fn append_to(&self, value: &mut Value) -> bool {
        let mut items = self.items();
        match (self.kind, value) {
            (Kind::Hash, Value::Hash(hash)) => {
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
                true
            }
            (Kind::List, Value::List(list)) => {
                items.for_each(|item| list.apply(&ListChange::PushBack { item }));
                true
            }
            (Kind::Stream, Value::Stream(stream)) => stream.append_parts(items),
            (Kind::Set, Value::Set(set)) => {
                items.for_each(|member| set.add(member));
                true
            }
            (Kind::SortedSet, Value::SortedSet(set)) => {
                while let Some((member, score)) = items.next().zip(items.next()) {
                    set.put(member, Score::from_bytes(score).unwrap_or_default());
                }
                true
            }
            _ => false,
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
    use crate::store::xstream::{Fields, StreamChange, StreamId};
    use crate::store::{List, SetChange, SortedSetChange};
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
        fn a_list_reads_back(items in proptest::collection::vec(any::<Vec<u8>>(), 1..50)) {
            let mut list = List::default();
            items.iter().for_each(|item| list.apply(&ListChange::PushBack { item }));
            let value = Value::List(Box::new(list));
            prop_assert_eq!(read_back(&value), value);
        }

        #[test]
        fn a_set_reads_back(members in proptest::collection::btree_set(any::<Vec<u8>>(), 1..30)) {
            let mut set = Set::default();
            members.iter().for_each(|member| set.add(member));
            let value = Value::Set(Box::new(set));
            prop_assert_eq!(read_back(&value), value);
        }

        #[test]
        fn a_stream_reads_back(
            values in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..99), 0..250), group: Vec<u8>,
        ) {
            let mut stream = Stream::default();
            for (number, value) in values.iter().enumerate() {
                let bytes = Fields::encode([&group[..], value].into_iter());
                let fields = Fields::from_bytes(&bytes).expect("one pair");
                stream.apply(&StreamChange::Add { id: StreamId::new(number as u64, 7), fields });
            }
            let (last_id, group, consumer) = (stream.last_id(), &group[..], &group[..]);
            stream.apply(&StreamChange::SetGroup { group, last_id, entries_read: None });
            stream.apply(&StreamChange::See { group, consumer, now_ms: 3, is_active: true });
            let value = Value::Stream(Box::new(stream));
            prop_assert_eq!(read_back(&value), value);
        }

        #[test]
        fn a_sorted_set_reads_back(pairs in proptest::collection::hash_map(any::<Vec<u8>>(), any::<f64>(), 1..30)) {
            let mut set = SortedSet::default();
            for (member, score) in &pairs {
                set.put(member, Score::new(*score).unwrap_or_default());
            }
            let value = Value::SortedSet(Box::new(set));
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

    /// The value and a copy made of its state change in the same way; then the bytes must be the same.
    fn assert_stay_equal(mut value: Value, change: impl Fn(&mut Value)) {
        let mut copy = read_back(&value);
        let bytes = [&mut value, &mut copy].map(|value| {
            change(value);
            let mut bytes = BytesMut::new();
            put(&mut bytes, value.as_ref());
            bytes
        });
        assert_eq!(bytes[0], bytes[1]);
    }

    #[test]
    fn what_has_shrunk_keeps_the_order_of_its_form() {
        let mut set = Set::default();
        ["3", "two"].iter().for_each(|member| set.add(member.as_bytes()));
        set.apply(&SetChange::Remove { member: b"two" });
        assert_stay_equal(Value::Set(Box::new(set)), |value| {
            let Value::Set(set) = value else { unreachable!() };
            set.add(b"1");
        });
        let names: Vec<String> = (0..600).map(|number| format!("m{number}")).collect();
        let (mut set, mut hash, mut sorted) = (Set::default(), Hash::default(), SortedSet::default());
        for member in names.iter().map(String::as_bytes) {
            set.add(member);
            hash.apply(&HashChange::Set { field: member, value: member });
            sorted.put(member, Score::default());
        }
        for member in names[..590].iter().map(String::as_bytes) {
            set.apply(&SetChange::Remove { member });
            hash.apply(&HashChange::Delete { field: member });
            sorted.apply(&SortedSetChange::Remove { member });
        }
        let values =
            [Value::Set(Box::new(set)), Value::Hash(Box::new(hash)), Value::SortedSet(Box::new(sorted))];
        for value in values {
            assert_stay_equal(value, |value| {
                let member = names[592].as_bytes();
                match value {
                    Value::Set(set) => set.apply(&SetChange::Remove { member }),
                    Value::Hash(hash) => hash.apply(&HashChange::Delete { field: member }),
                    Value::SortedSet(set) => set.apply(&SortedSetChange::Remove { member }),
                    _ => unreachable!(),
                }
            });
        }
    }

    #[test]
    fn a_score_is_a_number() {
        for (score, is_one) in [(f64::INFINITY, true), (-0.0, true), (f64::NAN, false)] {
            let mut bytes = BytesMut::new();
            head(&mut bytes, Kind::SortedSet, 0, 2);
            put_bytes(&mut bytes, b"m");
            put_bytes(&mut bytes, &score.to_le_bytes());
            assert_eq!(State::take(&mut &bytes[..]).is_ok(), is_one);
        }
        assert!(State::take(&mut &b"\x03\x02\x01m\x07seven..."[..]).is_err());
    }
}
