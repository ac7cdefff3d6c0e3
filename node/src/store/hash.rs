//! Hashes: fields with values.
//!
//! For: the data of `HSET` and kin; small ones packed, larger ones in a table. Fields may have deadlines (`deadlines`).
//! Not here: what a command means (`command::hash`), bytes between nodes (`replication::effect`).
//!
//! Fields keep an order: that in which they came, except that the last one takes the place of one that is removed.
//! It follows from the changes alone, so it is the same on all copies, and a walk from the end (`scan`) goes on at
//! another copy without missing a field.

use indexmap::IndexMap;

use super::collection::{Keyed, Scan};
use super::packed::Packed;
use deadlines::Deadlines;

mod deadlines;

/// Most fields, and longest field or value in bytes, of a packed hash (Redis' defaults).
pub const PACKED_FIELDS_MAX: usize = 512;
/// See [`PACKED_FIELDS_MAX`].
pub const PACKED_ITEM_BYTES_MAX: usize = 64;

/// A hash. Two are equal if they have the same fields with the same values and deadlines.
///
/// Fields whose deadline has passed are hidden from readers ([`Self::hide`]), until a primary removes them.
#[derive(Clone, Debug, Default)]
pub struct Hash {
    form: Form,
    /// Only where a field has one.
    deadlines: Option<Box<Deadlines>>,
}

#[derive(Clone, Debug)]
enum Form {
    /// Field, value, field, value …
    Packed(Packed),
    /// `items` counts the bytes of all fields and values.
    Table { fields: IndexMap<Box<[u8]>, Box<[u8]>, Keyed>, items: usize },
}

