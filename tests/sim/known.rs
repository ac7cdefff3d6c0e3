//! Seeds that found something once, named after what went wrong.
//!
//! For: running them again, always.
//! Not here: what was done about it (the history of the repository).
//!
//! A seed means the same run only as long as neither the world nor the nodes change what they do by chance; it stays
//! a good seed after that, but no longer the same one.

/// What went wrong, and where it showed.
pub const KNOWN: &[(&str, u64)] = &[
    ("a leader that was drained and started again never hears that it was forgotten", 152),
    ("one fault on a wire ends another: a node that nobody counted is out of reach", 331),
    ("a replaced leader keeps nodes from its successor, which takes them for dead", 226),
    ("a node that asks who leads sends no heartbeats meanwhile, and is marked down", 206),
    ("reasons for heartbeats come all the time, and a node never gets to ask who leads", 19),
    ("an item is popped for a client that waits, and lost: the next primary was repaired or streamed", 350),
    ("an item is popped for a client that waits, and nobody knows: its own node became the primary", 454),
    ("a set that had shrunk has another order in a copy made of its state", 330),
    ("a read removes what has expired while a copy is away, and is answered", 8023),
    ("a run that leaves before it was registered hides that the run before it is gone", 8025),
    ("a join that nobody waits for any more keeps the node from joining for ever", 1087),
];
