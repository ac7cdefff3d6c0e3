//! A world in which nodes run that has no wire and no clock of its own; built with feature `sim` only.
//!
//! For: the types that take the place of sockets and clocks, and what the world that steps the nodes may do to them.
//! Not here: which faults happen when (`tests/sim`).
//! Rule: one thread runs everything; what happens depends on nothing but the seed.

pub mod network;
pub mod stream;

use std::cell::Cell;
use std::net::Ipv4Addr;

use tokio::time::Instant;

pub use network::{Network, network};

thread_local! {
    static CURRENT: Cell<Option<Host>> = const { Cell::new(None) };
}

/// The machine that a node or a client runs on.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Where it is reached.
    pub ip: Ipv4Addr,
    /// A moment of its runtime's clock,
    pub epoch: Instant,
    /// at which its boot clock showed so many nanoseconds
    pub boot_ns: u64,
    /// and its wall clock so many microseconds since 1970.
    pub wall_us: u64,
}

/// The host whose turn it is.
///
/// # Panics
/// When it is nobody's turn: the world forgot to enter a host.
#[must_use]
pub fn current() -> Host {
    CURRENT.get().expect("inside the simulation, on some host")
}

/// Makes it a host's turn until the guard is dropped.
#[must_use]
pub fn enter(host: Host) -> Turn {
    Turn(CURRENT.replace(Some(host)))
}

/// Ends the turn when it is dropped.
pub struct Turn(Option<Host>);

impl Drop for Turn {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
