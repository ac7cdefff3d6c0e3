//! Keys of Korum's own, which stand among those of clients and which no client sees.
//!
//! For: what is small, has to be replicated, to move and to survive as keys do, and belongs to no database.
//! Not here: what they hold.
//! They are in the last room, which no database has. `FLUSHALL` leaves them, and those who keep what they read are not
//! told of them.

use super::Keyspace;
use super::database::MARK;

/// Their room.
pub const ROOM: u8 = 255;

/// The libraries of functions.
pub const FUNCTIONS: &[u8] = b"\xff\xfffunctions";
/// The slot of [`FUNCTIONS`], which is that of no key but by chance.
pub const FUNCTIONS_SLOT: u16 = 12_000;

/// Is it one of these?
#[must_use]
#[inline]
pub fn is_reserved(key: &[u8]) -> bool {
    key.starts_with(&[MARK, ROOM])
}

impl Keyspace {
    /// Number of keys that clients see, those that are expired and not yet removed included.
    #[must_use]
    pub fn visible_len(&self) -> usize {
        self.len() - self.count(ROOM).keys
    }
}
