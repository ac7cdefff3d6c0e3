//! The keys of one partition: the door to the store.
//!
//! For: reading, writing and expiring entries, with accounts that are always current.
//! Not here: who may do so (roles), what a command means, what is told to replicas of a command
//! (`command::Call`, which records an effect for every change it makes here).
//! Next: `scan` walks it, `stream` copies it, `random` picks from it.

use bytes::Bytes;

use super::collection::Change;
use super::counts::{Count, Counts};
use super::database::{self, Databases};
use super::entry::{Dues, Entry};
use super::expiry::ExpiryIndex;
use super::garbage::{Garbage, LARGE_VALUE_BYTES};
use super::hash::HashChange;
use super::notice::Classes;
use super::parts::{Arriving, Leaving};
use super::position::HashPosition;
use super::served::Served;
use super::table::{Slot, Table};
use super::value::{Value, ValueRef};
use crate::replication::effect::Effects;

/// Fields of one hash that are removed at once when they have ended; readers do not see the rest of them either.
const FIELDS_AT_ONCE: usize = 64;

/// A key together with its position, so that it is hashed once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'k> {
    /// The key.
    pub key: &'k [u8],
    /// Where it stands in hash order.
    pub position: HashPosition,
}

impl<'k> Place<'k> {
    /// The key as clients know it.
    #[must_use]
    pub fn name(&self) -> &'k [u8] {
        database::split(self.key).1
    }
}

/// All entries of a partition. Pure data: time comes in as an argument.
#[derive(Debug)]
pub struct Keyspace {
    pub(super) table: Table,
    pub(super) expiry: ExpiryIndex,
    /// How many keys each room has.
    pub(super) counts: Counts,
    /// Allocations of the entries, bytes.
    pub(super) entry_bytes: usize,
    /// Unix seconds, as far as it was told: the access mark of what is applied from a stream.
    pub(super) second: u32,
    /// Large collections that are being copied to other nodes.
    pub(super) leaving: Vec<Leaving>,
    /// How many have been.
    pub(super) parts_begun: u64,
    /// The large collection that is being copied to here.
    pub(super) arriving: Option<Box<Arriving>>,
    /// Which commands that waited here for clients of other nodes have been served.
    pub served: Served,
    /// Which databases there are, and which rooms they have, as the map in force says.
    pub databases: Databases,
}

