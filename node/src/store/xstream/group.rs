//! Groups of consumers: who was given what, and has not acknowledged it.
//!
//! For: a group's place in the stream, its pending entries in order, its consumers.
//! Not here: entries; which of them are given to whom (`command::stream`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::StreamId;

/// A group. Its pending entries are those of its consumers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// The last entry that was given to one of its consumers.
    pub last_id: StreamId,
    /// How many entries it has read since the stream began, if that is known.
    pub entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: BTreeMap<Arc<[u8]>, Consumer>,
    /// Bytes of the consumers' names.
    names: usize,
}

/// An entry that was given to a consumer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// To whom.
    pub consumer: Arc<[u8]>,
    /// When for the last time, Unix ms.
    pub delivered_ms: u64,
    /// How often.
    pub count: u64,
}

/// A consumer of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumer {
    /// When it last asked for something, Unix ms.
    pub seen_ms: u64,
    /// When it last got something, Unix ms.
    pub active_ms: Option<u64>,
    pub(super) pending: BTreeSet<StreamId>,
}

/// How often an entry was delivered, after it is delivered once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deliveries {
    /// So often.
    Set(u64),
    /// Once more than before; a new one once.
    More,
    /// As often as before; a new one once.
    Same,
}

/// About what a tree takes for each of its items beside them: nodes are seldom full.
const fn in_tree(bytes: usize) -> usize {
    bytes * 7 / 4
}

impl Consumer {
    /// The entries that were given to it, in order.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = StreamId> {
        self.pending.iter().copied()
    }

    /// Those from `from` on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = StreamId> + Clone {
        self.pending.range(from..).copied()
    }
}

impl Group {
    /// A group that goes on behind `last_id`.
    #[must_use]
    pub fn new(last_id: StreamId, entries_read: Option<u64>) -> Self {
        Self { last_id, entries_read, ..Self::default() }
    }

    /// The pending entries from `from` on, in order.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = (StreamId, &Pending)> + Clone {
        self.pending.range(from..).map(|(id, pending)| (*id, pending))
    }

    /// All pending entries, from both ends.
    pub fn pending(&self) -> impl DoubleEndedIterator<Item = (StreamId, &Pending)> + ExactSizeIterator {
        self.pending.iter().map(|(id, pending)| (*id, pending))
    }

    /// The pending entry with this id.
    #[must_use]
    pub fn pending_entry(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Its consumers, in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = (&[u8], &Consumer)> {
        self.consumers.iter().map(|(name, consumer)| (&name[..], consumer))
    }

    /// The consumer of this name.
    #[must_use]
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.consumers.get(name)
    }

    /// The consumer has asked for something, and has got it if `is_active`; it is created by that.
    pub(super) fn see(&mut self, name: &[u8], now_ms: u64, is_active: bool) {
        if !self.consumers.contains_key(name) {
            let consumer = Consumer { seen_ms: now_ms, active_ms: None, pending: BTreeSet::new() };
            self.consumers.insert(name.into(), consumer);
            self.names += name.len();
        }
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.seen_ms = now_ms;
            if is_active {
                consumer.active_ms = Some(now_ms);
            }
        }
    }

    /// Deletes a consumer with what is pending at it.
    pub(super) fn delete_consumer(&mut self, name: &[u8]) {
        if let Some(consumer) = self.consumers.remove(name) {
            self.names -= name.len();
            consumer.pending.iter().for_each(|id| drop(self.pending.remove(id)));
        }
    }

    /// Gives an entry to a consumer, which is there, whoever had it before.
    pub(super) fn deliver(&mut self, name: &[u8], id: StreamId, time_ms: u64, deliveries: Deliveries) {
        let Some((name, _)) = self.consumers.get_key_value(name) else { return };
        let name = Arc::clone(name);
        let before = self.pending.get(&id).map(|pending| (pending.count, Arc::clone(&pending.consumer)));
        let count = match (deliveries, &before) {
            (Deliveries::Set(count), _) => count,
            (Deliveries::More, Some((count, _))) => count.wrapping_add(1),
            (Deliveries::Same, Some((count, _))) => *count,
            (Deliveries::More | Deliveries::Same, None) => 1,
        };
        if let Some(old) = before.and_then(|(_, old)| self.consumers.get_mut(&old)) {
            old.pending.remove(&id);
        }
        if let Some(consumer) = self.consumers.get_mut(&name) {
            consumer.pending.insert(id);
            self.pending.insert(id, Pending { consumer: name, delivered_ms: time_ms, count });
        }
    }

    /// An entry is not pending any more.
    pub(super) fn acknowledge(&mut self, id: StreamId) {
        if let Some(pending) = self.pending.remove(&id)
            && let Some(consumer) = self.consumers.get_mut(&pending.consumer)
        {
            consumer.pending.remove(&id);
        }
    }

    /// Puts a consumer there that is none yet; whether it was new.
    pub(super) fn add_consumer(&mut self, name: &[u8], seen_ms: u64, active_ms: Option<u64>) -> bool {
        if self.consumers.contains_key(name) {
            return false;
        }
        self.see(name, seen_ms, false);
        if let Some(consumer) = self.consumers.get_mut(name) {
            consumer.active_ms = active_ms;
        }
        true
    }

    /// What it holds on the heap, bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let pending = size_of::<(StreamId, Pending)>() + size_of::<StreamId>();
        // An `Arc` has two counters in front of the name.
        let consumer = size_of::<(Arc<[u8]>, Consumer)>() + 16;
        in_tree(self.pending.len() * pending + self.consumers.len() * consumer) + self.names
    }

    /// Derives every relation again.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut at_consumers = 0;
        for (name, consumer) in &self.consumers {
            assert!(consumer.pending.iter().all(|id| &self.pending[id].consumer == name));
            at_consumers += consumer.pending.len();
        }
        assert_eq!(at_consumers, self.pending.len(), "each pending entry is at its consumer");
        assert_eq!(self.names, self.consumers.keys().map(|name| name.len()).sum::<usize>());
    }
}
