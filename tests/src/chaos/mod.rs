//! Faults on real processes, under clients whose histories are checked.
//!
//! For: one run (`run`) of one fault (`fault`): start, load, break, heal, demand rest (`rest`), judge; and the table of
//! many (`report`). Used by `tests/process/chaos.rs` and by the program `chaos` behind `scripts/chaos`.
//! Not here: how clients, nodes and the network between them work (`harness`), what a right history is (`check`).

pub mod fault;
pub mod report;
mod rest;
pub mod run;
mod severed;

pub use fault::Fault;
pub use run::{Outcome, run};
