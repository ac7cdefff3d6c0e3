//! Large collections, copied to another node a part at a time, while they are written.
//!
//! For: what makes a collection too large to be copied at once, how far it was, and what has arrived of one.
//! Not here: the bytes of a part (`replication::effect::part`), which part is sent when (`replication::primary`).
//!
//! A collection has an order that follows from its changes alone. Parts are its items in this order, so what was sent
//! is always a *prefix* of it, which the other node builds up beside the key. A change is done there too as far as it
//! changes the prefix: where a removal moves an item from behind the prefix into it, the item is sent with it. So the
//! other node's prefix equals this node's at every moment, in the same order, and nothing is kept here but how long it
//! is. What happens behind it the later parts bring along. When the last part is there, the key's place in hash order
//! follows as an ordinary chunk that names the collection instead of holding it; until then the other node has the
//! key as it was. If the key ends or is replaced meanwhile, nothing more comes of it, and the chunk holds what is
//! there then.

use bytes::BytesMut;
use korum_protocol::rope::Rope;

use super::collection::Change;
use super::entry::Entry;
use super::garbage::Garbage;
use super::hash::{Hash, HashChange};
use super::keyspace::{Keyspace, Place};
use super::list::{List, ListChange};
use super::position::HashPosition;
use super::set::SetChange;
use super::sorted_set::SortedSetChange;
use super::value::{Value, ValueRef};
use super::xstream::{Stream, StreamChange, StreamId};
use crate::replication::effect::{Effect, EffectError, put_part};

/// A collection that takes so many times the bytes of a chunk is copied in parts: fewer messages for what is hardly
/// larger than a chunk, and still well below a millisecond of work.
const CHUNKS_MIN: usize = 4;

/// A command that changes so much of a collection that is being copied ends that, bytes of changes: it begins anew.
const CHANGES_BYTES_MAX: usize = 16 << 20;

/// How much of a collection is a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// So many items.
    Items(usize),
    /// Of a stream, all blocks that do not begin behind this id; none yet.
    Blocks(Option<StreamId>),
}

/// Which copying of a collection it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartsId(u64);

/// A collection of which some parts have left.
#[derive(Debug)]
pub(super) struct Leaving {
    id: PartsId,
    key: Box<[u8]>,
    position: HashPosition,
    sent: Prefix,
    /// What happened to the prefix since it was last asked for, as effects.
    changes: BytesMut,
}

/// A collection of which some parts have arrived.
#[derive(Debug)]
pub(super) struct Arriving {
    key: Box<[u8]>,
    value: Value,
}

impl Arriving {
    pub(super) fn heap_bytes(&self) -> usize {
        self.value.heap_bytes()
    }
}

/// Is this copied in parts, where chunks have so many bytes?
pub(super) fn is_parted(entry: &Entry, chunk_bytes: usize) -> bool {
    // What is packed is small, and has another order.
    let has_order = match entry.value() {
        ValueRef::String(_) => false,
        ValueRef::Hash(hash) => hash.is_table(),
        ValueRef::Set(set) => set.is_table(),
        ValueRef::SortedSet(set) => set.is_table(),
        ValueRef::List(_) | ValueRef::Stream(_) => true,
    };
    has_order && entry.heap_bytes() >= CHUNKS_MIN * chunk_bytes
}

impl Keyspace {
    /// Begins to copy a large collection that stands at `position`, if there is one.
    pub fn begin_parts(&mut self, position: HashPosition, chunk_bytes: usize) -> Option<PartsId> {
        let entry = self.table.at(position).find(|entry| is_parted(entry, chunk_bytes))?;
        let sent = match entry.value() {
            ValueRef::Stream(_) => Prefix::Blocks(None),
            _ => Prefix::Items(0),
        };
        let key = entry.key().into();
        self.parts_begun += 1;
        let id = PartsId(self.parts_begun);
        self.leaving.push(Leaving { id, key, position, sent, changes: BytesMut::new() });
        Some(id)
    }

    /// Is it still being copied, or has the key ended or been replaced?
    #[must_use]
    pub fn has_parts(&self, id: PartsId) -> bool {
        self.leaving.iter().any(|leaving| leaving.id == id)
    }

    /// Appends the next part to `out`, about `budget_bytes` and at least an item. True if it is the last one; `None`
    /// if the collection is not there any more.
    pub fn read_part(&mut self, id: PartsId, budget_bytes: usize, out: &mut Rope) -> Option<bool> {
        let leaving = self.leaving.iter_mut().find(|leaving| leaving.id == id)?;
        let slot = self.table.find(leaving.position, &leaving.key)?;
        let out = out.copied_mut();
        out.extend_from_slice(&leaving.changes.split());
        let value = self.table.get(slot).value();
        let (sent, is_last) = put_part(out, &leaving.key, value, leaving.sent, budget_bytes);
        leaving.sent = sent;
        Some(is_last)
    }

