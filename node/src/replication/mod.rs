//! How a write is kept: the primary numbers its effects and sends them to every other copy; an answer
//! waits until all holders have acknowledged what it depends on (DESIGN.md §4).
//!
//! Reading order: what is told, how it is sequenced, how it travels, how it is applied, who plays
//! which part.

pub mod effect;
pub mod history;
pub mod primary;
pub mod waits;
pub mod link;
pub mod links;
pub mod message;
pub mod session;
pub mod replica;
pub mod transition;

#[cfg(test)]
mod tests;
