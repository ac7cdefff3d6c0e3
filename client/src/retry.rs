//! What is done after an attempt that brought no answer.
//!
//! For: one pure function from (failure, attempt, repeatable?) to a decision, and the pauses between attempts.
//! Not here: time, chance, sockets; `client` carries the decision out and adds the jitter.

use std::time::Duration;

use crate::error::{AttemptError, ServerError};

/// Most attempts of one request. With the pauses below this outlasts the default deadline, which is
/// what ends a request; it bounds the work if somebody sets a deadline of hours.
pub(crate) const ATTEMPTS_MAX: u32 = 64;
/// First pause. A cutover freezes a partition for a few milliseconds.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause. Failover takes about a second: no less than four looks at it.
const PAUSE_LONGEST: Duration = Duration::from_millis(250);

/// What an attempt met, as far as repeating it is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// `MOVED`, or the node knows that it is not the primary: our map is old. Not executed.
    Moved,
    /// `CLUSTERDOWN`, or the map names no primary. Not executed.
    Down,
    /// `TRYAGAIN`, `LOADING`: the right node, at the wrong moment. Not executed.
    Busy,
    /// No byte reached the socket. Not executed.
    NotSent,
    /// Sent, and no answer: executed or not.
    Unknown,
    /// Judged and refused, by the command or by the handshake.
    Final,
}

impl Failure {
    /// What an error reply means; the prefix decides.
    pub(crate) fn of_reply(error: &ServerError) -> Self {
        match error.prefix() {
            "MOVED" | "READONLY" => Self::Moved,
            "CLUSTERDOWN" | "MASTERDOWN" => Self::Down,
            "TRYAGAIN" | "LOADING" => Self::Busy,
            "UNKNOWN" => Self::Unknown,
            _ => Self::Final,
        }
    }

    /// What a lost attempt means.
    pub(crate) fn of_attempt(error: &AttemptError) -> Self {
        match error {
            AttemptError::NotSent { .. } => Self::NotSent,
            AttemptError::Unknown { .. } => Self::Unknown,
            AttemptError::Refused { error, .. } => match Self::of_reply(error) {
                // The handshake was answered, not the request.
                Self::Unknown | Self::Final => Self::Final,
                other => other,
            },
            AttemptError::NotServed(error) => Self::of_reply(error),
        }
    }

    /// Could the request have been executed?
    pub(crate) fn may_have_run(self) -> bool {
        match self {
            Self::Moved | Self::Down | Self::Busy | Self::NotSent => false,
            Self::Unknown | Self::Final => true,
        }
    }
}

/// Which nodes may answer a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reach {
    /// Only the primary of its slot.
    Primary,
    /// Any node.
    AnyNode,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Pause, then ask the same node again.
    SameTarget {
        /// How long, before jitter.
        pause: Duration,
    },
    /// Pause, get a newer map, then ask whoever it names.
    Refresh {
        /// How long, before jitter.
        pause: Duration,
    },
    /// Ask another node; have the map refreshed meanwhile.
    NextTarget {
        /// How long, before jitter.
        pause: Duration,
    },
    /// Tell the caller.
    GiveUp,
}

/// Decides what follows attempt number `attempt` (from 1).
pub(crate) fn decide(failure: Failure, attempt: u32, repeatable: bool, reach: Reach) -> Decision {
    if attempt >= ATTEMPTS_MAX {
        return Decision::GiveUp;
    }
    let pause = pause_after(attempt);
    match (failure, reach) {
        (Failure::Final, _) => Decision::GiveUp,
        (Failure::Unknown, _) if !repeatable => Decision::GiveUp,
        (Failure::Busy, _) => Decision::SameTarget { pause: pause.max(PAUSE_FIRST) },
        (_, Reach::AnyNode) => Decision::NextTarget { pause },
        (Failure::Moved | Failure::Down | Failure::NotSent | Failure::Unknown, Reach::Primary) => {
            Decision::Refresh { pause }
        }
    }
}

/// None after the first attempt (a newer map probably helps), then doubling.
fn pause_after(attempt: u32) -> Duration {
    if attempt <= 1 {
        return Duration::ZERO;
    }
    backoff(attempt - 2, PAUSE_FIRST, PAUSE_LONGEST)
}

/// `first` doubled `failures` times, at most `longest`.
pub(crate) fn backoff(failures: u32, first: Duration, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.min(16)).min(longest)
}

/// A random part of `pause`, from half of it to all of it: what failed together does not return together.
pub(crate) fn with_jitter(pause: Duration, random: f64) -> Duration {
    pause.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAILURES: [Failure; 6] =
        [Failure::Moved, Failure::Down, Failure::Busy, Failure::NotSent, Failure::Unknown, Failure::Final];

    #[test]
    fn an_unknown_outcome_is_repeated_only_when_that_is_safe() {
        for reach in [Reach::Primary, Reach::AnyNode] {
            assert_eq!(decide(Failure::Unknown, 1, false, reach), Decision::GiveUp);
            assert_ne!(decide(Failure::Unknown, 1, true, reach), Decision::GiveUp);
        }
    }

    #[test]
    fn the_first_redirect_costs_no_pause() {
        let refresh = Decision::Refresh { pause: Duration::ZERO };
        assert_eq!(decide(Failure::Moved, 1, false, Reach::Primary), refresh);
        assert_eq!(decide(Failure::NotSent, 1, false, Reach::Primary), refresh);
        assert!(
            matches!(decide(Failure::Moved, 2, false, Reach::Primary), Decision::Refresh { pause } if pause > Duration::ZERO)
        );
    }

    #[test]
    fn prefixes_are_read_as_the_contract_says() {
        for (text, failure) in [
            ("MOVED 1 a:1", Failure::Moved),
            ("CLUSTERDOWN Hash slot not served", Failure::Down),
            ("TRYAGAIN", Failure::Busy),
            ("LOADING data", Failure::Busy),
            ("WRONGTYPE x", Failure::Final),
            ("OOM x", Failure::Final),
            ("ERR x", Failure::Final),
        ] {
            assert_eq!(Failure::of_reply(&ServerError::new(text)), failure, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_may_have_run_is_never_repeated_unless_repeatable(
            which in 0usize..6, attempt in 1u32..100, any in any::<bool>()
        ) {
            let failure = FAILURES[which];
            let reach = if any { Reach::AnyNode } else { Reach::Primary };
            let decision = decide(failure, attempt, false, reach);
            prop_assert!(!failure.may_have_run() || decision == Decision::GiveUp);
        }

        #[test]
        fn attempts_and_pauses_are_bounded(which in 0usize..6, attempt in 1u32..200, repeatable in any::<bool>()) {
            match decide(FAILURES[which], attempt, repeatable, Reach::Primary) {
                Decision::GiveUp => {}
                Decision::SameTarget { pause } | Decision::Refresh { pause } | Decision::NextTarget { pause } => {
                    prop_assert!(attempt < ATTEMPTS_MAX);
                    prop_assert!(pause <= PAUSE_LONGEST);
                }
            }
        }

        #[test]
        fn jitter_keeps_at_least_half(ms in 0u64..10_000, random in 0.0f64..1.0) {
            let pause = Duration::from_millis(ms);
            let jittered = with_jitter(pause, random);
            prop_assert!(jittered <= pause && jittered >= pause / 2);
        }
    }
}
