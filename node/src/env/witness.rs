//! What the invariants of a simulation must be told, because no look between two steps shows it: the moment of an
//! answer.
//!
//! For: I2 and I3, which speak of what is answered.
//! Not here: judging it (`tests/sim/invariants`). A node that is built without feature `sim` tells nothing: the call
//! is empty there.

use korum_protocol::id::{NodeId, Position};
use korum_protocol::map::PartitionId;

/// An operation whose reply is handed out.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// By whom.
    pub node: NodeId,
    /// On which partition.
    pub partition: PartitionId,
    /// Where the partition stood after it.
    pub position: Position,
    /// The run that executed it may serve at this moment, or gave its lease back after it had executed it.
    pub is_leased: bool,
}

/// These are answered now.
#[cfg(not(feature = "sim"))]
#[inline(always)]
pub fn answers<I: IntoIterator<Item = Answered>>(_: impl FnOnce() -> I) {}

#[cfg(feature = "sim")]
mod seen {
    use std::cell::RefCell;

    use super::Answered;

    thread_local! {
        static ANSWERS: RefCell<Vec<Answered>> = const { RefCell::new(Vec::new()) };
    }

    /// These are answered now.
    pub fn answers<I: IntoIterator<Item = Answered>>(tell: impl FnOnce() -> I) {
        ANSWERS.with_borrow_mut(|answers| answers.extend(tell()));
    }

    /// What was answered since the last call, in order.
    #[must_use]
    pub fn take_answers() -> Vec<Answered> {
        ANSWERS.take()
    }
}

#[cfg(feature = "sim")]
pub use seen::{answers, take_answers};
