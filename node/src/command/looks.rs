//! How a command looks at keys, and what it found.
//!
//! For: hits and misses as `INFO` counts them, commands of transactions and scripts, and connections whose reads leave
//! no mark.
//! Not here: the looking (`store::keyspace`).

use korum_protocol::command::{CommandId, CommandSpec, Flags};

use crate::admin::command_stats::CommandStats;
use crate::replication::effect::Effects;
use crate::store::keyspace::{Keyspace, Place};
use crate::store::{Classes, Entry};

/// Counts what commands look up; lives as long as a batch of them.
#[derive(Debug)]
pub struct Looks {
    hits: u64,
    misses: u64,
    is_counted: bool,
    /// Commands that ran as parts of others: how often, and how often in vain.
    parts: Vec<(CommandId, u64, u64)>,
    /// Reads count as uses of a key.
    pub marks_access: bool,
}

impl Default for Looks {
    fn default() -> Self {
        Self { hits: 0, misses: 0, is_counted: false, parts: Vec::new(), marks_access: true }
    }
}

impl Looks {
    /// Tells which command looks next. Looks of commands that write are not counted, unless they tell the value.
    pub fn prepare(&mut self, spec: &CommandSpec, marks_access: bool) {
        self.is_counted = spec.flags.contains(Flags::READONLY)
            || matches!(spec.id, CommandId::GetSet | CommandId::GetDel | CommandId::GetEx);
        // Marking is all that TOUCH is for.
        self.marks_access = marks_access || spec.id == CommandId::Touch;
    }

    /// The living entry of a key, with its access marked if this caller marks any.
    pub fn read<'k>(
        &mut self,
        keyspace: &'k mut Keyspace,
        place: Place<'_>,
        now_ms: u64,
        effects: &mut Effects,
    ) -> Option<&'k Entry> {
        let entry = if self.marks_access {
            keyspace.read(place, now_ms, effects)
        } else {
            keyspace.look(place, now_ms, effects)
        };
        if entry.is_none() && self.is_counted {
            effects.notices.add(Classes::MISS, "keymiss", place.key);
        }
        self.count(entry.is_some());
        entry
    }

    /// The living entry of a key; its access mark stays.
    pub fn look<'k>(
        &mut self,
        keyspace: &'k mut Keyspace,
        place: Place<'_>,
        now_ms: u64,
        effects: &mut Effects,
    ) -> Option<&'k Entry> {
        let entry = keyspace.look(place, now_ms, effects);
        if entry.is_none() && self.is_counted {
            effects.notices.add(Classes::MISS, "keymiss", place.key);
        }
        self.count(entry.is_some());
        entry
    }

    fn count(&mut self, is_found: bool) {
        if self.is_counted {
            if is_found { self.hits += 1 } else { self.misses += 1 }
        }
    }

    /// A command has run as a part of another.
    pub fn ran(&mut self, id: CommandId, has_failed: bool) {
        let failed = u64::from(has_failed);
        match self.parts.iter_mut().find(|part| part.0 == id) {
            Some((_, calls, failures)) => (*calls, *failures) = (*calls + 1, *failures + failed),
            None => self.parts.push((id, 1, failed)),
        }
    }

    /// Counts what ran as parts of others.
    pub fn count_parts(&mut self, stats: &CommandStats) {
        for (id, calls, failures) in self.parts.drain(..) {
            stats.called(id, calls);
            stats.failed(id, failures);
        }
    }

    /// Hits and misses since the last call.
    pub fn take(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.hits), std::mem::take(&mut self.misses))
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::command::lookup;

    use super::*;

    #[test]
    fn only_commands_that_tell_values_count() {
        let mut looks = Looks::default();
        for name in ["get", "incr", "getdel", "del"] {
            looks.prepare(lookup(name.as_bytes()).unwrap(), false);
            looks.count(true);
            looks.count(false);
            assert!(!looks.marks_access);
        }
        assert_eq!((looks.take(), looks.take()), ((2, 2), (0, 0)));
        looks.prepare(lookup(b"touch").unwrap(), false);
        assert!(looks.marks_access);
    }
}
