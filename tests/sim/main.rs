//! Whole nodes in a simulated world: one process, one thread, and one seed from which everything follows.
//!
//! For: finding what breaks a promise of the design, and repeating it.
//! Not here: what nodes do (`korum_node`), simulated sockets and clocks (`korum_node::env::simulated`).
//! Next: `scenario` makes a run of a seed, `world` steps the hosts, `faults` breaks them, `workload` writes and reads,
//! `invariants` looks inside after every step, `ending` demands that everything heals.
//!
//! `scripts/sim` builds this, with feature `sim`.

#![deny(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a table for people")]

mod chance;
mod ending;
mod errands;
mod faults;
mod history;
mod invariants;
mod known;
mod library;
mod reform;
mod runner;
mod scenario;
mod stranger;
mod workload;
mod world;

fn main() -> std::process::ExitCode {
    runner::main()
}
