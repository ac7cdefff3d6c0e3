//! The bookkeeping of a batch: which commands are open, which answers stand, what may be repeated.
//!
//! For: putting the answers of several nodes back in order, and keeping the order of each slot when a part is repeated.
//! Not here: sockets and pauses (`client` drives it), grouping by node (`target`).

use std::collections::HashMap;

use crate::retry::{self, Decision, Failure, Reach};
use crate::target::Route;

/// What a batch needs to know of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Where it may run.
    pub(crate) route: Route,
    /// Does executing it twice change nothing?
    pub(crate) repeatable: bool,
}

/// What one attempt brought one command.
#[derive(Debug)]
pub(crate) enum Outcome<R, E> {
    /// An answer.
    Done(R),
    /// No answer, or one that asks for another attempt.
    Failed(Failure, E),
}

/// A batch under way. `R` is an answer, `E` the reason why there is none.
#[derive(Debug)]
pub(crate) struct Batch<R, E> {
    entries: Vec<Entry>,
    results: Vec<Option<Result<R, (Failure, E)>>>,
    /// Last attempt of those without a result.
    open: Vec<usize>,
    /// Per slot, the last position that may have been executed: nothing before it is repeated.
    executed: HashMap<u16, usize>,
    attempt: u32,
}

impl<R, E> Batch<R, E> {
    /// A batch in which everything is open.
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let open = (0..entries.len()).collect();
        let results = entries.iter().map(|_| None).collect();
        Self { entries, results, open, executed: HashMap::new(), attempt: 0 }
    }

    /// Commands to send next, in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = (usize, Route)> + '_ {
        self.open.iter().map(|&position| (position, self.entries[position].route))
    }

    /// Nothing left to send.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes what one attempt brought to each open command, and says how to go on; `GiveUp` when all is settled.
    ///
    /// A failed command is repeated only while no later command of its slot may have been executed:
    /// a repeated write must not overtake the write that followed it.
    pub(crate) fn absorb(&mut self, outcomes: Vec<(usize, Outcome<R, E>)>) -> Decision {
        self.attempt += 1;
        for (position, outcome) in &outcomes {
            let ran = match outcome {
                Outcome::Done(_) => true,
                Outcome::Failed(failure, _) => failure.may_have_run(),
            };
            if let (true, Route::Slot(slot)) = (ran, self.entries[*position].route) {
                let last = self.executed.entry(slot).or_insert(*position);
                *last = (*last).max(*position);
            }
        }
        let mut next = Decision::GiveUp;
        self.open.clear();
        for (position, outcome) in outcomes {
            match outcome {
                Outcome::Done(reply) => self.results[position] = Some(Ok(reply)),
                Outcome::Failed(failure, error) => {
                    let decision = self.decide(position, failure);
                    if decision != Decision::GiveUp {
                        self.open.push(position);
                        next = stronger(next, decision);
                    }
                    self.results[position] = Some(Err((failure, error)));
                }
            }
        }
        self.open.sort_unstable();
        next
    }

    fn decide(&self, position: usize, failure: Failure) -> Decision {
        let entry = self.entries[position];
        let reach = match entry.route {
            Route::Slot(slot) => {
                if self.executed.get(&slot).is_some_and(|&last| last > position) {
                    return Decision::GiveUp;
                }
                Reach::Primary
            }
            Route::AnyNode => Reach::AnyNode,
        };
        retry::decide(failure, self.attempt, entry.repeatable, reach)
    }

    /// The answers, in the order of the commands; what is still open has its last failure,
    /// or `None` if it was never tried.
    pub(crate) fn into_results(self) -> Vec<Option<Result<R, (Failure, E)>>> {
        self.results
    }
}

/// Of two decisions for one round, the one that also serves the other: a refresh helps everybody.
fn stronger(one: Decision, other: Decision) -> Decision {
    fn rank(decision: Decision) -> (u8, std::time::Duration) {
        match decision {
            Decision::GiveUp => (0, std::time::Duration::ZERO),
            Decision::SameTarget { pause } => (1, pause),
            Decision::NextTarget { pause } => (2, pause),
            Decision::Refresh { pause } => (3, pause),
        }
    }
    if rank(other) > rank(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(slot: u16) -> Entry {
        Entry { route: Route::Slot(slot), repeatable: false }
    }

    #[test]
    fn a_redirected_write_is_repeated() {
        let mut batch = Batch::new(vec![write(1), write(2)]);
        let next = batch.absorb(vec![(0, Outcome::Failed(Failure::Moved, "m")), (1, Outcome::Done("b"))]);
        assert!(matches!(next, Decision::Refresh { .. }));
        assert_eq!(batch.open().map(|(position, _)| position).collect::<Vec<_>>(), [0]);
        assert_eq!(batch.absorb(vec![(0, Outcome::Done("a"))]), Decision::GiveUp);
        let results: Vec<_> = batch.into_results().into_iter().flatten().map(|result| result.ok()).collect();
        assert_eq!(results, [Some("a"), Some("b")]);
    }

    #[test]
    fn a_write_is_not_repeated_behind_a_later_write_of_its_slot() {
        let mut batch = Batch::new(vec![write(1), write(1)]);
        let next = batch.absorb(vec![(0, Outcome::Failed(Failure::Busy, "busy")), (1, Outcome::Done("b"))]);
        assert_eq!(next, Decision::GiveUp);
        assert!(batch.is_settled());
        assert_eq!(batch.into_results()[0], Some(Err((Failure::Busy, "busy"))));
    }

    proptest! {
        /// Whatever the nodes answer, each command is executed at most once (writes),
        /// and the executions of one slot stand in the order of the batch.
        #[test]
        fn writes_run_at_most_once_and_in_order_of_their_slot(
            slots in prop::collection::vec(0u16..4, 1..12),
            script in prop::collection::vec(0u8..5, 1..200),
        ) {
            let mut batch: Batch<usize, ()> = Batch::new(slots.iter().map(|&slot| write(slot)).collect());
            let mut runs: Vec<usize> = Vec::new();
            let mut script = script.into_iter().cycle();
            while !batch.is_settled() {
                prop_assert!(batch.attempt < 100);
                let open: Vec<usize> = batch.open().map(|(position, _)| position).collect();
                let mut outcomes = Vec::new();
                for position in open {
                    outcomes.push((position, match script.next() {
                        Some(0) => Outcome::Failed(Failure::Moved, ()),
                        Some(1) => Outcome::Failed(Failure::Busy, ()),
                        Some(2) => Outcome::Failed(Failure::NotSent, ()),
                        Some(3) => { runs.push(position); Outcome::Failed(Failure::Unknown, ()) }
                        _ => { runs.push(position); Outcome::Done(position) }
                    }));
                }
                batch.absorb(outcomes);
            }
            for slot in 0..4 {
                let of_slot: Vec<usize> = runs.iter().copied().filter(|&position| slots[position] == slot).collect();
                prop_assert!(of_slot.windows(2).all(|pair| pair[0] < pair[1]), "{of_slot:?}");
            }
            for (position, result) in batch.into_results().into_iter().enumerate() {
                let result = result.expect("every command was tried");
                if let Ok(reply) = result { prop_assert_eq!(reply, position); }
            }
        }
    }
}
