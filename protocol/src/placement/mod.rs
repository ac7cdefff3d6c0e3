//! Where keys belong: pure arithmetic that every node and client computes alike (PLACEMENT.md).
//!
//! For: key → slot → ranking → replica sets.
//! Not here: who holds what right now (that is `map`), and anything that asks a clock or a socket.
//! Next: `slot` for the key's way in, `choose_k` for the ranking, `table` for the replica sets.
//! `baselines` are other ways, to compare against; nothing is ever placed by them.

pub mod baselines;
pub mod choose_k;
pub mod hash;
pub mod indices;
pub mod slot;
pub mod table;
