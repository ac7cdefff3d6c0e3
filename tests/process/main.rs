//! Whole clusters of real processes: what works across nodes, and what survives real faults.
//!
//! For: the guarantees of a cluster, each tried from outside. Tests that measure time hold `alone()`.
//! Not here: bytes of one node (`wire/`).
//! Sizes fit a machine with two cores; `KORUM_TEST_FULL=1` takes those of the specification.

mod client;
mod copies;
mod drain;
mod empty_restart;
mod flap;
mod join;
mod kill;
mod large;
mod pause;
mod ports;
mod promises;

use korum_tests::harness::setting;

/// The size for every day, or the one of the specification.
fn size(daily: u64, full: u64) -> u64 {
    if setting("KORUM_TEST_FULL", 0) == 1 { full } else { daily }
}
