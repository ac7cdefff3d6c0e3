//! Doing what a primary did.
//!
//! For: effects, on replicas and on targets of a stream; strings changed in place, on primaries too.
//! Not here: chunks of a stream (`stream`).

use korum_protocol::limits::BULK_BYTES_MAX;

use super::entry::Entry;
use super::garbage::{Garbage, LARGE_VALUE_BYTES};
use super::keyspace::{Keyspace, Place};
use super::position::HashPosition;
use super::source::Source;
use super::value::{StringRef, StringValue, Value, ValueRef};
use crate::env::mistake::{Mistake, makes};
use crate::replication::effect::Effect;

impl Keyspace {
    /// Does what a primary did. Deterministic: no clock, no chance, no limits of this node. Long strings that
    /// `source` allows to keep are not copied. Returns where it took place; `None`: everywhere.
    pub fn apply(
        &mut self,
        effect: &Effect<'_>,
        source: &Source,
        garbage: &mut Garbage,
    ) -> Option<HashPosition> {
        let Some(key) = effect.key() else {
            match *effect {
                Effect::ClearRoom { room } => self.clear_room(room, garbage),
                _ => garbage.absorb(&mut self.clear()),
            }
            return None;
        };
        let place = self.place(key);
        match *effect {
            Effect::Set { value: ValueRef::String(StringRef::Bytes(bytes)), deadline_ms, .. }
                if bytes.len() >= LARGE_VALUE_BYTES =>
            {
                let value = Value::String(StringValue::Bytes(source.keep(bytes)));
                self.put_value(place, value, deadline_ms, garbage);
            }
            Effect::Set { value, deadline_ms, .. } => {
                let late_ms = if makes(Mistake::RelativeDeadline) { 7 } else { 0 };
                let deadline_ms = deadline_ms.map(|deadline| deadline.saturating_add(late_ms));
                self.put(place, value, deadline_ms, garbage);
            }
            Effect::Collection { state, deadline_ms, .. } => {
                self.put_value(place, state.to_value(), deadline_ms, garbage);
            }
            Effect::Parted { deadline_ms, .. } => {
                if let Some(value) = self.take_arrived(key) {
                    self.put_value(place, value, deadline_ms, garbage);
                }
            }
            Effect::Change { change, .. } => self.change_collection(place, &change, garbage),
            Effect::Delete { .. } | Effect::Clear | Effect::ClearRoom { .. } => {
                self.remove(place, garbage);
            }
            Effect::Deadline { deadline_ms, .. } => {
                self.set_deadline(place, deadline_ms);
            }
            Effect::Served { token, .. } => self.served.note(place.position, token),
            Effect::Append { tail, .. } => self.append(place, tail),
            Effect::Overwrite { offset, bytes, .. } => self.overwrite(place, offset, bytes),
        }
        Some(place.position)
    }

    /// Appends to a string; a missing key is created.
    pub fn append(&mut self, place: Place<'_>, tail: &[u8]) {
        self.edit_string(place, |bytes| bytes.extend_from_slice(tail));
    }

    /// Writes into a string from `offset` on, after zeros where it is shorter; a missing key is created.
    /// The caller has bounded `offset`; as a guard, nothing is written past the longest string.
    pub fn overwrite(&mut self, place: Place<'_>, offset: usize, new: &[u8]) {
        let Some(end) = offset.checked_add(new.len()) else { return };
        if end > BULK_BYTES_MAX {
            return;
        }
        self.edit_string(place, |bytes| {
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset..end].copy_from_slice(new);
        });
    }

    fn edit_string(&mut self, place: Place<'_>, edit: impl FnOnce(&mut Vec<u8>)) {
        if !self.contains(place.key) {
            let empty = Value::String(StringValue::Raw(Vec::new()));
            self.insert(place, Entry::from_value(place.key, empty, None, self.second));
        }
        let second = self.second;
        self.change(place, |value| {
            if let Value::String(string) = value {
                edit(string.raw_mut());
            }
        });
        self.set_access(place, second);
    }
}
