//! Keys of Korum's own, which stand among those of clients and which no client sees.
//!
//! For: what is small, has to be replicated, to move and to survive as keys do, and belongs to no database.
//! Not here: what they hold.
//! They begin with two bytes 0xFF. `FLUSHALL` leaves them; `KEYS`, `SCAN`, `RANDOMKEY`, `DBSIZE` and events pass over
//! them.

use super::Keyspace;

/// The libraries of functions.
pub const FUNCTIONS: &[u8] = b"\xff\xfffunctions";
/// The slot of [`FUNCTIONS`], which is that of no key but by chance.
pub const FUNCTIONS_SLOT: u16 = 12_000;

/// Is it one of these?
#[must_use]
#[inline]
pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(b"\xff\xff")
}

impl Keyspace {
    /// Number of keys that clients see, those that are expired and not yet removed included.
    #[must_use]
    pub fn visible_len(&self) -> usize {
        self.len() - usize::from(self.contains(FUNCTIONS))
    }
}
