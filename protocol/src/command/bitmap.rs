//! Bitmaps: strings as bits.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Changes one key and tells of its value.
const CHANGE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
/// `BITFIELD`: changes only with some of its subcommands.
const MAY_CHANGE: KeySpec =
    KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE, KeyFlags::VARIABLE_FLAGS]);
/// Overwrites the key behind the operation.
const TARGET: KeySpec = KeySpec::one(2, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Reads all keys from the third argument on.
const SOURCES: KeySpec = KeySpec { first: 3, ..KeySpec::many(-1, 1, &[KeyFlags::RO, KeyFlags::ACCESS]) };

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Bitmap;

    SetBit "setbit" 4 [WRITE DENYOOM] [CHANGE] "2.2.0" "O(1)"
        "Sets or clears a bit and returns what it was";
    GetBit "getbit" 3 [READONLY FAST] [READ] "2.2.0" "O(1)"
        "Returns a bit";
    BitCount "bitcount" -2 [READONLY] [READ] "2.6.0" "O(N) with N bytes"
        "Counts the bits that are set";
    BitPos "bitpos" -3 [READONLY] [READ] "2.8.7" "O(N) with N bytes"
        "Finds the first bit that is set, or clear";
    BitOp "bitop" -4 [WRITE DENYOOM] [TARGET SOURCES] "2.6.0" "O(N) with N bytes"
        "Combines strings bit by bit into another one";
    BitField "bitfield" -2 [WRITE DENYOOM] [MAY_CHANGE] "3.2.0" "O(1) for each subcommand"
        "Reads, sets and increments integers of any width in a string";
    BitFieldRo "bitfield_ro" -2 [READONLY FAST] [READ] "6.0.0" "O(1) for each subcommand"
        "Reads integers of any width in a string";
}
