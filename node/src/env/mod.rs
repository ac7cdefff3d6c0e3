//! The only doors to clock, chance and network.
//!
//! For: letting a simulator stand where the world stands.
//! Not here: anything that decides.

pub mod clock;
pub mod mistake;
pub mod random;
#[cfg(feature = "sim")]
pub mod simulated;
pub mod transport;
pub mod witness;

pub use clock::{Clock, Tick};
