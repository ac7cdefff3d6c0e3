//! When single fields of a hash end.
//!
//! For: their deadlines by field and in order, and hiding those that have passed until they are removed.
//! Not here: removing them, which primaries do (`keyspace`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::store::collection::Keyed;

/// The deadlines of those fields that have one, Unix ms.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    by_field: HashMap<Arc<[u8]>, u64, Keyed>,
    by_time: BTreeSet<(u64, Arc<[u8]>)>,
    /// Bytes of the fields.
    names: usize,
    /// Fields whose deadline lies before this moment are hidden.
    now_ms: u64,
    hidden: usize,
}

impl Deadlines {
    /// Number of fields with a deadline.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_field.len()
    }

    /// No field has one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_field.is_empty()
    }

    /// Number of fields that are hidden.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The deadline of a field.
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<u64> {
        self.by_field.get(field).copied()
    }

    /// Whether a field is hidden.
    #[must_use]
    pub fn hides(&self, field: &[u8]) -> bool {
        self.hidden > 0 && self.get(field).is_some_and(|deadline| deadline < self.now_ms)
    }

    /// Sets or takes away the deadline of a field.
    pub fn set(&mut self, field: &[u8], deadline_ms: Option<u64>) {
        let name = match self.by_field.remove_entry(field) {
            Some((name, old)) => {
                self.names -= name.len();
                self.hidden -= usize::from(old < self.now_ms);
                self.by_time.remove(&(old, Arc::clone(&name)));
                name
            }
            None if deadline_ms.is_none() => return,
            None => field.into(),
        };
        if let Some(deadline) = deadline_ms {
            self.names += name.len();
            self.hidden += usize::from(deadline < self.now_ms);
            self.by_time.insert((deadline, Arc::clone(&name)));
            self.by_field.insert(name, deadline);
        }
    }

    /// The earliest and the latest of all deadlines.
    #[must_use]
    pub fn ends(&self) -> Option<(u64, u64)> {
        self.by_time.first().zip(self.by_time.last()).map(|(first, last)| (first.0, last.0))
    }

    /// Hides the fields whose deadline lies before `now_ms`, and no other.
    pub fn hide(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        self.hidden = self.due(now_ms).count();
    }

    /// The fields whose deadline lies before `now_ms`, the earliest first.
    pub fn due(&self, now_ms: u64) -> impl Iterator<Item = &Arc<[u8]>> {
        self.by_time.iter().take_while(move |(deadline, _)| *deadline < now_ms).map(|(_, field)| field)
    }

    /// An estimate of what they hold on the heap, themselves included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        // A field's own allocation, its place in the table and in the tree.
        const EACH: usize = 16 + 28 * 8 / 7 + 24 * 3 / 2;
        size_of::<Self>() + self.names + self.by_field.len() * EACH
    }
}

impl PartialEq for Deadlines {
    fn eq(&self, other: &Self) -> bool {
        self.by_time == other.by_time
    }
}
