//! Whole nodes in a simulated world: one process, one thread, and one seed from which everything follows.
//!
//! For: finding what breaks a promise of the design, and repeating it.
//! Not here: what nodes do (`korum_node`), simulated sockets and clocks (`korum_node::env::simulated`).
//! Next: `scenario` makes a run of a seed, `world` steps the hosts, `faults` breaks them, `workload` writes and reads,
//! `invariants` looks inside after every step, `ending` demands that everything heals.
//!
//! `scripts/sim` builds this with `--cfg korum_sim`; without it there is nothing here.

#![deny(unsafe_code)]

#[cfg(korum_sim)]
mod chance;
#[cfg(korum_sim)]
mod ending;
#[cfg(korum_sim)]
mod errands;
#[cfg(korum_sim)]
mod faults;
#[cfg(korum_sim)]
mod history;
#[cfg(korum_sim)]
mod invariants;
#[cfg(korum_sim)]
mod known;
#[cfg(korum_sim)]
mod runner;
#[cfg(korum_sim)]
mod scenario;
#[cfg(korum_sim)]
mod workload;
#[cfg(korum_sim)]
mod world;

#[cfg(korum_sim)]
fn main() -> std::process::ExitCode {
    runner::main()
}

#[cfg(not(korum_sim))]
fn main() {
    eprintln!("nothing to do without --cfg korum_sim: scripts/sim builds and runs the simulation");
}
