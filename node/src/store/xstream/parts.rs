//! A stream, taken apart.
//!
//! For: its way to another node as a row of byte strings; what arrives is checked while it is put together.
//! Not here: the frame around them (`replication::effect::state`).
//!
//! ```text
//! first part = last id | greatest deleted id | entries added
//! other part = 1 first id, block | 2 name | last id | entries read + 1 or 0 | consumers | pending
//! consumers  = number | for each: name | seen | active + 1 or 0
//! pending    = for each, in order: id | index of its consumer | time | count
//! ```

use std::ops::Bound;
use std::sync::Arc;

use super::Stream;
use super::block::Block;
use super::fields::{put_number, put_string, take_number, take_string};
use super::group::{Deliveries, Group};
use super::id::StreamId;

const PART_BLOCK: u8 = 1;
const PART_GROUP: u8 = 2;

impl Stream {
    /// Number of parts.
    #[must_use]
    pub fn parts_len(&self) -> usize {
        1 + self.blocks.len() + self.groups.len()
    }

    /// Gives all parts, in order.
    pub fn parts(&self, each: impl FnMut(&[u8])) {
        let _ = self.parts_behind(None, usize::MAX, each);
    }

    /// Gives the first part, the blocks behind that which begins with `after`, until they take `budget_bytes` and at
    /// least one, and behind the last block all groups. Returns where to go on, and whether that was all.
    pub fn parts_behind(
        &self,
        after: Option<StreamId>,
        budget_bytes: usize,
        mut each: impl FnMut(&[u8]),
    ) -> (Option<StreamId>, bool) {
        let mut part = Vec::new();
        put_id(&mut part, self.last_id);
        put_id(&mut part, self.max_deleted);
        put_number(&mut part, self.entries_added);
        each(&part);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut bytes, mut last) = (0, after);
        for (first, block) in self.blocks.range((from, Bound::Unbounded)) {
            if last != after && bytes >= budget_bytes {
                return (last, false);
            }
            part.clear();
            part.push(PART_BLOCK);
            put_id(&mut part, *first);
            block.write(&mut part);
            each(&part);
            bytes += part.len();
            last = Some(*first);
        }
        for (name, group) in self.groups() {
            part.clear();
            part.push(PART_GROUP);
            put_string(&mut part, name);
            put_group(&mut part, group);
            each(&part);
        }
        (last, true)
    }

    /// Adds what such a row of parts holds, behind what there is; whether it fits there.
    #[must_use]
    pub fn append_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> bool {
        let Some(more) = Self::from_parts(parts) else { return false };
        let last = self.blocks.values().next_back().map(|block| block.last);
        let first = more.blocks.keys().next().copied();
        if last.zip(first).is_some_and(|(last, first)| first <= last) {
            return false;
        }
        (self.last_id, self.max_deleted, self.entries_added) =
            (more.last_id, more.max_deleted, more.entries_added);
        self.len += more.len;
        self.block_bytes += more.block_bytes;
        self.blocks.extend(more.blocks);
        more.groups.into_iter().all(|(name, group)| self.add_group(&name, group))
    }

    /// The stream of these parts, if they are one.
    #[must_use]
    pub fn from_parts<'a>(mut parts: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut stream = Self::default();
        let head = &mut parts.next()?;
        let (last_id, max_deleted) = (take_id(head)?, take_id(head)?);
        let entries_added = take_number(head)?;
        if !head.is_empty() {
            return None;
        }
        for part in parts {
            match part.split_first()? {
                (&PART_BLOCK, rest) => stream.take_block(rest)?,
                (&PART_GROUP, rest) => stream.take_group(rest)?,
                _ => return None,
            }
        }
        // Until here it was the last entry's.
        if stream.last_id > last_id {
            return None;
        }
        (stream.last_id, stream.max_deleted, stream.entries_added) = (last_id, max_deleted, entries_added);
        Some(stream)
    }

    fn take_block(&mut self, mut part: &[u8]) -> Option<()> {
        let first = take_id(&mut part)?;
        let block = Block::read(part, first)?;
        let mut ids = block.entries(first).map(|entry| entry.id);
        let (least, top) = (ids.next()?, ids.last());
        let is_next = least > self.last_id && self.blocks.keys().next_back().is_none_or(|last| *last < first);
        if !is_next {
            return None;
        }
        self.last_id = top.unwrap_or(least);
        self.len += u64::from(block.len);
        self.block_bytes += block.bytes();
        self.blocks.insert(first, block);
        Some(())
    }

    fn take_group(&mut self, mut part: &[u8]) -> Option<()> {
        let name = take_string(&mut part)?;
        let group = take_group(part)?;
        self.add_group(name, group).then_some(())
    }
}

fn put_group(out: &mut Vec<u8>, group: &Group) {
    put_id(out, group.last_id);
    put_maybe(out, group.entries_read);
    put_number(out, group.consumers().len() as u64);
    for (name, consumer) in group.consumers() {
        put_string(out, name);
        put_number(out, consumer.seen_ms);
        put_maybe(out, consumer.active_ms);
    }
    let names: Vec<&[u8]> = group.consumers().map(|(name, _)| name).collect();
    for (id, pending) in group.pending() {
        let consumer = names.binary_search(&&pending.consumer[..]).unwrap_or_default();
        put_id(out, id);
        put_number(out, consumer as u64);
        put_number(out, pending.delivered_ms);
        put_number(out, pending.count);
    }
}

fn take_group(mut input: &[u8]) -> Option<Group> {
    let input = &mut input;
    let mut group = Group::new(take_id(input)?, take_maybe(input)?);
    let mut names: Vec<Arc<[u8]>> = Vec::new();
    for _ in 0..take_number(input)? {
        let name = take_string(input)?;
        if !group.add_consumer(name, take_number(input)?, take_maybe(input)?) {
            return None;
        }
        names.push(name.into());
    }
    while !input.is_empty() {
        let id = take_id(input)?;
        let consumer = names.get(usize::try_from(take_number(input)?).ok()?)?;
        let (time_ms, count) = (take_number(input)?, take_number(input)?);
        if group.pending_entry(id).is_some() {
            return None;
        }
        group.deliver(consumer, id, time_ms, Deliveries::Set(count));
    }
    Some(group)
}

fn put_id(out: &mut Vec<u8>, id: StreamId) {
    out.extend_from_slice(&id.to_bytes());
}

fn take_id(input: &mut &[u8]) -> Option<StreamId> {
    let (id, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(StreamId::from_bytes(*id))
}

/// A number that may be missing; the greatest one counts as missing.
fn put_maybe(out: &mut Vec<u8>, number: Option<u64>) {
    put_number(out, number.map_or(0, |number| number.wrapping_add(1)));
}

fn take_maybe(input: &mut &[u8]) -> Option<Option<u64>> {
    take_number(input).map(|number| number.checked_sub(1))
}
