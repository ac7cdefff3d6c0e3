//! Sockets: listeners, client connections, links to peers.
//!
//! For: bytes in and bytes out, and who is connected.
//! Not here: what the bytes mean (`dispatch`, `replication`, `cluster`).

pub mod listener;
pub mod connection;
mod large;
pub mod session;
pub mod clients;
pub mod client;
pub mod outbox;
pub mod pubsub;
pub mod tracking;
pub mod monitors;
pub mod measure;
pub mod forward;
pub mod peer;
