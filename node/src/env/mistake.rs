//! Mistakes that can be made on purpose, to prove that the simulation catches them.
//!
//! For: one question at each place where a promise of the design hangs on one line.
//! Not here: anything outside a simulation. A node that is built without feature `sim` makes none of them: the
//! question is a constant there, and its branch is gone.

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A write is answered before the other copies have it.
    AnswerBeforeCopies,
    /// A copy takes what an outdated primary sends.
    AnyEra,
    /// A lease is counted from the answer, not from the request.
    LeaseFromAnswer,
    /// A new leader does not wait until its predecessor's leases have run out.
    NoTakeoverWait,
    /// A partition goes on serving while a cutover that ends its primacy is proposed.
    NoFreeze,
    /// A node is proposed as a holder before it has everything.
    EarlyHolder,
    /// A deletion is not told to a copy that is being streamed.
    ForgottenDelete,
    /// A copy counts a deadline from when it hears of it.
    RelativeDeadline,
    /// The lease is not looked at again before an answer goes out.
    LeaseNotRechecked,
    /// What Raft has written is taken for durable although it was not synced.
    UnsyncedLog,
    /// A copy that is repaired or streamed is not told which waiting commands were served.
    ForgottenServices,
}

/// All of them.
pub const MISTAKES: &[Mistake] = &[
    Mistake::AnswerBeforeCopies,
    Mistake::AnyEra,
    Mistake::LeaseFromAnswer,
    Mistake::NoTakeoverWait,
    Mistake::NoFreeze,
    Mistake::EarlyHolder,
    Mistake::ForgottenDelete,
    Mistake::RelativeDeadline,
    Mistake::LeaseNotRechecked,
    Mistake::UnsyncedLog,
    Mistake::ForgottenServices,
];

/// Is this mistake to be made?
#[cfg(not(feature = "sim"))]
#[must_use]
#[inline(always)]
pub const fn makes(_: Mistake) -> bool {
    false
}

#[cfg(feature = "sim")]
mod chosen {
    use std::cell::Cell;

    use super::Mistake;

    thread_local! {
        static CHOSEN: Cell<Option<Mistake>> = const { Cell::new(None) };
    }

    /// Is this mistake to be made?
    #[must_use]
    pub fn makes(mistake: Mistake) -> bool {
        CHOSEN.get() == Some(mistake)
    }

    /// From now on this one is made, on this thread.
    pub fn make(mistake: Option<Mistake>) {
        CHOSEN.set(mistake);
    }
}

#[cfg(feature = "sim")]
pub use chosen::{make, makes};
