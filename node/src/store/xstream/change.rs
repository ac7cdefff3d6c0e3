//! Everything that can happen to a stream.
//!
//! For: changes that a primary decided, with explicit ids and absolute times; every copy does them in the same way.
//! Not here: deciding (`command::stream`).

use super::block::Block;
use super::fields::Fields;
use super::group::{Deliveries, Group};
use super::id::{Ids, StreamId};
use super::{Stream, Trimmed};

/// What happens to a stream. A change of what is not there does nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamChange<'a> {
    /// An entry is added; its id is greater than all that came before.
    Add {
        /// Its id.
        id: StreamId,
        /// Its fields.
        fields: Fields<'a>,
    },
    /// Entries are deleted.
    Delete {
        /// Their ids.
        ids: Ids<'a>,
    },
    /// The oldest entries are gone.
    Trim(Trimmed),
    /// Its accounts are set.
    SetAccounts {
        /// The last id.
        last_id: StreamId,
        /// The greatest id that was deleted.
        max_deleted: StreamId,
        /// How many entries were ever added.
        entries_added: u64,
    },
    /// A group is created, or goes on from another place.
    SetGroup {
        /// Its name.
        group: &'a [u8],
        /// The last entry that was given to it.
        last_id: StreamId,
        /// How many entries it has read, if that is known.
        entries_read: Option<u64>,
    },
    /// A group is gone, with its consumers.
    DestroyGroup {
        /// Its name.
        group: &'a [u8],
    },
    /// A consumer has asked for something, and has got it if `is_active`; it is created if it is new.
    See {
        /// Its group.
        group: &'a [u8],
        /// Its name.
        consumer: &'a [u8],
        /// When, Unix ms.
        now_ms: u64,
        /// Whether it got something.
        is_active: bool,
    },
    /// A consumer is gone, with what was pending at it.
    DeleteConsumer {
        /// Its group.
        group: &'a [u8],
        /// Its name.
        consumer: &'a [u8],
    },
    /// Entries were given to a consumer that is there, and are pending at it from now on.
    Deliver {
        /// Its group.
        group: &'a [u8],
        /// Its name.
        consumer: &'a [u8],
        /// When, Unix ms.
        time_ms: u64,
        /// How often each was delivered by now.
        deliveries: Deliveries,
        /// The entries.
        ids: Ids<'a>,
    },
    /// Entries are not pending any more.
    Acknowledge {
        /// The group.
        group: &'a [u8],
        /// The entries.
        ids: Ids<'a>,
    },
}

/// What a group takes, with its name, bytes.
pub(super) fn group_bytes(name: &[u8], group: &Group) -> usize {
    size_of::<(Box<[u8]>, Group)>() * 7 / 4 + name.len() + group.heap_bytes()
}

impl Stream {
    /// Does what a primary did.
    pub fn apply(&mut self, change: &StreamChange<'_>) {
        match *change {
            StreamChange::Add { id, fields } => self.add(id, &fields),
            StreamChange::Delete { ids } => ids.iter().for_each(|id| self.delete(id)),
            StreamChange::Trim(trimmed) => self.trim(trimmed),
            StreamChange::SetAccounts { last_id, max_deleted, entries_added } => {
                (self.last_id, self.max_deleted, self.entries_added) = (last_id, max_deleted, entries_added);
            }
            StreamChange::SetGroup { group, last_id, entries_read } => {
                if self.groups.contains_key(group) {
                    self.change_group(group, |group| {
                        (group.last_id, group.entries_read) = (last_id, entries_read);
                    });
                } else {
                    self.add_group(group, Group::new(last_id, entries_read));
                }
            }
            StreamChange::DestroyGroup { group } => {
                if let Some((name, group)) = self.groups.remove_entry(group) {
                    self.group_bytes -= group_bytes(&name, &group);
                }
            }
            StreamChange::See { group, consumer, now_ms, is_active } => {
                self.change_group(group, |group| group.see(consumer, now_ms, is_active));
            }
            StreamChange::DeleteConsumer { group, consumer } => {
                self.change_group(group, |group| group.delete_consumer(consumer));
            }
            StreamChange::Deliver { group, consumer, time_ms, deliveries, ids } => {
                self.change_group(group, |group| {
                    ids.iter().for_each(|id| group.deliver(consumer, id, time_ms, deliveries));
                });
            }
            StreamChange::Acknowledge { group, ids } => {
                self.change_group(group, |group| ids.iter().for_each(|id| group.acknowledge(id)));
            }
        }
    }

    fn add(&mut self, id: StreamId, fields: &Fields<'_>) {
        if id <= self.last_id {
            return;
        }
        self.last_id = id;
        self.len += 1;
        self.entries_added = self.entries_added.wrapping_add(1);
        if let Some((&first, block)) = self.blocks.iter_mut().next_back() {
            if block.has_room(fields) {
                let before = block.bytes();
                block.push(first, id, fields);
                self.block_bytes += block.bytes() - before;
                return;
            }
            block.close();
        }
        let block = Block::new(id, fields);
        self.block_bytes += block.bytes();
        self.blocks.insert(id, block);
    }

    fn delete(&mut self, id: StreamId) {
        let Some((&first, _)) = self.blocks.range(..=id).next_back() else { return };
        if self.remove_from(first, |found| found == id) > 0 {
            self.max_deleted = self.max_deleted.max(id);
        }
    }

    fn trim(&mut self, trimmed: Trimmed) {
        while let Some(block) = self.blocks.first_entry() {
            let (first, last) = (*block.key(), block.get().last);
            if last > trimmed.through {
                self.remove_from(first, |id| id <= trimmed.through);
                break;
            }
            let block = block.remove();
            self.block_bytes -= block.bytes();
            self.len -= u64::from(block.len);
        }
    }

    /// Removes entries of one block, and the block when nothing is left; how many entries went.
    fn remove_from(&mut self, first: StreamId, is_gone: impl Fn(StreamId) -> bool) -> usize {
        let Some(block) = self.blocks.get_mut(&first) else { return 0 };
        self.block_bytes -= block.bytes();
        let removed = block.remove(first, is_gone);
        if block.len == 0 {
            self.blocks.remove(&first);
        } else {
            self.block_bytes += block.bytes();
        }
        self.len -= removed as u64;
        removed
    }

    fn change_group(&mut self, name: &[u8], change: impl FnOnce(&mut Group)) {
        if let Some(group) = self.groups.get_mut(name) {
            self.group_bytes -= group_bytes(name, group);
            change(group);
            self.group_bytes += group_bytes(name, group);
        }
    }

    /// Puts a group there that is none yet; whether it was new.
    pub(super) fn add_group(&mut self, name: &[u8], group: Group) -> bool {
        let bytes = group_bytes(name, &group);
        let is_new = !self.groups.contains_key(name);
        if is_new {
            self.groups.insert(name.into(), group);
            self.group_bytes += bytes;
        }
        is_new
    }
}
