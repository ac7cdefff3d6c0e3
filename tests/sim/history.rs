//! What clients saw, in one order.
//!
//! For: recording every call and its outcome, and judging the histories of all keys.
//! Not here: the judgement itself (`korum_tests::check`).
//!
//! Times are the world's, and every event gets a moment of its own: what happens in one step happens one thing after
//! the other, so no two events are at the same time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use korum_tests::check::{self, Command, Operation, Outcome, Reply, Rules, Verdict};

use crate::world::{STEP_US, log};

/// How far a key's end may be from what the history says: wall clocks differ by a few milliseconds, and travel takes
/// some more.
pub const WALL_SKEW_MAX_US: i64 = 4_000;

thread_local! {
    static HISTORY: RefCell<BTreeMap<String, Vec<Operation>>> = const { RefCell::new(BTreeMap::new()) };
    static LAST: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { acknowledged: 0, failed: 0, unknown: 0 }) };
}

/// How many operations ended how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub acknowledged: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// Forgets everything.
pub fn clear() {
    HISTORY.with(|history| history.borrow_mut().clear());
    LAST.set(Duration::ZERO);
    COUNTS.set(Counts::default());
}

/// A moment that no other event has.
pub fn moment() -> Duration {
    let step = Duration::from_micros(log::now_us());
    // Nanoseconds count the events of a step.
    let moment = if LAST.get() >= step { LAST.get() + Duration::from_nanos(1) } else { step };
    assert!(moment < step + Duration::from_micros(STEP_US), "more events in a step than nanoseconds");
    LAST.set(moment);
    moment
}

/// A call begins; its outcome is unknown until it is told. Gives its place.
pub fn call(client: usize, key: &str, command: Command) -> usize {
    let operation = Operation { client, call: moment(), command, outcome: Outcome::Unknown };
    count(|counts| counts.unknown += 1);
    HISTORY.with(|history| {
        let mut history = history.borrow_mut();
        let operations = history.entry(key.to_owned()).or_default();
        operations.push(operation);
        operations.len() - 1
    })
}

/// The outcome of a call. `None`: it was certainly not done.
pub fn outcome(key: &str, place: usize, reply: Option<Reply>) {
    count(|counts| {
        counts.unknown -= 1;
        *(if reply.is_some() { &mut counts.acknowledged } else { &mut counts.failed }) += 1;
    });
    let outcome = reply.map_or(Outcome::Failed, |reply| Outcome::Acknowledged { at: moment(), reply });
    HISTORY.with(|history| {
        if let Some(operations) = history.borrow_mut().get_mut(key) {
            operations[place].outcome = outcome;
        }
    });
}

fn count(change: impl FnOnce(&mut Counts)) {
    let mut counts = COUNTS.get();
    change(&mut counts);
    COUNTS.set(counts);
}

/// How many operations ended how.
pub fn counts() -> Counts {
    COUNTS.get()
}

/// The whole history of a key, for whoever looks at one seed (`--verbose`).
fn tell(key: &str, operations: &[Operation]) {
    tracing::info!(key, "what clients saw:");
    operations.iter().for_each(|operation| tracing::info!("{operation}"));
}

/// Judges every key but those that `is_excused`.
///
/// # Errors
/// What no order explains.
pub fn judge(is_excused: impl Fn(&str) -> bool) -> Result<(), String> {
    let rules = Rules { clock_margin: Duration::from_millis(30), ..Rules::default() };
    HISTORY.with(|history| {
        for (key, operations) in history.borrow().iter().filter(|(key, _)| !is_excused(key)) {
            if operations.iter().any(|operation| matches!(operation.command, Command::List(_))) {
                check::account(operations).map_err(|what| {
                    tell(key, operations);
                    format!("queue {key}: {what}")
                })?;
            }
            match check::check(operations, &rules) {
                Verdict::Linearizable { .. } => {}
                Verdict::Violation(violation) => {
                    tell(key, operations);
                    return Err(format!("key {key} is not linearizable: {violation}"));
                }
                Verdict::Undecided { steps } => {
                    return Err(format!(
                        "key {key}: {} operations, undecided after {steps} steps",
                        operations.len()
                    ));
                }
            }
        }
        Ok(())
    })
}
