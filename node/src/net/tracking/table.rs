//! Which clients may have which keys in their caches; pure.
//!
//! For: keys that clients have read, prefixes that clients want to be told of.
//! Not here: telling them (`super`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use smallvec::SmallVec;

/// Clients, by their ids.
pub type Ids = SmallVec<[u64; 2]>;

/// What clients may have cached.
#[derive(Default, Debug)]
pub struct Table {
    keys: HashMap<Bytes, Ids>,
    prefixes: BTreeMap<Bytes, BTreeSet<u64>>,
}

impl Table {
    /// A client is about to read a key.
    pub fn remember(&mut self, key: &[u8], id: u64) {
        match self.keys.get_mut(key) {
            Some(ids) if ids.contains(&id) => {}
            Some(ids) => ids.push(id),
            None => drop(self.keys.insert(Bytes::copy_from_slice(key), Ids::from_slice(&[id]))),
        }
    }

    /// A client wants to be told of all keys with a prefix.
    pub fn want(&mut self, prefix: &[u8], id: u64) {
        self.prefixes.entry(Bytes::copy_from_slice(prefix)).or_default().insert(id);
    }

    /// The key has changed: whom to tell. Those who have read it have to read it again to be told once more.
    pub fn changed(&mut self, key: &[u8]) -> Ids {
        let mut ids = self.keys.remove(key).unwrap_or_default();
        for (prefix, wanting) in &self.prefixes {
            if key.starts_with(prefix) {
                ids.extend(wanting.iter().copied());
            }
        }
        ids
    }

    /// Forgets some key; which, and who has to be told so. `None` if there is none.
    pub fn forget_one(&mut self) -> Option<(Bytes, Ids)> {
        let key = self.keys.keys().next()?.clone();
        self.keys.remove_entry(&key)
    }

    /// Forgets all keys; prefixes stay.
    pub fn forget_all(&mut self) {
        self.keys.clear();
    }

    /// A client wants to be told of nothing any more. Keys that it has read go when they change.
    pub fn leave(&mut self, id: u64) {
        self.prefixes.retain(|_, wanting| {
            wanting.remove(&id);
            !wanting.is_empty()
        });
    }

    /// Number of keys.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The prefixes of a client.
    pub fn prefixes(&self, id: u64) -> impl Iterator<Item = &Bytes> {
        self.prefixes.iter().filter(move |(_, wanting)| wanting.contains(&id)).map(|(prefix, _)| prefix)
    }

    /// Number of prefixes.
    #[must_use]
    pub fn prefix_count(&self) -> usize {
        self.prefixes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut ids: Ids) -> Vec<u64> {
        ids.sort_unstable();
        ids.to_vec()
    }

    #[test]
    fn who_has_read_a_key_is_told_once() {
        let mut table = Table::default();
        table.remember(b"a", 1);
        table.remember(b"a", 2);
        table.remember(b"a", 1);
        table.remember(b"b", 3);
        assert_eq!((table.len(), sorted(table.changed(b"a"))), (2, vec![1, 2]));
        assert!(table.changed(b"a").is_empty());
        table.remember(b"a", 1);
        assert_eq!(sorted(table.changed(b"a")), [1]);
    }

    #[test]
    fn who_wants_a_prefix_is_told_each_time() {
        let mut table = Table::default();
        table.want(b"user:", 1);
        table.want(b"", 2);
        table.remember(b"user:7", 3);
        assert_eq!(sorted(table.changed(b"user:7")), [1, 2, 3]);
        assert_eq!(sorted(table.changed(b"user:7")), [1, 2]);
        assert_eq!(sorted(table.changed(b"use")), [2]);
        assert_eq!(table.prefixes(1).collect::<Vec<_>>(), ["user:"]);
        table.leave(1);
        table.leave(2);
        assert!(table.changed(b"user:7").is_empty() && table.prefix_count() == 0);
    }

    #[test]
    fn what_is_forgotten_is_told_of() {
        let mut table = Table::default();
        table.remember(b"a", 1);
        assert_eq!(table.forget_one(), Some((Bytes::from_static(b"a"), Ids::from_slice(&[1]))));
        assert_eq!(table.forget_one(), None);
        table.remember(b"a", 1);
        table.forget_all();
        assert_eq!(table.len(), 0);
    }
}
