//! What the commands of a batch count for.
//!
//! For: calls, refusals, errors and times of commands, told to the worker's rows once for a whole batch.
//! Not here: the rows (`admin::command_stats`), measuring (`net::measure`).

use std::time::Duration;

use korum_protocol::command::CommandId;

use super::batch::Batch;
use super::parts::Counted;
use crate::admin::command_stats::CommandStats;

impl Batch {
    /// The command opened last was run; `took`: if it was measured.
    pub fn called(&mut self, id: CommandId, took: Option<Duration>) {
        self.last().counted = Counted::Call { id, nanos: took.map(nanos) };
    }

    /// The command opened last was refused.
    pub fn refused(&mut self, id: CommandId) {
        self.last().counted = Counted::Refusal(id);
    }

    /// Counts what was run. All of it took `busy`: what was not measured shares what that leaves. `times`: whether
    /// anybody wants to know.
    pub fn count_calls(&self, stats: &CommandStats, busy: Duration, times: bool) {
        let counted = || self.commands.iter().map(|command| command.counted);
        let (mut measured, mut unmeasured) = (0, 0);
        for command in counted() {
            match command {
                Counted::Call { nanos: Some(nanos), .. } => measured += nanos,
                Counted::Call { nanos: None, .. } | Counted::Refusal(_) => unmeasured += 1,
                Counted::Nothing => {}
            }
        }
        let share = nanos(busy).saturating_sub(measured).checked_div(unmeasured).unwrap_or(0);
        let mut run: Option<(CommandId, u64)> = None;
        let tell = |(id, calls)| {
            stats.called(id, calls);
            if times {
                stats.took(id, calls, share);
            }
        };
        for command in counted() {
            match (command, &mut run) {
                (Counted::Call { id, nanos: None }, Some((same, calls))) if *same == id => *calls += 1,
                (Counted::Call { id, nanos: None }, _) => {
                    run.replace((id, 1)).map(tell);
                }
                (Counted::Call { id, nanos: Some(nanos) }, _) => {
                    stats.called(id, 1);
                    if times {
                        stats.took(id, 1, nanos);
                    }
                }
                (Counted::Refusal(id), _) => stats.rejected(id),
                (Counted::Nothing, _) => {}
            }
        }
        run.map(tell);
    }

    /// The command opened last has answered an error here.
    pub(super) fn ends_with_error(&self) -> bool {
        let start = self.commands.last().map(|command| command.start);
        start.is_some_and(|start| self.out.copied_since(start).first() == Some(&b'-'))
    }

    /// A command has answered an error.
    pub fn count_error(&self, command: usize, stats: &CommandStats) {
        if let Counted::Call { id, .. } = self.commands[command].counted {
            stats.failed(id, 1);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::admin::command_stats::AllTotals;
    use crate::dispatch::{Caller, Port};
    use crate::env::random::random;

    #[test]
    fn what_was_not_measured_shares_the_rest() {
        let mut batch = Batch::new(random());
        let caller = Caller::plain(Port::Client);
        for (id, took) in [(CommandId::Get, None), (CommandId::Get, None), (CommandId::Keys, Some(700))] {
            batch.open(0..0, caller);
            batch.called(id, took.map(Duration::from_nanos));
        }
        batch.open(0..0, caller);
        batch.refused(CommandId::Set);
        batch.open(0..0, caller);
        let stats = CommandStats::default();
        batch.count_calls(&stats, Duration::from_nanos(1000), true);
        batch.count_error(2, &stats);
        batch.count_error(4, &stats);
        let mut totals = AllTotals::new();
        stats.add_to(&mut totals);
        let row = |name: &str| {
            let row = &totals[name];
            (row.calls, row.nanos, row.rejected, row.failed)
        };
        assert_eq!((row("get"), row("keys"), row("set")), ((2, 200, 0, 0), (1, 700, 0, 1), (0, 0, 1, 0)));
        assert_eq!(totals.len(), 3);
    }
}