impl Keyspace {
    /// An empty one, without an allocation. All nodes of a cluster use the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            table: Table::new(seed),
            expiry: ExpiryIndex::default(),
            counts: Counts::default(),
            entry_bytes: 0,
            second: 0,
            leaving: Vec::new(),
            parts_begun: 0,
            arriving: None,
            served: Served::default(),
            databases: Databases::default(),
        }
    }

    /// Tells the time, in Unix seconds, for access marks only.
    pub fn tick(&mut self, second: u32) {
        self.second = second;
    }

    /// Where `key` stands.
    #[must_use]
    pub fn hash_position(&self, key: &[u8]) -> HashPosition {
        HashPosition::of(self.table.seed(), key)
    }

    /// `key` with its position.
    #[must_use]
    pub fn place<'k>(&self, key: &'k [u8]) -> Place<'k> {
        Place { key, position: self.hash_position(key) }
    }

    /// Number of keys, those that are expired and not yet removed included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// No keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The keys of a room.
    #[must_use]
    pub fn count(&self, room: u8) -> Count {
        self.counts.of(room)
    }

    /// The keys of all rooms that have some.
    pub fn counts(&self) -> impl Iterator<Item = (u8, Count)> {
        self.counts.iter()
    }

    /// An estimate of all memory held, bytes; O(1).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let arriving = self.arriving.as_ref().map_or(0, |arriving| arriving.heap_bytes());
        self.entry_bytes + self.table.memory_bytes() + self.expiry.memory_bytes() + arriving
    }

    /// The entry of `key` unless it is expired; changes nothing (for replicas, and for looking only).
    #[must_use]
    pub fn peek(&self, key: &[u8], now_ms: u64) -> Option<&Entry> {
        let slot = self.table.find(self.hash_position(key), key)?;
        Some(self.table.get(slot)).filter(|entry| !entry.is_expired(now_ms))
    }

    /// Whether `key` has an entry, expired or not.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.table.find(self.hash_position(key), key).is_some()
    }

    /// The slot of a living entry; an expired one is removed, and its `Delete` recorded.
    fn living(&mut self, place: Place<'_>, now_ms: u64, effects: &mut Effects) -> Option<Slot> {
        let slot = self.table.find(place.position, place.key)?;
        if !self.table.get(slot).is_expired(now_ms) {
            if self.table.get(slot).field_deadline_ms().is_some_and(|deadline| now_ms > deadline) {
                self.end_fields(place, now_ms, effects);
            }
            return Some(slot);
        }
        if !effects.is_read_only() {
            self.remove_slot(place.position, slot, effects.garbage_mut());
            effects.expired(place);
        }
        None
    }

    /// Removes fields of a hash that have ended, unless effects are read-only, and hides the rest; returns how many
    /// were removed. One field at least has not ended.
    fn end_fields(&mut self, place: Place<'_>, now_ms: u64, effects: &mut Effects) -> usize {
        let Some(slot) = self.table.find(place.position, place.key) else { return 0 };
        let due = match self.table.get(slot).value() {
            ValueRef::Hash(hash) if !effects.is_read_only() => hash.due(now_ms, FIELDS_AT_ONCE),
            _ => Vec::new(),
        };
        for field in &due {
            let change = Change::Hash(HashChange::Delete { field });
            self.change_collection(place, &change, effects.garbage_mut());
            effects.change(place, change);
        }
        if !due.is_empty() {
            effects.notices.add(Classes::HASH, "hexpired", place.key);
        }
        self.change(place, |value| {
            if let Value::Hash(hash) = value {
                hash.hide(now_ms);
            }
        });
        due.len()
    }

    /// The living entry of a key, without marking an access. On primaries an expired entry is removed, and
    /// its `Delete` recorded; with read-only effects (on replicas) it is hidden.
    pub fn look(&mut self, place: Place<'_>, now_ms: u64, effects: &mut Effects) -> Option<&Entry> {
        let slot = self.living(place, now_ms, effects)?;
        Some(self.table.get(slot))
    }

    /// As [`Self::look`], and marks an access.
    pub fn read(&mut self, place: Place<'_>, now_ms: u64, effects: &mut Effects) -> Option<&Entry> {
        let slot = self.living(place, now_ms, effects)?;
        let entry = self.table.get_mut(slot);
        entry.touch(seconds(now_ms));
        Some(entry)
    }

    /// Changes the living value of `place` in place.
    pub fn change<R>(&mut self, place: Place<'_>, change: impl FnOnce(&mut Value) -> R) -> Option<R> {
        let slot = self.table.find(place.position, place.key)?;
        let entry = self.table.get_mut(slot);
        let (before, dues) = (entry.heap_bytes(), entry.dues());
        let result = change(entry.value_mut());
        let dues_now = entry.dues();
        self.entry_bytes = self.entry_bytes + entry.heap_bytes() - before;
        self.move_dues(place, dues, dues_now);
        Some(result)
    }

    /// A long string, to hold on to without copying it; `None` for any other.
    pub fn share(&mut self, place: Place<'_>) -> Option<Bytes> {
        let slot = self.table.find(place.position, place.key)?;
        if self.table.get(slot).heap_bytes() < LARGE_VALUE_BYTES {
            return None;
        }
        if let Some(shared) = self.table.get(slot).to_shared() {
            return Some(shared);
        }
        // A string that was changed in place becomes one that is not changed any more.
        self.change(place, |value| if let Value::String(string) = value { string.share() } else { None });
        self.table.get(slot).to_shared()
    }

    /// Marks an access at a second of the caller's choice, as `RESTORE IDLETIME` does.
    pub fn set_access(&mut self, place: Place<'_>, second: u32) {
        if let Some(slot) = self.table.find(place.position, place.key) {
            self.table.get_mut(slot).touch(second);
        }
    }

    /// Sets value and deadline of a key, whatever was there. A large old value becomes garbage.
    pub fn put(
        &mut self,
        place: Place<'_>,
        value: ValueRef<'_>,
        deadline_ms: Option<u64>,
        garbage: &mut Garbage,
    ) {
        let access = self.second;
        let Some(slot) = self.table.find(place.position, place.key) else {
            return self.insert(place, Entry::new(place.key, value, deadline_ms, access));
        };
        self.end_parts_of(place.key);
        let entry = self.table.get_mut(slot);
        let (before, dues) = (entry.heap_bytes(), entry.dues());
        if let Some(old) = entry.replace(value, deadline_ms, access) {
            garbage.add(old);
        }
        let dues_now = entry.dues();
        self.entry_bytes = self.entry_bytes + entry.heap_bytes() - before;
        self.move_dues(place, dues, dues_now);
    }

    /// As [`Self::put`], for a value that is handed over.
    pub fn put_value(
        &mut self,
        place: Place<'_>,
        value: Value,
        deadline_ms: Option<u64>,
        garbage: &mut Garbage,
    ) {
        self.remove(place, garbage);
        self.insert(place, Entry::from_value(place.key, value, deadline_ms, self.second));
    }

    pub(super) fn insert(&mut self, place: Place<'_>, entry: Entry) {
        self.entry_bytes += entry.heap_bytes();
        self.counts.add(database::split(place.key).0);
        let dues = entry.dues();
        self.table.insert(place.position, entry);
        self.move_dues(place, Dues::default(), dues);
    }

    /// Sets or takes away the deadline of a key; whether there was the key.
    pub fn set_deadline(&mut self, place: Place<'_>, deadline_ms: Option<u64>) -> bool {
        let Some(slot) = self.table.find(place.position, place.key) else { return false };
        let entry = self.table.get_mut(slot);
        let (before, dues) = (entry.heap_bytes(), entry.dues());
        entry.set_deadline(deadline_ms);
        let dues_now = entry.dues();
        self.entry_bytes = self.entry_bytes + entry.heap_bytes() - before;
        self.move_dues(place, dues, dues_now);
        true
    }

    /// Keeps the index of deadlines current after the entry of a key has changed.
    fn move_dues(&mut self, place: Place<'_>, old: Dues, new: Dues) {
        if old.of_key != new.of_key {
            self.counts.move_deadline(database::split(place.key).0, old.of_key, new.of_key);
        }
        if old.first == new.first {
            return;
        }
        let position = place.position;
        // Another entry of the same position and deadline keeps the place in the index.
        if let Some(deadline) = old.first
            && !self.table.at(position).any(|entry| entry.dues().first == old.first)
        {
            self.expiry.remove(deadline, position);
        }
        if let Some(deadline) = new.first {
            self.expiry.insert(deadline, position);
        }
    }

    /// Removes a key; whether it was there. A large value becomes garbage.
    pub fn remove(&mut self, place: Place<'_>, garbage: &mut Garbage) -> bool {
        let Some(slot) = self.table.find(place.position, place.key) else { return false };
        self.remove_slot(place.position, slot, garbage);
        true
    }

    fn remove_slot(&mut self, position: HashPosition, slot: Slot, garbage: &mut Garbage) {
        garbage.add_entry(self.take_slot(position, slot));
    }

    /// Removes a key and hands its entry out.
    pub fn take(&mut self, place: Place<'_>) -> Option<Entry> {
        let slot = self.table.find(place.position, place.key)?;
        Some(self.take_slot(place.position, slot))
    }

    fn take_slot(&mut self, position: HashPosition, slot: Slot) -> Entry {
        let entry = self.table.remove(position, slot);
        self.end_parts_of(entry.key());
        self.entry_bytes -= entry.heap_bytes();
        let place = Place { key: entry.key(), position };
        self.move_dues(place, entry.dues(), Dues::default());
        self.counts.remove(database::split(entry.key()).0);
        entry
    }

    /// Removes everything; what was there is returned, to be dropped where nobody waits.
    #[must_use = "dropping the garbage may take long"]
    pub fn clear(&mut self) -> Garbage {
        let mut empty = Self::new(self.table.seed());
        empty.second = self.second;
        empty.databases = self.databases.clone();
        empty.served = std::mem::take(&mut self.served);
        empty.parts_begun = self.parts_begun;
        let mut garbage = Garbage::default();
        self.drop_arriving(&mut garbage);
        let old = std::mem::replace(self, empty);
        garbage.add_table(old.table, old.expiry);
        garbage
    }

    /// Removes all keys of a room: as long as it has keys, a look at every key of the partition.
    pub fn clear_room(&mut self, room: u8, garbage: &mut Garbage) {
        let keys = self.counts.of(room).keys;
        if keys == self.len() {
            // What arrives has no place yet, and may be of another room.
            let arriving = self.arriving.take();
            garbage.absorb(&mut self.clear());
            self.arriving = arriving;
            return;
        }
        let mut at = HashPosition::START;
        while self.counts.of(room).keys > 0
            && let Some((segment, entries)) = self.table.segment(at)
        {
            let gone: Vec<Box<[u8]>> = entries
                .iter()
                .filter(|entry| database::split(entry.key()).0 == room)
                .map(|entry| entry.key().into())
                .collect();
            for key in &gone {
                self.remove(self.place(key), garbage);
            }
            // A removal may have merged the segment with its neighbours: its end is still a border or lies inside.
            at = segment.until;
        }
    }

    /// The earliest deadline, Unix ms.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.expiry.first().map(|(deadline, _)| deadline)
    }

    /// Removes up to about `budget` expired keys and fields, earliest first, and records it; returns how many. On
    /// primaries only.
    pub fn sweep(&mut self, now_ms: u64, budget: usize, effects: &mut Effects) -> usize {
        let mut removed = 0;
        while removed < budget {
            let Some((deadline, position)) = self.expiry.first().filter(|(due, _)| now_ms > *due) else {
                break;
            };
            let due: smallvec::SmallVec<[(Box<[u8]>, bool); 1]> = self
                .table
                .at(position)
                .filter(|entry| entry.dues().first.is_some_and(|due| now_ms > due))
                .map(|entry| (entry.key().into(), entry.is_expired(now_ms)))
                .collect();
            debug_assert!(!due.is_empty(), "the index names living entries only");
            if due.is_empty() {
                self.expiry.remove(deadline, position);
            }
            for (key, is_over) in &due {
                let place = Place { key, position };
                if *is_over {
                    self.remove(place, effects.garbage_mut());
                    effects.expired(place);
                    removed += 1;
                } else {
                    removed += self.end_fields(place, now_ms, effects);
                }
            }
        }
        removed
    }
}

/// The access mark of a moment: Unix seconds, until 2106.
pub(crate) fn seconds(now_ms: u64) -> u32 {
    (now_ms / 1000) as u32
}
