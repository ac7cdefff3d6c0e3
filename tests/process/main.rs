//! Whole clusters of real processes: what works across nodes, and what survives real faults.
//!
//! For: the guarantees of a cluster, each tried from outside. Tests that measure time hold `alone()`.
//! Not here: bytes of one node (`wire/`).
//! Sizes fit a machine with two cores; `KORUM_TEST_FULL=1` takes those of the specification.

mod blocking;
mod chaos;
mod client;
mod collections;
mod copies;
mod databases;
mod dials;
mod drain;
mod empty_restart;
mod flap;
mod functions;
mod join;
mod kill;
mod large;
mod meet;
mod pause;
mod ports;
mod promises;
mod pubsub;
mod reform;
mod rolling;
mod scripts;
mod several_slots;
mod tracking;
mod transactions;

use std::time::Instant;

use korum_tests::harness::setting;
use korum_tests::harness::writers::{History, Load, longest_wait, rate};

/// The size for every day, or the one of the specification.
fn size(daily: u64, full: u64) -> u64 {
    if setting("KORUM_TEST_FULL", 0) == 1 { full } else { daily }
}

/// The writes that go on while nodes join and leave: enough at a time that waits do not lower the rate.
fn steady(name: &'static str) -> Load {
    let keys = size(3_000, 20_000) as u32;
    Load { writers: 8, keys, rate: Some(size(5_000, 20_000)), pipeline: 32, value_bytes: 100, name }
}

/// How a change of membership went for those who wrote meanwhile.
fn report(what: &str, histories: &[History], begin: Instant, end: Instant) -> String {
    let errors: usize = histories.iter().map(|history| history.errors.len() + history.disconnects).sum();
    let (longest, since) = longest_wait(histories).expect("somebody wrote");
    format!(
        "{what}: {:.1?}, {:.0} writes/s meanwhile, {errors} errors, longest wait {longest:.0?}, {:.1?} after the beginning",
        end - begin,
        rate(histories, begin, end),
        since.saturating_duration_since(begin)
    )
}
