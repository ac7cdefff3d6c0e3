//! What nodes say to each other: encoding, frames, messages.
//!
//! For: one place that knows bincode, and one that knows how a frame looks.
//! Not here: sockets (the node's `net`), what a message does.

pub mod frame;
pub mod message;
pub mod piece;
pub mod wire;