/// What happens to a hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashChange<'a> {
    /// The field has this value now, and no deadline.
    Set {
        /// The field.
        field: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// The field is gone.
    Delete {
        /// The field.
        field: &'a [u8],
    },
    /// The field, if it is there, has this deadline now.
    Deadline {
        /// The field.
        field: &'a [u8],
        /// Unix ms; `None` if it has none.
        deadline_ms: Option<u64>,
    },
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

impl Hash {
    /// How it is kept, as a number for [`Hash::in_form`].
    #[must_use]
    pub fn form(&self) -> u8 {
        self.is_table().into()
    }

    /// An empty one that is kept so, as long as what comes into it allows.
    #[must_use]
    pub fn in_form(form: u8) -> Self {
        if form == 0 { Self::default() } else { Self::table() }
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.total() - self.hidden()
    }

    /// Number of fields, hidden ones included.
    #[must_use]
    pub fn total(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len() / 2,
            Form::Table { fields, .. } => fields.len(),
        }
    }

    fn hidden(&self) -> usize {
        self.deadlines.as_ref().map_or(0, |deadlines| deadlines.hidden())
    }

    fn hides(&self, field: &[u8]) -> bool {
        self.deadlines.as_ref().is_some_and(|deadlines| deadlines.hides(field))
    }

    /// No fields, and no hidden ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<&[u8]> {
        if self.hides(field) { None } else { self.find(field) }
    }

    /// The deadline of a field, Unix ms.
    #[must_use]
    pub fn deadline(&self, field: &[u8]) -> Option<u64> {
        let deadlines = self.deadlines.as_ref()?;
        deadlines.get(field).filter(|_| !deadlines.hides(field))
    }

    /// The earliest deadline of a field, Unix ms.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.as_ref()?.ends().map(|(first, _)| first)
    }

    /// Whether all fields have a deadline before `now_ms`.
    #[must_use]
    pub fn is_over(&self, now_ms: u64) -> bool {
        let Some(deadlines) = &self.deadlines else { return false };
        deadlines.len() == self.total() && deadlines.ends().is_some_and(|(_, last)| last < now_ms)
    }

    /// Hides the fields whose deadline lies before `now_ms`, and no other.
    pub fn hide(&mut self, now_ms: u64) {
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.hide(now_ms);
        }
    }

    /// At most `count` of the fields whose deadline lies before `now_ms`, the earliest first.
    #[must_use]
    pub fn due(&self, now_ms: u64, count: usize) -> Vec<std::sync::Arc<[u8]>> {
        let due = self.deadlines.iter().flat_map(|deadlines| deadlines.due(now_ms));
        due.take(count).cloned().collect()
    }

    fn find(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.form {
            Form::Packed(packed) => {
                let mut items = packed.iter();
                while let (Some(found), Some(value)) = (items.next(), items.next()) {
                    if found == field {
                        return Some(value);
                    }
                }
                None
            }
            Form::Table { fields, .. } => fields.get(field).map(|value| &value[..]),
        }
    }

    /// The field with this index, below [`Self::len`], and its value.
    #[must_use]
    pub fn nth(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if self.hidden() > 0 { self.iter().nth(index) } else { self.at(index) }
    }

    /// The field with this index in the hash's order, as [`Self::scan`] gives it, unless it is hidden.
    #[must_use]
    pub fn scanned(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.at(index).filter(|(field, _)| !self.hides(field))
    }

    fn at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match &self.form {
            Form::Packed(packed) => packed.get(2 * index).zip(packed.get(2 * index + 1)),
            Form::Table { fields, .. } => {
                fields.get_index(index).map(|(field, value)| (&field[..], &value[..]))
            }
        }
    }

    /// The field with this index in the hash's order, with its value and deadline; hidden or not.
    #[must_use]
    pub fn whole(&self, index: usize) -> Option<(&[u8], &[u8], Option<u64>)> {
        let (field, value) = self.at(index)?;
        Some((field, value, self.deadlines.as_ref().and_then(|deadlines| deadlines.get(field))))
    }

    /// The index of a field in the hash's order; hidden or not.
    #[must_use]
    pub fn index_of(&self, field: &[u8]) -> Option<usize> {
        match &self.form {
            Form::Packed(packed) => position(packed, field),
            Form::Table { fields, .. } => fields.get_index_of(field),
        }
    }

    /// An empty one that never was packed.
    #[must_use]
    pub fn table() -> Self {
        let mut hash = Self::default();
        hash.unpack();
        hash
    }

    /// Whether it is not packed (any more).
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.form, Form::Table { .. })
    }

    /// Fields and values, in the hash's order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.all().filter(move |(field, _)| !self.hides(field))
    }

    /// The deadlines of all fields, in the hash's order; `None` if no field has one.
    pub fn deadlines(&self) -> Option<impl Iterator<Item = Option<u64>>> {
        let deadlines = self.deadlines.as_ref()?;
        Some(self.all().map(move |(field, _)| deadlines.get(field)))
    }

    /// Fields and values, hidden ones included, in the hash's order.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let (packed, table) = match &self.form {
            Form::Packed(packed) => (Some(packed.iter()), None),
            Form::Table { fields, .. } => (None, Some(fields.iter())),
        };
        let pairs = packed.map(|mut items| std::iter::from_fn(move || items.next().zip(items.next())));
        let entries = table.into_iter().flatten().map(|(field, value)| (&field[..], &value[..]));
        pairs.into_iter().flatten().chain(entries)
    }

    /// The next fields of a walk, by their indexes: from the end downwards, so that what a removal moves was seen.
    /// A packed hash is walked in one step.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: usize) -> Scan {
        match &self.form {
            Form::Packed(_) => Scan::whole(self.total()),
            Form::Table { fields, .. } => Scan::downwards(fields.len(), cursor, count),
        }
    }

    /// Does what a primary did.
    pub fn apply(&mut self, change: &HashChange<'_>) {
        match *change {
            HashChange::Set { field, value } => {
                self.set_deadline(field, None);
                self.set(field, value);
            }
            HashChange::Delete { field } => {
                self.set_deadline(field, None);
                self.delete(field);
            }
            HashChange::Deadline { field, deadline_ms } => {
                if self.find(field).is_some() {
                    self.set_deadline(field, deadline_ms);
                }
            }
        }
    }

    fn set_deadline(&mut self, field: &[u8], deadline_ms: Option<u64>) {
        if deadline_ms.is_none() && self.deadlines.is_none() {
            return;
        }
        let deadlines = self.deadlines.get_or_insert_default();
        deadlines.set(field, deadline_ms);
        if deadlines.is_empty() {
            self.deadlines = None;
        }
    }

    fn set(&mut self, field: &[u8], value: &[u8]) {
        if field.len().max(value.len()) > PACKED_ITEM_BYTES_MAX {
            self.unpack();
        }
        match &mut self.form {
            Form::Packed(packed) => match position(packed, field) {
                Some(index) => packed.replace(2 * index + 1, value),
                None => {
                    packed.push(field);
                    packed.push(value);
                    if packed.len() > 2 * PACKED_FIELDS_MAX {
                        self.unpack();
                    }
                }
            },
            Form::Table { fields, items } => match fields.get_mut(field) {
                Some(old) => {
                    *items = *items + value.len() - old.len();
                    *old = value.into();
                }
                None => {
                    *items += field.len() + value.len();
                    fields.insert(field.into(), value.into());
                }
            },
        }
    }

    fn delete(&mut self, field: &[u8]) {
        match &mut self.form {
            Form::Packed(packed) => {
                if let Some(index) = position(packed, field) {
                    packed.remove(2 * index, 2);
                }
            }
            Form::Table { fields, items } => {
                if let Some((field, value)) = fields.swap_remove_entry(field) {
                    *items -= field.len() + value.len();
                    if fields.capacity() > 4 * fields.len().max(8) {
                        fields.shrink_to(2 * fields.len());
                    }
                }
            }
        }
    }

    /// Becomes a table, in the same order.
    fn unpack(&mut self) {
        if let Form::Packed(_) = self.form {
            let mut fields = IndexMap::with_capacity_and_hasher(self.total() + 1, Keyed);
            let mut items = 0;
            for (field, value) in self.all() {
                items += field.len() + value.len();
                fields.insert(field.into(), value.into());
            }
            self.form = Form::Table { fields, items };
        }
    }

    /// Bytes of all fields and values, or somewhat more.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.bytes(),
            Form::Table { items, .. } => *items,
        }
    }

    /// What it holds on the heap, itself included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let deadlines = self.deadlines.as_ref().map_or(0, |deadlines| deadlines.heap_bytes());
        size_of::<Self>()
            + deadlines
            + match &self.form {
                Form::Packed(packed) => packed.heap_bytes(),
                Form::Table { fields, items } => {
                    items + super::collection::table_bytes::<(Box<[u8]>, Box<[u8]>)>(fields.capacity())
                }
            }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Packed(_) if self.deadlines.is_some() => "listpackex",
            Form::Packed(_) => "listpack",
            Form::Table { .. } => "hashtable",
        }
    }
}

