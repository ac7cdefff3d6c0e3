//! How often each command was called, and how long a worker was busy with it.
//!
//! For: `INFO commandstats` and `latencystats`, `LATENCY HISTOGRAM`.
//! Not here: what else is counted (`stats`), how times are divided into classes (`histogram`).
//!
//! A thread has rows of its own and writes to no other, so counting takes plain loads and stores. A command that is
//! measured anyhow, for the slow log, counts its own time; the others of a batch share what the batch took beside
//! those, so nobody reads the clock for them alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use korum_protocol::command::{CommandId, CommandSpec, table};

use super::histogram::{CLASSES, Distribution, class_of};

/// Number of commands and subcommands.
const COMMANDS: usize = CommandId::ALL.len();

/// The rows of one thread.
pub struct CommandStats {
    rows: Box<[Row]>,
}

#[derive(Default)]
struct Row {
    calls: AtomicU64,
    nanos: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    /// Made when it is first needed: most commands are never called.
    times: OnceLock<Box<[AtomicU64]>>,
}

/// What was counted of one command.
#[derive(Clone, Default, Debug)]
pub struct CommandTotals {
    /// How often it was run.
    pub calls: u64,
    /// How long all that took, nanoseconds.
    pub nanos: u64,
    /// How often it was refused before it was run.
    pub rejected: u64,
    /// How often it answered an error.
    pub failed: u64,
    /// How long each took, of those that were measured.
    pub times: Distribution,
}

/// The totals of all commands of which there are any, by whole name.
pub type AllTotals = BTreeMap<&'static str, CommandTotals>;

impl Default for CommandStats {
    fn default() -> Self {
        Self { rows: (0..COMMANDS).map(|_| Row::default()).collect() }
    }
}

/// Adds to a number that no other thread writes.
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}

impl CommandStats {
    /// A command was run so many times.
    pub fn called(&self, id: CommandId, calls: u64) {
        add(&self.rows[id as usize].calls, calls);
    }

    /// So many runs of a command took as long, each.
    pub fn took(&self, id: CommandId, runs: u64, nanos: u64) {
        let row = &self.rows[id as usize];
        add(&row.nanos, nanos * runs);
        let times = row.times.get_or_init(|| (0..CLASSES).map(|_| AtomicU64::new(0)).collect());
        add(&times[class_of(nanos)], runs);
    }

    /// A command was refused before it was run.
    pub fn rejected(&self, id: CommandId) {
        add(&self.rows[id as usize].rejected, 1);
    }

    /// A command answered so many errors.
    pub fn failed(&self, id: CommandId, errors: u64) {
        add(&self.rows[id as usize].failed, errors);
    }

    /// Adds everything to `totals`.
    pub fn add_to(&self, totals: &mut AllTotals) {
        for spec in specs() {
            let row = &self.rows[spec.id as usize];
            let numbers = [&row.calls, &row.nanos, &row.rejected, &row.failed].map(|it| it.load(Relaxed));
            if numbers == [0; 4] {
                continue;
            }
            let total = totals.entry(spec.full_name).or_default();
            let sums = [&mut total.calls, &mut total.nanos, &mut total.rejected, &mut total.failed];
            sums.into_iter().zip(numbers).for_each(|(sum, number)| *sum += number);
            for (class, count) in row.times.get().into_iter().flatten().enumerate() {
                total.times.add(class, count.load(Relaxed));
            }
        }
    }

    /// Back to zero.
    pub fn reset(&self) {
        for row in &self.rows {
            [&row.calls, &row.nanos, &row.rejected, &row.failed].iter().for_each(|it| it.store(0, Relaxed));
            row.times.get().into_iter().flatten().for_each(|count| count.store(0, Relaxed));
        }
    }
}

fn specs() -> impl Iterator<Item = &'static CommandSpec> {
    table::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_up_and_reset() {
        let threads = [CommandStats::default(), CommandStats::default()];
        threads[0].called(CommandId::Get, 3);
        threads[0].took(CommandId::Get, 3, 1_000);
        threads[1].called(CommandId::Get, 1);
        threads[1].failed(CommandId::Get, 1);
        threads[1].rejected(CommandId::ConfigSet);
        let totals = |threads: &[CommandStats]| {
            let mut totals = AllTotals::new();
            threads.iter().for_each(|thread| thread.add_to(&mut totals));
            totals
        };
        let all = totals(&threads);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), ["config|set", "get"]);
        let get = &all["get"];
        assert_eq!((get.calls, get.nanos, get.failed, get.times.total()), (4, 3_000, 1, 3));
        assert_eq!(all["config|set"].rejected, 1);
        threads.iter().for_each(CommandStats::reset);
        assert!(totals(&threads).is_empty());
    }
}
