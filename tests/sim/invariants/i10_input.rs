//! I10: no input from a socket can panic a node or stop other connections.
//!
//! Nodes get the input of their clients and of each other, cut anywhere, and what a stranger sends (`stranger`). That
//! other connections go on is seen by who uses them; memory is measured on real processes (`wire/hostile.rs`).

use std::cell::RefCell;

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// There was a panic, somewhere in this process.
pub fn note(text: String) {
    // A second one is a consequence of the first.
    let _ = PANIC.try_with(|first| first.borrow_mut().get_or_insert(text).len());
}

/// Nothing has panicked.
pub fn check() -> Result<(), String> {
    PANIC.with(|panic| panic.borrow().clone().map_or(Ok(()), |text| Err(format!("I10: {text}"))))
}
