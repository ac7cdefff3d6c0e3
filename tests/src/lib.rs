//! Whole Korum nodes, seen from outside.
//!
//! For: what the tests in `wire/` (one node, bytes on a socket) and `process/` (real processes and real faults) share.
//! Not here: anything that looks inside a node. A test knows what a client knows: addresses, replies, processes.
//! Next: `harness::cluster` starts nodes, `harness::writers` remembers what was acknowledged, `check` judges histories.

#![deny(unsafe_code)]

pub mod check;
pub mod harness;
