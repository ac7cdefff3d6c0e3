//! HyperLogLogs: estimated counts of different elements.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec};

/// Adds to one key.
const INSERT: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Reads all keys; the count of a single one is kept in it.
const READ_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RW, KeyFlags::ACCESS]);
/// Adds to one key what it reads of it.
const TARGET: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::INSERT]);
/// Reads all keys from the second on.
const SOURCES: KeySpec = KeySpec { first: 2, ..KeySpec::many(-1, 1, &[KeyFlags::RO, KeyFlags::ACCESS]) };
/// Looks into the key behind a word, and may make it dense.
const LOOK_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::ACCESS]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: HyperLogLog;

    PfAdd "pfadd" -2 [WRITE DENYOOM FAST] [INSERT] "2.8.9" "O(N) with N elements"
        "Adds elements to a HyperLogLog";
    PfCount "pfcount" -2 [READONLY] [READ_ALL] "2.8.9" "O(N) with N keys; O(1) mostly for a single one"
        "Estimates how many different elements HyperLogLogs have seen";
    PfMerge "pfmerge" -2 [WRITE DENYOOM] [TARGET SOURCES] "2.8.9" "O(N) with N keys"
        "Merges HyperLogLogs into one";
    PfDebug "pfdebug" 3 [WRITE DENYOOM ADMIN] [LOOK_SECOND] "2.8.9" "O(1)"
        "Looks inside a HyperLogLog" { .system() };
    PfSelfTest "pfselftest" 1 [ADMIN] [] "2.8.9" "O(1)"
        "Answers OK: the tests of HyperLogLogs run elsewhere" { .system() };
}
