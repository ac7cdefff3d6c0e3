//! What Korum nodes and clients must agree on. No IO, no clock, no chance.
//!
//! Modules in the order in which a request meets them.

#![forbid(unsafe_code)]

pub mod id;
pub mod limits;
pub mod rope;
pub mod resp;
pub mod command;
pub mod placement;
pub mod map;
pub mod peer;
