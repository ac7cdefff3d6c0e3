//! Transactions: several commands as one step, on the condition that nothing has changed.
//!
//! For: the facts of the family, as data.
//! Not here: queueing and executing: the node's `dispatch::transaction` does both.

use super::{KeyFlags, KeySpec};

/// Looks at all keys, not at their values.
const LOOK_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RO]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Transactions;

    Multi "multi" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [] "1.2.0" "O(1)"
        "Begins a transaction: commands are queued from now on";
    Exec "exec" 1 [NOSCRIPT LOADING STALE SKIP_SLOWLOG] [] "1.2.0" "Depends on the commands in it"
        "Executes the queued commands as one step";
    Discard "discard" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [] "2.0.0" "O(N) with N queued commands"
        "Forgets the queued commands and the watched keys";
    Watch "watch" -2 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [LOOK_ALL] "2.2.0" "O(1) for each key"
        "Lets the next transaction execute only if these keys do not change until then";
    Unwatch "unwatch" 1 [NOSCRIPT LOADING STALE FAST ALLOW_BUSY] [] "2.2.0" "O(1)"
        "Forgets the watched keys";
}