    /// What happened to the part that was sent, since this was last asked.
    pub fn take_part_changes(&mut self, id: PartsId) -> Option<Rope> {
        let leaving = self.leaving.iter_mut().find(|leaving| leaving.id == id)?;
        let changes = std::mem::take(&mut leaving.changes);
        (!changes.is_empty()).then(|| Rope::from(&changes[..]))
    }

    /// The key of a collection of which all parts were read, and its deadline; its copying ends with that.
    pub(super) fn end_parts(&mut self, id: PartsId) -> Option<Box<[u8]>> {
        let at = self.leaving.iter().position(|leaving| leaving.id == id)?;
        Some(self.leaving.swap_remove(at).key)
    }

    /// Gives up copying all but those that somebody wants.
    pub fn keep_parts(&mut self, is_wanted: impl Fn(PartsId) -> bool) {
        if !self.leaving.is_empty() {
            self.leaving.retain(|leaving| is_wanted(leaving.id));
        }
    }

    /// A key is gone, or is another one now.
    pub(super) fn end_parts_of(&mut self, key: &[u8]) {
        if !self.leaving.is_empty() {
            self.leaving.retain(|leaving| *leaving.key != *key);
        }
    }

    /// To be called before a collection is changed.
    pub(super) fn follow_in_parts(&mut self, place: Place<'_>, change: &Change<'_>) {
        if self.leaving.is_empty() {
            return;
        }
        let Some(slot) = self.table.find(place.position, place.key) else { return };
        let value = self.table.get(slot).value();
        for leaving in self.leaving.iter_mut().filter(|leaving| *leaving.key == *place.key) {
            leaving.follow(value, change);
        }
        self.leaving.retain(|leaving| leaving.changes.len() <= CHANGES_BYTES_MAX);
    }

    /// Takes a part; `begins` says that it is the first one.
    ///
    /// # Errors
    /// When it is none, or not the next one of what arrives; then what has arrived is of no use.
    pub fn apply_part(
        &mut self,
        begins: bool,
        mut bytes: &[u8],
        garbage: &mut Garbage,
    ) -> Result<(), EffectError> {
        if begins {
            self.drop_arriving(garbage);
        }
        let mut is_first = begins;
        while !bytes.is_empty() {
            let effect = Effect::decode(&mut bytes)?;
            if let (true, Effect::Collection { key, state, .. }) = (is_first, effect) {
                let value = state.kind().empty_table();
                self.arriving = Some(Box::new(Arriving { key: key.into(), value }));
            }
            is_first = false;
            let arriving = self.arriving.as_mut().filter(|arriving| effect.key() == Some(&arriving.key[..]));
            let Some(arriving) = arriving else { return Err(EffectError::NotOfChunk) };
            match effect {
                Effect::Collection { state, .. } if state.append_to(&mut arriving.value) => {}
                Effect::Change { change, .. } => {
                    // What is empty now may get more.
                    let _ = change.apply(&mut arriving.value);
                }
                _ => return Err(EffectError::NotOfChunk),
            }
        }
        Ok(())
    }

    /// Have parts of this key arrived, and nothing but its place is missing?
    pub(super) fn has_arrived(&self, key: &[u8]) -> bool {
        self.arriving.as_ref().is_some_and(|arriving| *arriving.key == *key)
    }

    /// What has arrived of this key.
    pub(super) fn take_arrived(&mut self, key: &[u8]) -> Option<Value> {
        let arriving = self.arriving.take_if(|arriving| *arriving.key == *key)?;
        Some(arriving.value)
    }

    /// What has arrived in parts is of no use any more.
    pub fn drop_arriving(&mut self, garbage: &mut Garbage) {
        if let Some(arriving) = self.arriving.take() {
            garbage.add(arriving.value);
        }
    }
}

impl Leaving {
    fn note(&mut self, change: Change<'_>) {
        Effect::Change { key: &self.key, change }.encode(&mut self.changes);
    }

