//! One node, bytes on a socket.
//!
//! For: what every client may rely on: replies, errors, limits, byte for byte as Redis 7.0 has them.
//! Not here: many nodes and faults (`process/`), client libraries (`wire/py`, `wire/js`, `redis_crate`).

mod databases;
mod events;
mod functions;
mod hostile;
mod protocol;
mod pubsub;
mod replies;
mod resp3;
mod scripts;
mod session;
mod talk;
mod tracking;
mod transactions;
mod watching;
