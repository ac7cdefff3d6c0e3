//! One key with its value, deadline and access mark, in as little memory as is simple.
//!
//! For: keeping a small string and its key in one allocation behind one fat pointer.
//! Not here: accounts and indexes over entries (`keyspace`).
//!
//! A packed entry is `flags 1 | access 4 | key length 2 | [deadline 8] | key | value`,
//! so a key of 16 bytes with a value of 64 takes 87 bytes and a bucket of 16.

use bytes::Bytes;

use super::garbage::LARGE_VALUE_BYTES;
use super::value::{StringRef, StringValue, Value, ValueRef};

/// Longest packed entry, bytes: above this the share of the header that a wide one costs is small,
/// and copying a whole entry to change it is not.
const PACKED_BYTES_MAX: usize = 512;
const HEADER_BYTES: usize = 7;
const DEADLINE_BYTES: usize = 8;

const FLAG_DEADLINE: u8 = 1;
const KIND_SHIFT: u8 = 1;
const KIND_BYTES: u8 = 0;
const KIND_INTEGER: u8 = 1;
const KIND_RAW: u8 = 2;

/// When something of an entry ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Dues {
    /// The deadline of the key itself, Unix ms.
    pub of_key: Option<u64>,
    /// The earliest deadline of the key and its fields, Unix ms.
    pub first: Option<u64>,
}