/// The index of a field.
fn position(packed: &Packed, field: &[u8]) -> Option<usize> {
    packed.iter().step_by(2).position(|found| found == field)
}

impl PartialEq for Hash {
    fn eq(&self, other: &Self) -> bool {
        self.total() == other.total()
            && self.deadlines == other.deadlines
            && self.all().all(|(field, value)| other.find(field) == Some(value))
    }
}

impl Eq for Hash {}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    fn name(number: u16) -> Vec<u8> {
        // Every seventh is too long for a packed hash.
        let length = if number % 7 == 6 { 70 } else { 1 };
        number.to_string().repeat(length).into_bytes()
    }

    proptest! {
        #[test]
        fn it_behaves_like_a_map(
            steps in proptest::collection::vec((0..5u8, 0..900u16, any::<u16>()), 1..1200),
            has_long in any::<bool>(),
        ) {
            let (mut hash, mut model) = (Hash::default(), HashMap::new());
            for (kind, field, value) in steps {
                let field = if has_long { name(field) } else { field.to_string().into_bytes() };
                let value = name(if has_long { value } else { value % 5 });
                if kind == 0 {
                    hash.apply(&HashChange::Delete { field: &field });
                    model.remove(&field);
                } else {
                    hash.apply(&HashChange::Set { field: &field, value: &value });
                    model.insert(field.clone(), value.clone());
                }
                prop_assert_eq!(hash.get(&field), model.get(&field).map(Vec::as_slice));
            }
            prop_assert_eq!(hash.len(), model.len());
            prop_assert!(hash.iter().all(|(field, value)| model.get(field).map(Vec::as_slice) == Some(value)));
            prop_assert!(hash.iter().enumerate().all(|(at, pair)| hash.nth(at) == Some(pair)));
            if let Form::Table { items, .. } = hash.form {
                prop_assert_eq!(items, model.iter().map(|(field, value)| field.len() + value.len()).sum::<usize>());
            }
        }

        #[test]
        fn a_walk_sees_what_stays(
            removed in proptest::collection::vec(0..700usize, 0..200),
            count in 1..100usize,
        ) {
            let mut hash = Hash::default();
            for number in 0..700 {
                hash.apply(&HashChange::Set { field: &name(number), value: b"" });
            }
            let (mut cursor, mut seen, mut gone) = (0, Vec::new(), removed.iter());
            loop {
                let scan = hash.scan(cursor, count);
                seen.extend(scan.indexes.filter_map(|index| hash.nth(index)).map(|(field, _)| field.to_vec()));
                cursor = scan.next;
                if let Some(&number) = gone.next() {
                    hash.apply(&HashChange::Delete { field: &name(number as u16) });
                }
                if cursor == 0 {
                    break;
                }
            }
            prop_assert!(hash.iter().all(|(field, _)| seen.iter().any(|seen| seen == field)));
        }
    }
}
