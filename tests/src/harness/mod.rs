//! The tools of the tests, from the socket up.

pub mod binary;
pub mod cluster;
pub mod network;
pub mod ports;
pub mod recorder;
pub mod resp;
pub mod server;
pub mod wait;
pub mod writers;

use std::sync::{Mutex, MutexGuard, PoisonError};

static ALONE: Mutex<()> = Mutex::new(());

/// Held by a test that measures time or loads the machine: tests of one binary that hold it run one after the other.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number from the environment, or its default: how the sizes of tests grow where there is time.
#[must_use]
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}