/// A key and all that belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry(Form);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    /// A short string value beside its key.
    Packed(Box<[u8]>),
    /// Everything else.
    Wide(Box<Wide>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Wide {
    key: Box<[u8]>,
    value: Value,
    deadline_ms: Option<u64>,
    access: u32,
}

// A bucket is a fat pointer; the second form fits into what the first leaves free.
const _: () = assert!(size_of::<Entry>() == 16);

fn packed_len(key: &[u8], value: ValueRef<'_>, deadline_ms: Option<u64>) -> Option<usize> {
    let ValueRef::String(string) = value else { return None };
    let value_len = match string {
        StringRef::Integer(_) => 8,
        StringRef::Bytes(bytes) | StringRef::Raw(bytes) => bytes.len(),
    };
    let head = HEADER_BYTES + if deadline_ms.is_some() { DEADLINE_BYTES } else { 0 };
    let len = head.checked_add(key.len())?.checked_add(value_len)?;
    (len <= PACKED_BYTES_MAX).then_some(len)
}

/// Where things are in a packed entry.
struct Layout {
    key: usize,
    value: usize,
}

fn layout(packed: &[u8]) -> Layout {
    let key = HEADER_BYTES + if packed[0] & FLAG_DEADLINE != 0 { DEADLINE_BYTES } else { 0 };
    Layout { key, value: key + usize::from(u16::from_le_bytes([packed[5], packed[6]])) }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes[..8].try_into().expect("eight bytes were taken")
}

impl Entry {
    /// A new entry with its own copy of `key` and `value`.
    #[must_use]
    pub fn new(key: &[u8], value: ValueRef<'_>, deadline_ms: Option<u64>, access: u32) -> Self {
        let (Some(len), ValueRef::String(string)) = (packed_len(key, value, deadline_ms), value) else {
            return Self::wide(key.into(), value.to_value(), deadline_ms, access);
        };
        let mut packed = Vec::with_capacity(len);
        let kind = match string {
            StringRef::Bytes(_) => KIND_BYTES,
            StringRef::Integer(_) => KIND_INTEGER,
            StringRef::Raw(_) => KIND_RAW,
        };
        packed.push(kind << KIND_SHIFT | if deadline_ms.is_some() { FLAG_DEADLINE } else { 0 });
        packed.extend_from_slice(&access.to_le_bytes());
        packed.extend_from_slice(&(key.len() as u16).to_le_bytes());
        if let Some(deadline) = deadline_ms {
            packed.extend_from_slice(&deadline.to_le_bytes());
        }
        packed.extend_from_slice(key);
        match string {
            StringRef::Integer(number) => packed.extend_from_slice(&number.to_le_bytes()),
            StringRef::Bytes(bytes) | StringRef::Raw(bytes) => packed.extend_from_slice(bytes),
        }
        debug_assert_eq!(packed.len(), len);
        Self(Form::Packed(packed.into_boxed_slice()))
    }

    /// A new entry that takes `value` over; a small string is packed.
    #[must_use]
    pub fn from_value(key: &[u8], value: Value, deadline_ms: Option<u64>, access: u32) -> Self {
        if packed_len(key, value.as_ref(), deadline_ms).is_some() {
            return Self::new(key, value.as_ref(), deadline_ms, access);
        }
        Self::wide(key.into(), value, deadline_ms, access)
    }

    fn wide(key: Box<[u8]>, value: Value, deadline_ms: Option<u64>, access: u32) -> Self {
        Self(Form::Wide(Box::new(Wide { key, value, deadline_ms, access })))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match &self.0 {
            Form::Packed(packed) => {
                let at = layout(packed);
                &packed[at.key..at.value]
            }
            Form::Wide(wide) => &wide.key,
        }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> ValueRef<'_> {
        match &self.0 {
            Form::Packed(packed) => {
                let bytes = &packed[layout(packed).value..];
                ValueRef::String(match packed[0] >> KIND_SHIFT {
                    KIND_INTEGER => StringRef::Integer(i64::from_le_bytes(eight(bytes))),
                    KIND_RAW => StringRef::Raw(bytes),
                    _ => StringRef::Bytes(bytes),
                })
            }
            Form::Wide(wide) => wide.value.as_ref(),
        }
    }

    /// An owned copy of the value; a long string that was set as a whole is shared, not copied.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.0 {
            Form::Packed(_) => self.value().to_value(),
            Form::Wide(wide) => wide.value.clone(),
        }
    }

    /// A large string that is kept so that it can be held on to without copying.
    #[must_use]
    pub(super) fn to_shared(&self) -> Option<Bytes> {
        match &self.0 {
            Form::Wide(wide) => match &wide.value {
                Value::String(StringValue::Bytes(bytes)) if bytes.len() >= LARGE_VALUE_BYTES => {
                    Some(bytes.clone())
                }
                _ => None,
            },
            Form::Packed(_) => None,
        }
    }

    /// When it ends, Unix ms.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        match &self.0 {
            Form::Packed(packed) => {
                (packed[0] & FLAG_DEADLINE != 0).then(|| u64::from_le_bytes(eight(&packed[HEADER_BYTES..])))
            }
            Form::Wide(wide) => wide.deadline_ms,
        }
    }

    /// Whether its deadline, or that of each of its fields, lies before `now_ms`.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.deadline_ms().is_some_and(|deadline| now_ms > deadline)
            || matches!(self.value(), ValueRef::Hash(hash) if hash.is_over(now_ms))
    }

    /// The earliest deadline of one of its fields, Unix ms.
    #[must_use]
    pub fn field_deadline_ms(&self) -> Option<u64> {
        if let ValueRef::Hash(hash) = self.value() { hash.next_deadline() } else { None }
    }

    /// What of it has to be known to end it in time.
    #[must_use]
    pub(super) fn dues(&self) -> Dues {
        let (key, field) = (self.deadline_ms(), self.field_deadline_ms());
        Dues { of_key: key, first: key.into_iter().chain(field).min() }
    }

    /// The mark of its last access: Unix seconds.
    #[must_use]
    pub fn access(&self) -> u32 {
        match &self.0 {
            Form::Packed(packed) => u32::from_le_bytes([packed[1], packed[2], packed[3], packed[4]]),
            Form::Wide(wide) => wide.access,
        }
    }

    /// Marks an access.
    pub fn touch(&mut self, access: u32) {
        match &mut self.0 {
            Form::Packed(packed) => packed[1..5].copy_from_slice(&access.to_le_bytes()),
            Form::Wide(wide) => wide.access = access,
        }
    }

    /// What it holds on the heap, bytes; its bucket is not counted.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.len(),
            Form::Wide(wide) => size_of::<Wide>() + wide.key.len() + wide.value.heap_bytes(),
        }
    }

    /// What it takes in all, with its bucket, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.heap_bytes()
    }

    /// Replaces the value and the deadline; returns the old value where it had an allocation of its own.
    pub(super) fn replace(
        &mut self,
        value: ValueRef<'_>,
        deadline_ms: Option<u64>,
        access: u32,
    ) -> Option<Value> {
        if self.overwrite_packed(value, deadline_ms, access) {
            return None;
        }
        let new = Self::new(self.key(), value, deadline_ms, access);
        match std::mem::replace(self, new).0 {
            Form::Packed(_) => None,
            Form::Wide(wide) => Some(wide.value),
        }
    }

    /// Overwrites a packed entry where the new content has exactly the room of the old one.
    fn overwrite_packed(&mut self, value: ValueRef<'_>, deadline_ms: Option<u64>, access: u32) -> bool {
        let (Form::Packed(packed), ValueRef::String(string)) = (&mut self.0, value) else { return false };
        let at = layout(packed);
        let number;
        let (kind, bytes) = match string {
            StringRef::Bytes(bytes) => (KIND_BYTES, bytes),
            StringRef::Raw(bytes) => (KIND_RAW, bytes),
            StringRef::Integer(integer) => {
                number = integer.to_le_bytes();
                (KIND_INTEGER, &number[..])
            }
        };
        let had_deadline = packed[0] & FLAG_DEADLINE != 0;
        if packed.len() - at.value != bytes.len() || had_deadline != deadline_ms.is_some() {
            return false;
        }
        packed[0] = kind << KIND_SHIFT | packed[0] & FLAG_DEADLINE;
        packed[1..5].copy_from_slice(&access.to_le_bytes());
        if let Some(deadline) = deadline_ms {
            packed[HEADER_BYTES..HEADER_BYTES + DEADLINE_BYTES].copy_from_slice(&deadline.to_le_bytes());
        }
        packed[at.value..].copy_from_slice(bytes);
        true
    }

    /// Changes the deadline only.
    pub(super) fn set_deadline(&mut self, deadline_ms: Option<u64>) {
        let old = self.deadline_ms();
        match (&mut self.0, deadline_ms) {
            (Form::Wide(wide), deadline) => wide.deadline_ms = deadline,
            (Form::Packed(packed), Some(deadline)) if old.is_some() => {
                packed[HEADER_BYTES..HEADER_BYTES + DEADLINE_BYTES].copy_from_slice(&deadline.to_le_bytes());
            }
            (Form::Packed(_), None) if old.is_none() => {}
            (Form::Packed(_), deadline) => {
                *self = Self::new(self.key(), self.value(), deadline, self.access());
            }
        }
    }

    /// The value, to be changed in place; a packed entry is taken apart for it.
    pub fn value_mut(&mut self) -> &mut Value {
        if matches!(self.0, Form::Packed(_)) {
            *self = Self::wide(self.key().into(), self.value().to_value(), self.deadline_ms(), self.access());
        }
        match &mut self.0 {
            Form::Wide(wide) => &mut wide.value,
            Form::Packed(_) => unreachable!("it was taken apart above"),
        }
    }

    /// The value, without its key.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self.0 {
            Form::Packed(_) => self.value().to_value(),
            Form::Wide(wide) => wide.value,
        }
    }
}
