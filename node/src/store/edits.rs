//! Changes of collections of all kinds, from a few numbers: for tests that change what they copy.

use super::xstream::{Deliveries, Fields, Ids, Trimmed};
use super::{
    Change, HashChange, Kind, ListChange, Score, SetChange, SortedSetChange, StreamChange, StreamId,
};

/// A change that is made from numbers.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub kind: Kind,
    /// Which change of this kind.
    pub what: u8,
    /// Which item; every sixteenth is too long for a packed collection.
    pub item: u8,
    /// Grows from edit to edit.
    pub number: u64,
}

impl Edit {
    /// Makes the change.
    pub fn with<R>(&self, see: impl FnOnce(&Change<'_>) -> R) -> R {
        let item = format!("item{}", self.item).repeat(if self.item.is_multiple_of(16) { 20 } else { 1 });
        let (item, index) = (item.as_bytes(), usize::from(self.item));
        let value = [self.number as u8; 3];
        match self.kind {
            Kind::Hash => see(&Change::Hash(match self.what % 6 {
                0 => HashChange::Delete { field: item },
                1 => HashChange::Deadline { field: item, deadline_ms: Some(u64::MAX / 2 + self.number) },
                2 => HashChange::Deadline { field: item, deadline_ms: None },
                _ => HashChange::Set { field: item, value: &value },
            })),
            Kind::Set => see(&Change::Set(match self.what % 3 {
                0 => SetChange::Remove { member: item },
                _ => SetChange::Add { member: item },
            })),
            Kind::SortedSet => see(&Change::SortedSet(match self.what % 3 {
                0 => SortedSetChange::Remove { member: item },
                _ => {
                    let score = Score::new((self.number % 7) as f64).expect("a number");
                    SortedSetChange::Put { member: item, score }
                }
            })),
            Kind::List => see(&Change::List(match self.what % 12 {
                0 => ListChange::PopFront { count: 1 + index % 3 },
                1 => ListChange::PopBack { count: 1 + index % 3 },
                2 => ListChange::Set { index, item },
                3 => ListChange::Insert { index, item },
                4 => ListChange::RemoveEqual { item, limit: 1 + index % 2, from_back: false },
                5 => ListChange::RemoveEqual { item, limit: 1 + index % 2, from_back: true },
                6..9 => ListChange::PushFront { item },
                _ => ListChange::PushBack { item },
            })),
            Kind::Stream => self.with_stream(see),
        }
    }

    fn with_stream<R>(&self, see: impl FnOnce(&Change<'_>) -> R) -> R {
        let id = |ms| StreamId::new(ms, 0);
        let old = id(self.number.saturating_sub(u64::from(self.item)));
        let bytes = vec![b'v'; if self.item.is_multiple_of(4) { 1200 } else { 3 }];
        let fields = Fields::encode([&b"name"[..], &bytes].into_iter());
        let fields = Fields::from_bytes(&fields).expect("one pair");
        let ids = [old.to_bytes()];
        let ids = Ids::new(&ids);
        let (group, consumer) = (&b"group"[..], &[self.item % 3][..]);
        see(&Change::Stream(match self.what % 16 {
            0 | 1 => StreamChange::Delete { ids },
            2 => StreamChange::Trim(Trimmed {
                through: id(self.number.saturating_sub(40 + u64::from(self.item))),
            }),
            3 => StreamChange::SetAccounts {
                last_id: id(self.number),
                max_deleted: old,
                entries_added: 3 * self.number,
            },
            4 => StreamChange::SetGroup { group, last_id: old, entries_read: None },
            5 => StreamChange::See { group, consumer, now_ms: self.number, is_active: true },
            6 => StreamChange::Deliver {
                group,
                consumer,
                time_ms: self.number,
                deliveries: Deliveries::More,
                ids,
            },
            7 => StreamChange::Acknowledge { group, ids },
            _ => StreamChange::Add { id: id(self.number), fields },
        }))
    }
}
