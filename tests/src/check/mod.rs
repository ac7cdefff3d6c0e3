//! Is what clients saw of one key explained by one order of their operations?
//!
//! For: a linearizability check of one key's history, whatever it holds. Pure: values in, a verdict out.
//! Not here: sockets, clocks, threads; who recorded the history (`harness::recorder`, the simulation).
//! Next: `model` is what one key does, `search` looks for an order, `prepare` makes its work small; `items` asks of
//! queues whether anything was lost or came twice. For those who record: `kind` chooses commands, `wire` says them.
//!
//! A history is linearizable if every acknowledged operation can be given one moment between its call and its reply,
//! so that executing them in that order on one key gives the replies that were seen. An operation of unknown outcome
//! may be given a moment at any time after its call, or none. One that failed has none.

mod items;
mod kind;
mod model;
mod prepare;
mod search;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::time::Duration;

pub use items::{Items, account};
pub use kind::{Fresh, Kind};
pub use model::{Bytes, Command, Condition, Reply, State, Value};
pub use model::{hash, list, pair, set, sorted_set, stream};
pub use wire::{Answer, Request, read, requests};

/// One operation on the key, as its client saw it. All times count from one moment, on one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Who called; only for people.
    pub client: usize,
    /// When it was called: not later than the first byte was sent.
    pub call: Duration,
    /// What was called.
    pub command: Command,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done, with this reply.
    Acknowledged {
        /// When the reply was read: not earlier than its last byte came.
        at: Duration,
        /// The reply.
        reply: Reply,
    },
    /// Certainly not done, and never will be.
    Failed,
    /// Done at some time after the call, perhaps much later, or never.
    Unknown,
}

/// What a check allows.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How far the clock by which a key expires may be from the history's, either way, and how late an expired key may
    /// still be seen.
    pub clock_margin: Duration,
    /// Steps after which the search gives up. A step is one look at one partial order.
    pub steps: usize,
}

impl Default for Rules {
    /// One machine: its processes share a clock, which ticks in whole milliseconds where deadlines are made.
    fn default() -> Self {
        Self { clock_margin: Duration::from_millis(20), steps: 2_000_000 }
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// There is such an order.
    Linearizable {
        /// Steps that it took to find.
        steps: usize,
    },
    /// There is none.
    Violation(Violation),
    /// Not known: the history is too long or too concurrent for [`Rules::steps`]. A test must be sized so that this
    /// does not happen.
    Undecided {
        /// Steps that were taken.
        steps: usize,
    },
}

impl Verdict {
    /// Is there an order?
    #[must_use]
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Verdict::Linearizable { .. })
    }
}

/// How far the best order came, for people.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Acknowledged operations that could be placed.
    pub placed: usize,
    /// Acknowledged operations in all.
    pub total: usize,
    /// What the key held then.
    pub state: State,
    /// Operations that could come next, none of whose replies fit: by call, the first few.
    pub stuck: Vec<Operation>,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { placed, total, state, stuck } = self;
        writeln!(
            out,
            "{placed} of {total} acknowledged operations can be put in order; then the key holds {state}"
        )?;
        writeln!(out, "and none of these can come next:")?;
        stuck.iter().try_for_each(|operation| writeln!(out, "    {operation}"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { client, call, command, outcome } = self;
        write!(out, "client {client} [{:.6}, ", call.as_secs_f64())?;
        match outcome {
            Outcome::Acknowledged { at, reply } => {
                write!(out, "{:.6}] {command} -> {reply}", at.as_secs_f64())
            }
            Outcome::Failed => write!(out, "failed] {command}"),
            Outcome::Unknown => write!(out, "unknown] {command}"),
        }
    }
}

/// Looks for an order of the operations of one key, which did not exist before.
///
/// The order of `history` does not matter. Time and memory grow with [`Rules::steps`] at most.
#[must_use]
pub fn check(history: &[Operation], rules: &Rules) -> Verdict {
    search::search(&prepare::prepare(history, rules.clock_margin), rules)
}
