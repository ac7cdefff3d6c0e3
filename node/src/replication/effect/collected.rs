//! The effects of a command, collected.
//!
//! For: what a command hands to replication: bytes, count, and what was removed.

use bytes::Bytes;
use korum_protocol::rope::{HELD_BYTES_MIN, Mark, Rope};
use smallvec::SmallVec;

use super::Effect;
use crate::store::garbage::Garbage;
use crate::store::keyspace::Place;
use crate::store::{Change, Classes, HashPosition, Notices, Source, ValueRef};

/// Where one collected effect ends, and whom it is about.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// `None`: all keys.
    position: Option<HashPosition>,
    end: Mark,
}

/// The effects of one command, in order, and what it removed.
#[derive(Default, Debug)]
pub struct Effects {
    recording: bool,
    read_only: bool,
    rope: Rope,
    items: SmallVec<[Item; 2]>,
    garbage: Garbage,
    /// What is told to those who listen to events of keys.
    pub notices: Notices,
}

impl Effects {
    /// Without `recording` (nobody listens) effects are noted and not encoded.
    #[must_use]
    pub fn new(recording: bool) -> Self {
        Self { recording, ..Self::default() }
    }

    /// For commands that only read, where nothing may change (on replicas): expired keys are hidden and stay.
    #[must_use]
    pub fn read_only() -> Self {
        Self { read_only: true, ..Self::default() }
    }

    /// Whether nothing may change.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Switches the encoding on or off for what follows; only between commands, when nothing is collected.
    pub fn set_recording(&mut self, recording: bool) {
        debug_assert!(self.items.is_empty());
        self.recording = recording;
    }

    /// Whether nothing may change from now on; only between commands.
    pub fn set_read_only(&mut self, read_only: bool) {
        debug_assert!(self.items.is_empty());
        self.read_only = read_only;
    }

    /// Whether effects are encoded, because somebody listens.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// How many effects there are: by so many the sequence number grows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// The bytes of all effects, one after the other; empty unless recording.
    #[must_use]
    pub fn rope(&self) -> &Rope {
        &self.rope
    }

    /// The position that each effect touches (`None`: all).
    pub fn places(&self) -> impl ExactSizeIterator<Item = Option<HashPosition>> {
        self.items.iter().map(|item| item.position)
    }

    /// Each effect's bytes, which are none unless recording, and the position that it touches (`None`: all).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Option<HashPosition>, Rope)> {
        let mut start = Mark::default();
        self.items.iter().map(move |item| {
            let part = self.rope.part(start, item.end);
            start = item.end;
            (item.position, part)
        })
    }

    /// Forgets all effects; garbage stays until it is taken.
    pub fn clear(&mut self) {
        self.rope.clear();
        self.items.clear();
        self.notices.clear();
    }

    /// What was removed and is too large to drop under the lock.
    pub fn garbage_mut(&mut self) -> &mut Garbage {
        &mut self.garbage
    }

    /// Takes the garbage out.
    #[must_use = "it is to be dropped where nobody waits"]
    pub fn take_garbage(&mut self) -> Garbage {
        std::mem::take(&mut self.garbage)
    }

    /// Notes any effect on `position`.
    pub fn push(&mut self, position: Option<HashPosition>, effect: &Effect<'_>) {
        debug_assert!(!self.read_only, "a command that reads has written");
        self.notices.touch(effect.key());
        if self.recording {
            effect.encode(self.rope.copied_mut());
        }
        self.items.push(Item { position, end: self.rope.mark() });
    }

    /// The key has this value and deadline now.
    pub fn set(&mut self, place: Place<'_>, value: ValueRef<'_>, deadline_ms: Option<u64>) {
        self.push(Some(place.position), &Effect::Set { key: place.key, value, deadline_ms });
    }

    /// As [`Self::push`], for what holds on to a long string.
    fn push_held(&mut self, place: Place<'_>, encode: impl FnOnce(&mut Rope)) {
        debug_assert!(!self.read_only, "a command that reads has written");
        self.notices.touch(Some(place.key));
        if self.recording {
            encode(&mut self.rope);
        }
        self.items.push(Item { position: Some(place.position), end: self.rope.mark() });
    }

    /// As [`Self::set`], for a string that is held on to.
    pub fn set_held(&mut self, place: Place<'_>, string: Bytes, deadline_ms: Option<u64>) {
        self.push_held(place, |out| Effect::encode_held(place.key, string, deadline_ms, out));
    }

    /// The key is gone.
    pub fn delete(&mut self, place: Place<'_>) {
        self.push(Some(place.position), &Effect::Delete { key: place.key });
    }

    /// The key is gone because its time was over.
    pub fn expired(&mut self, place: Place<'_>) {
        self.notices.add(Classes::EXPIRED, "expired", place.key);
        self.delete(place);
    }

    /// Something happened inside a collection.
    pub fn change(&mut self, place: Place<'_>, change: Change<'_>) {
        self.push(Some(place.position), &Effect::Change { key: place.key, change });
    }

    /// The key has this deadline now.
    pub fn deadline(&mut self, place: Place<'_>, deadline_ms: Option<u64>) {
        self.push(Some(place.position), &Effect::Deadline { key: place.key, deadline_ms });
    }

    /// A string has grown by `tail`.
    pub fn append(&mut self, place: Place<'_>, tail: &[u8], source: &Source) {
        if tail.len() < HELD_BYTES_MIN {
            return self.push(Some(place.position), &Effect::Append { key: place.key, tail });
        }
        self.push_held(place, |out| Effect::encode_part(place.key, None, source.keep(tail), out));
    }

    /// A part of a string was written over.
    pub fn overwrite(&mut self, place: Place<'_>, offset: usize, bytes: &[u8], source: &Source) {
        if bytes.len() < HELD_BYTES_MIN {
            return self.push(Some(place.position), &Effect::Overwrite { key: place.key, offset, bytes });
        }
        self.push_held(place, |out| Effect::encode_part(place.key, Some(offset), source.keep(bytes), out));
    }

    /// All keys are gone.
    pub fn cleared(&mut self) {
        self.push(None, &Effect::Clear);
    }

    /// All keys of one room are gone.
    pub fn cleared_room(&mut self, room: u8) {
        self.push(None, &Effect::ClearRoom { room });
    }
}
