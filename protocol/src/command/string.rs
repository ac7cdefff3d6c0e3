//! Strings: the values that `GET` and `SET` are about.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec, tips};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// `SET`: overwrites, and reads with its `GET` option.
const SET: KeySpec =
    KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE, KeyFlags::VARIABLE_FLAGS]);
/// Writes a key that must not exist.
const CREATE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::INSERT]);
/// Overwrites one key.
const OVERWRITE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Changes one key and tells of its value.
const CHANGE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
/// Reads one key and removes it.
const TAKE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// Reads all keys.
const READ_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Overwrites all keys, each followed by its value.
const OVERWRITE_PAIRS: KeySpec = KeySpec::many(-1, 2, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Creates all keys, each followed by its value.
const CREATE_PAIRS: KeySpec = KeySpec::many(-1, 2, &[KeyFlags::OW, KeyFlags::INSERT]);
/// Adds to one key.
const APPEND: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Looks at one key, not at its value.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Reads two keys.
const READ_TWO: KeySpec = KeySpec::many(1, 1, &[KeyFlags::RO, KeyFlags::ACCESS]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: String;

    Get "get" 2 [READONLY FAST] [READ] "1.0.0" "O(1)"
        "Returns the value of a key";
    Set "set" -3 [WRITE DENYOOM] [SET] "1.0.0" "O(1)"
        "Sets the value of a key, whatever it held, with options for conditions and expiry";
    SetNx "setnx" 3 [WRITE DENYOOM FAST] [CREATE] "1.0.0" "O(1)"
        "Sets the value of a key that does not exist yet";
    SetEx "setex" 4 [WRITE DENYOOM] [OVERWRITE] "2.0.0" "O(1)"
        "Sets the value of a key and its time to live in seconds";
    PSetEx "psetex" 4 [WRITE DENYOOM] [OVERWRITE] "2.6.0" "O(1)"
        "Sets the value of a key and its time to live in milliseconds";
    GetSet "getset" 3 [WRITE DENYOOM FAST] [CHANGE] "1.0.0" "O(1)"
        "Sets the value of a key and returns the one before"
        { .deprecated("6.2.0", "`SET` with the `GET` argument") };
    GetDel "getdel" 2 [WRITE FAST] [TAKE] "6.2.0" "O(1)"
        "Returns the value of a key and deletes the key";
    GetEx "getex" -2 [WRITE FAST] [CHANGE] "6.2.0" "O(1)"
        "Returns the value of a key and may change its expiry";
    MGet "mget" -2 [READONLY FAST SPLIT] [READ_ALL] "1.0.0" "O(N) with N keys"
        "Returns the values of several keys" { .tips(tips::SPLIT) };
    MSet "mset" -3 [WRITE DENYOOM SPLIT] [OVERWRITE_PAIRS] "1.0.1" "O(N) with N keys"
        "Sets the values of several keys" { .tips(tips::SPLIT_ALL_SUCCEED) };
    MSetNx "msetnx" -3 [WRITE DENYOOM] [CREATE_PAIRS] "1.0.1" "O(N) with N keys"
        "Sets the values of several keys when none of them exists" { .tips(tips::SPLIT_LEAST) };
    Append "append" 3 [WRITE DENYOOM FAST] [APPEND] "2.0.0" "O(1) amortized, for small values"
        "Adds bytes to the end of a value";
    StrLen "strlen" 2 [READONLY FAST] [LOOK] "2.2.0" "O(1)"
        "Returns the length of a value";
    GetRange "getrange" 4 [READONLY] [READ] "2.4.0" "O(N) with N bytes returned"
        "Returns a part of a value";
    SubStr "substr" 4 [READONLY] [READ] "1.0.0" "O(N) with N bytes returned"
        "Returns a part of a value" { .deprecated("2.0.0", "`GETRANGE`") };
    SetRange "setrange" 4 [WRITE DENYOOM] [UPDATE] "2.2.0" "O(1), or O(M) with M bytes to write"
        "Overwrites a part of a value, from an offset on";
    Incr "incr" 2 [WRITE DENYOOM FAST] [CHANGE] "1.0.0" "O(1)"
        "Adds one to the integer in a key";
    Decr "decr" 2 [WRITE DENYOOM FAST] [CHANGE] "1.0.0" "O(1)"
        "Subtracts one from the integer in a key";
    IncrBy "incrby" 3 [WRITE DENYOOM FAST] [CHANGE] "1.0.0" "O(1)"
        "Adds to the integer in a key";
    DecrBy "decrby" 3 [WRITE DENYOOM FAST] [CHANGE] "1.0.0" "O(1)"
        "Subtracts from the integer in a key";
    IncrByFloat "incrbyfloat" 3 [WRITE DENYOOM FAST] [CHANGE] "2.6.0" "O(1)"
        "Adds to the floating point number in a key";
    Lcs "lcs" -3 [READONLY] [READ_TWO] "7.0.0" "O(N*M) with the lengths of both values"
        "Finds the longest common subsequence of two values";
}