    fn follow(&mut self, value: ValueRef<'_>, change: &Change<'_>) {
        match (value, *change, self.sent) {
            (ValueRef::Hash(hash), Change::Hash(change), Prefix::Items(sent)) => {
                self.follow_hash(hash, change, sent);
            }
            (ValueRef::Set(set), Change::Set(change), Prefix::Items(sent)) => {
                let (SetChange::Add { member } | SetChange::Remove { member }) = change;
                if set.index_of(member).is_none_or(|index| index >= sent) {
                    return;
                }
                if matches!(change, SetChange::Remove { .. })
                    && let Some(moved) = self.moves(set.len(), sent).and_then(|last| set.nth(last))
                {
                    self.note(Change::Set(SetChange::Add { member: &moved.bytes() }));
                }
                self.note(Change::Set(change));
            }
            (ValueRef::SortedSet(set), Change::SortedSet(change), Prefix::Items(sent)) => {
                let (SortedSetChange::Put { member, .. } | SortedSetChange::Remove { member }) = change;
                if set.index_of(member).is_none_or(|index| index >= sent) {
                    return;
                }
                if matches!(change, SortedSetChange::Remove { .. })
                    && let Some((member, score)) = self.moves(set.len(), sent).and_then(|last| set.nth(last))
                {
                    self.note(Change::SortedSet(SortedSetChange::Put { member, score }));
                }
                self.note(Change::SortedSet(change));
            }
            (ValueRef::List(list), Change::List(change), Prefix::Items(sent)) => {
                self.follow_list(list, change, sent);
            }
            (ValueRef::Stream(stream), Change::Stream(change), Prefix::Blocks(Some(sent))) => {
                self.follow_stream(stream, change, sent);
            }
            // A change of another kind does nothing.
            _ => {}
        }
    }

    /// An item of the prefix is removed from a table of `len` items: the index of the one behind the prefix that takes
    /// its place. If there is none the prefix, which is everything, is shorter.
    fn moves(&mut self, len: usize, sent: usize) -> Option<usize> {
        let last = len.saturating_sub(1);
        if last < sent {
            self.sent = Prefix::Items(last);
        }
        (last >= sent).then_some(last)
    }

    fn follow_hash(&mut self, hash: &Hash, change: HashChange<'_>, sent: usize) {
        let (HashChange::Set { field, .. }
        | HashChange::Delete { field }
        | HashChange::Deadline { field, .. }) = change;
        if hash.index_of(field).is_none_or(|index| index >= sent) {
            return;
        }
        if matches!(change, HashChange::Delete { .. })
            && let Some((field, value, deadline_ms)) =
                self.moves(hash.total(), sent).and_then(|last| hash.whole(last))
        {
            self.note(Change::Hash(HashChange::Set { field, value }));
            if deadline_ms.is_some() {
                self.note(Change::Hash(HashChange::Deadline { field, deadline_ms }));
            }
        }
        self.note(Change::Hash(change));
    }

    fn follow_list(&mut self, list: &List, change: ListChange<'_>, sent: usize) {
        let (within, left) = match change {
            ListChange::PushFront { .. } => (Some(change), sent + 1),
            ListChange::PushBack { .. } => (None, sent),
            ListChange::PopFront { count } => {
                let count = count.min(sent);
                ((count > 0).then_some(ListChange::PopFront { count }), sent - count)
            }
            ListChange::PopBack { count } => {
                let left = list.len().saturating_sub(count).min(sent);
                let count = sent - left;
                ((count > 0).then_some(ListChange::PopBack { count }), left)
            }
            ListChange::Set { index, .. } => ((index < sent).then_some(change), sent),
            ListChange::Insert { index, .. } if index < sent => (Some(change), sent + 1),
            ListChange::Insert { .. } => (None, sent),
            ListChange::RemoveEqual { item, limit, from_back } => {
                let behind = list.iter_from(sent).filter(|found| *found == item).count();
                let limit = if from_back { limit.saturating_sub(behind) } else { limit };
                let equal = list.iter().take(sent).filter(|found| *found == item).count();
                let limit = limit.min(equal);
                let within = ListChange::RemoveEqual { item, limit, from_back };
                ((limit > 0).then_some(within), sent - limit)
            }
        };
        self.sent = Prefix::Items(left);
        if let Some(change) = within {
            self.note(Change::List(change));
        }
    }

    /// Groups come with the last part; whatever is deleted is looked for in the prefix.
    fn follow_stream(&mut self, stream: &Stream, change: StreamChange<'_>, sent: StreamId) {
        let is_within = match change {
            StreamChange::Delete { .. } | StreamChange::Trim(_) | StreamChange::SetAccounts { .. } => true,
            // Only where nothing is left behind the prefix does it go there, or into a new block beside it.
            StreamChange::Add { id, .. } => {
                let is_next = id > stream.last_id() && stream.last_block().is_none_or(|last| last <= sent);
                if is_next {
                    self.sent = Prefix::Blocks(Some(id));
                }
                is_next
            }
            StreamChange::SetGroup { .. }
            | StreamChange::DestroyGroup { .. }
            | StreamChange::See { .. }
            | StreamChange::DeleteConsumer { .. }
            | StreamChange::Deliver { .. }
            | StreamChange::Acknowledge { .. } => false,
        };
        if is_within {
            self.note(Change::Stream(change));
        }
    }
}

#[cfg(test)]
#[path = "tests/parts.rs"]
mod tests;
