//! What clients are told while they run.

use std::cell::RefCell;

use korum_tests::check::{Kind, stream};

/// What clients are told while they run, and what they tell each other.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Addresses (`host:port`) of all nodes' client ports.
    pub client_ports: Vec<String>,
    /// Addresses of all nodes' cluster ports.
    pub cluster_ports: Vec<String>,
    /// Time to stop.
    pub stop: bool,
    /// Answers that no node may give.
    pub nonsense: Vec<String>,
    /// Shortest and longest pause between two calls, milliseconds.
    pub pause_ms: (u64, u64),
    /// What each key is used for,
    pub kinds: Vec<Kind>,
    /// and the groups that they stand in: keys of a group share a slot.
    pub groups: usize,
    /// Keys that only fill each group, so that its partition is streamed in more than one piece.
    pub filling: usize,
    /// Entries of streams that were given out, by key, and are not acknowledged yet.
    pub given: Vec<(String, stream::Id)>,
}

thread_local! {
    static ORDERS: RefCell<Orders> = RefCell::default();
}

/// Reads or changes the orders.
pub fn orders<T>(work: impl FnOnce(&mut Orders) -> T) -> T {
    ORDERS.with(|orders| work(&mut orders.borrow_mut()))
}

/// The name of a key.
pub fn key(number: usize) -> String {
    let groups = orders(|orders| orders.groups).max(1);
    format!("key:{{{}}}:{number}", number % groups)
}
