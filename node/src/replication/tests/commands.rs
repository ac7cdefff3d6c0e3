//! Commands: executed, answered, and what must hold of them.

use super::world::{
    CLIENTS, GUESTS, KEYS, LARGE, Operation, PARTITION, QUEUES, Sim, check_services, collection, content, id,
    name, service, value_of,
};
use crate::replication::effect::{Effect, Effects};
use crate::replication::primary::{Admission, Settlement, Waits};
use crate::store::edits::Edit;
use crate::store::{Change, Garbage, Kind, SetChange, Source, StringRef, ValueRef};
use rand::RngExt;

impl Sim {
    pub(super) fn execute(&mut self, at: usize, is_write: bool) {
        let Some(run) = self.leased_run(at) else { return };
        let key = self.random.random_range(0..KEYS);
        let partition = &mut self.nodes[at].partition;
        let Some(primary) = partition.role.primary_mut() else { return };
        if primary.admits(is_write) != Admission::Ready {
            return;
        }
        let keyspace = &mut partition.keyspace;
        let floor = self.known.get(&key).copied().unwrap_or(0);
        if is_write {
            self.next_value += 1;
            let word = name(key);
            // Padded, some are large.
            let padded = format!("{:<width$}", self.next_value, width = LARGE);
            let value = match self.random.random_range(0..4) {
                0 => ValueRef::String(StringRef::Bytes(padded.as_bytes())),
                _ => ValueRef::String(StringRef::Integer(self.next_value as i64)),
            };
            let mut effects = Effects::new(primary.is_followed());
            effects.set(keyspace.place(&word), value, None);
            let effect = Effect::Set { key: &word, value, deadline_ms: None };
            keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
            let guest = name(KEYS + self.random.random_range(0..GUESTS));
            match self.random.random_range(0..4) {
                0 => {
                    keyspace.apply(&Effect::Delete { key: &guest }, &Source::none(), &mut Garbage::default());
                    effects.delete(keyspace.place(&guest));
                }
                1 => {
                    let effect = Effect::Set { key: &guest, value, deadline_ms: None };
                    keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
                    effects.set(keyspace.place(&guest), value, None);
                }
                _ => {}
            }
            if self.random.random_range(0..3) == 0 {
                let (queue, client) =
                    (self.random.random_range(0..QUEUES), self.random.random_range(0..CLIENTS));
                let (key, member, token) = service(queue, client, self.next_value);
                let position = keyspace.hash_position(&key);
                let change = Change::Set(SetChange::Add { member: member.as_bytes() });
                for effect in [Effect::Change { key: &key, change }, Effect::Served { key: &key, token }] {
                    keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
                    effects.push(Some(position), &effect);
                }
            }
            let (what, item) = (self.random.random_range(0..=255_u8), self.random.random_range(0..17));
            let kind = Kind::ALL[self.random.random_range(0..Kind::ALL.len())];
            let key = collection(kind);
            let position = keyspace.hash_position(&key);
            for step in 0..self.random.random_range(0..4) {
                let edit = Edit {
                    kind,
                    what: what.wrapping_add(step),
                    item,
                    number: 4 * self.next_value + u64::from(step),
                };
                edit.with(|change| {
                    let effect = Effect::Change { key: &key, change: *change };
                    keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
                    effects.push(Some(position), &effect);
                });
            }
            if what == 255 {
                keyspace.apply(&Effect::Delete { key: &key }, &Source::none(), &mut Garbage::default());
                effects.delete(keyspace.place(&key));
            }
            primary.replicate(PARTITION, &mut partition.history, keyspace, &effects);
        }
        let value = value_of(keyspace, key);
        assert!(is_write || value >= floor, "a read at {:?} found {value}, {floor} was known", id(at));
        let mut waits = Waits::default();
        primary.settlement(&mut waits);
        let era = primary.era;
        self.operations.push(Operation { node: at, key, value, floor, era, run, waits });
    }

    /// As a batch is settled: answered, failed or still waiting.
    pub(super) fn settle(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        for mut operation in operations {
            let is_leased = self.leased_run(operation.node) == Some(operation.run);
            if !is_leased {
                continue; // the outcome is unknown
            }
            if !operation.waits.are_acknowledged() {
                let mut waits = Waits::default();
                let primary = self.nodes[operation.node].partition.as_primary();
                let Some(primary) = primary.filter(|primary| primary.era == operation.era) else { continue };
                if primary.settlement(&mut waits) != Settlement::Done {
                    // A real batch looks again only when a link broke; looking more often is no different.
                    operation.waits = waits;
                    self.operations.push(operation);
                    continue;
                }
            }
            assert!(operation.value >= operation.floor);
            let known = self.known.entry(operation.key).or_default();
            *known = (*known).max(operation.value);
            self.answered += 1;
        }
    }

    /// I2: what was acknowledged, or shown, is on every holder. I11: copies at the same position are equal. Whoever may
    /// be the primary next knows what was served.
    pub(super) fn check(&mut self) {
        self.looks += 1;
        for (at, node) in self.nodes.iter().enumerate() {
            check_services(&node.partition.keyspace);
            let position = node.partition.history.position();
            // What stands still has seldom changed, and reading it takes long.
            let stands = std::mem::replace(&mut self.stood[at], position) == position;
            let Some(position) = position.filter(|_| !stands || self.looks.is_multiple_of(16)) else {
                continue;
            };
            let content = content(&node.partition.keyspace);
            let known = self.contents.entry(position).or_insert_with(|| content.clone());
            assert_eq!(*known, content, "{:?} has something else at {position:?}", id(at));
        }
        for &holder in &self.latest().row(PARTITION).holders {
            let node = &self.nodes[holder.0 as usize - 1];
            if node.run != self.latest().map.nodes[&holder].incarnation {
                continue; // that run is gone, and nobody has noticed yet
            }
            for (&key, &known) in &self.known {
                let found = value_of(&node.partition.keyspace, key);
                assert!(found >= known, "{holder:?} holds {found} for key {key}, {known} was acknowledged");
            }
        }
    }
}
