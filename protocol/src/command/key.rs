//! Keys of any type: deleting, expiring, renaming, walking.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{Categories, KeyFlags, KeySpec, keys, tips};

/// Removes all keys.
const REMOVE_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RM, KeyFlags::DELETE]);
/// Looks at all keys, not at their values.
const LOOK_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RO]);
/// Looks at one key, not at its value.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Reads one key and removes it.
const TAKE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// Overwrites the second key.
const OVERWRITE_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Writes a second key that must not exist.
const CREATE_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::OW, KeyFlags::INSERT]);
/// Changes one key and tells of its value.
const CHANGE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
/// Looks at the key behind a subcommand, not at its value.
const LOOK_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RO]);
/// Overwrites one key.
const OVERWRITE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::UPDATE]);

/// Reads keys that patterns form.
const READ_FORMED: KeySpec = KeySpec::unknown(&[KeyFlags::RO, KeyFlags::ACCESS]);
/// Overwrites the key behind `STORE`.
const OVERWRITE_NAMED: KeySpec = KeySpec::unknown(&[KeyFlags::OW, KeyFlags::UPDATE]);
/// Where commands that sort are listed.
const SORTED: &[Categories] =
    &[Categories::SET, Categories::SORTEDSET, Categories::LIST, Categories::DANGEROUS];

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Generic;

    Del "del" -2 [WRITE SPLIT] [REMOVE_ALL] "1.0.0" "O(N) with N keys"
        "Deletes keys" { .tips(tips::SPLIT_SUM) };
    Unlink "unlink" -2 [WRITE FAST SPLIT] [REMOVE_ALL] "4.0.0" "O(1) for each key; freeing is done elsewhere"
        "Deletes keys and frees large values in the background" { .tips(tips::SPLIT_SUM) };
    Exists "exists" -2 [READONLY FAST SPLIT] [LOOK_ALL] "1.0.0" "O(N) with N keys"
        "Counts which of the given keys exist" { .tips(tips::SPLIT_SUM) };
    Touch "touch" -2 [READONLY FAST SPLIT] [LOOK_ALL] "3.2.1" "O(N) with N keys"
        "Marks keys as just used and counts those that exist" { .tips(tips::SPLIT_SUM) };
    Type "type" 2 [READONLY FAST] [LOOK] "1.0.0" "O(1)"
        "Names the type of a value";
    Expire "expire" -3 [WRITE FAST] [UPDATE] "1.0.0" "O(1)"
        "Sets the time to live of a key in seconds";
    PExpire "pexpire" -3 [WRITE FAST] [UPDATE] "2.6.0" "O(1)"
        "Sets the time to live of a key in milliseconds";
    ExpireAt "expireat" -3 [WRITE FAST] [UPDATE] "1.2.0" "O(1)"
        "Sets when a key expires, as a Unix time in seconds";
    PExpireAt "pexpireat" -3 [WRITE FAST] [UPDATE] "2.6.0" "O(1)"
        "Sets when a key expires, as a Unix time in milliseconds";
    Ttl "ttl" 2 [READONLY FAST] [READ] "1.0.0" "O(1)"
        "Returns the time to live of a key in seconds" { .tips(tips::UNSTABLE) };
    PTtl "pttl" 2 [READONLY FAST] [READ] "2.6.0" "O(1)"
        "Returns the time to live of a key in milliseconds" { .tips(tips::UNSTABLE) };
    ExpireTime "expiretime" 2 [READONLY FAST] [READ] "7.0.0" "O(1)"
        "Returns when a key expires, as a Unix time in seconds";
    PExpireTime "pexpiretime" 2 [READONLY FAST] [READ] "7.0.0" "O(1)"
        "Returns when a key expires, as a Unix time in milliseconds";
    Persist "persist" 2 [WRITE FAST] [UPDATE] "2.2.0" "O(1)"
        "Removes the expiry of a key";
    Rename "rename" 3 [WRITE] [TAKE OVERWRITE_SECOND] "1.0.0" "O(1)"
        "Renames a key and overwrites the target";
    RenameNx "renamenx" 3 [WRITE FAST] [TAKE CREATE_SECOND] "1.0.0" "O(1)"
        "Renames a key when the target does not exist";
    Copy "copy" -3 [WRITE DENYOOM] [READ OVERWRITE_SECOND] "6.2.0" "O(N) with N items, O(1) for strings"
        "Copies the value of a key to another key";
    Move "move" 3 [WRITE FAST] [CHANGE] "1.0.0" "O(1)"
        "Moves a key to another database";
    RandomKey "randomkey" 1 [READONLY ALL_NODES] [] "1.0.0" "O(1)"
        "Returns the name of any key" { .tips(tips::SHARDS_UNSTABLE) };
    Keys "keys" 2 [READONLY ALL_NODES] [] "1.0.0" "O(N) with N keys in the database"
        "Returns the names of all keys that match a pattern"
        { .also(&[Categories::DANGEROUS]).tips(tips::SHARDS_UNSTABLE_ORDER) };
    Scan "scan" -2 [READONLY ALL_NODES] [] "2.8.0" "O(1) for each call, O(N) for a whole walk over N keys"
        "Walks over the names of the keys, a few with each call" { .tips(tips::WALK) };
    Object "object" -2 [] [] "2.2.3" "Depends on the subcommand"
        "Looks inside the value of a key" { .plain().subcommands(OBJECT) };
    Dump "dump" 2 [READONLY] [READ] "2.6.0" "O(N) with N bytes"
        "Returns the value of a key in serialized form" { .tips(tips::UNSTABLE) };
    Restore "restore" -4 [WRITE DENYOOM] [OVERWRITE] "2.6.0" "O(N) with N bytes"
        "Creates a key from a serialized value" { .also(&[Categories::DANGEROUS]) };
    Sort "sort" -2 [WRITE DENYOOM MOVABLEKEYS] [READ READ_FORMED OVERWRITE_NAMED] "1.0.0"
        "O(N log N) with N items, and O(M) with M returned ones"
        "Sorts the items of a list, a set or a sorted set, and may store them"
        { .plain().also(SORTED).find_keys(keys::of_sort) };
    SortRo "sort_ro" -2 [READONLY MOVABLEKEYS] [READ READ_FORMED] "7.0.0"
        "O(N log N) with N items, and O(M) with M returned ones"
        "Sorts the items of a list, a set or a sorted set" { .plain().also(SORTED) };
    Wait "wait" 3 [NOSCRIPT] [] "3.0.0" "O(1)"
        "Waits until earlier writes of this connection have reached replicas"
        { .plain().also(&[Categories::CONNECTION]).tips(tips::SHARDS_LEAST) };
}

commands! {
    static OBJECT: Generic;

    ObjectEncoding "object|encoding" 3 [READONLY] [LOOK_SECOND] "2.2.3" "O(1)"
        "Names the way in which a value is stored" { .tips(tips::UNSTABLE) };
    ObjectFreq "object|freq" 3 [READONLY] [LOOK_SECOND] "4.0.0" "O(1)"
        "Returns how often a key is used, on a logarithmic scale" { .tips(tips::UNSTABLE) };
    ObjectIdletime "object|idletime" 3 [READONLY] [LOOK_SECOND] "2.2.3" "O(1)"
        "Returns for how long a key was not used, in seconds" { .tips(tips::UNSTABLE) };
    ObjectRefcount "object|refcount" 3 [READONLY] [LOOK_SECOND] "2.2.3" "O(1)"
        "Returns the number of references to a value" { .tips(tips::UNSTABLE) };
    ObjectHelp "object|help" 2 [LOADING STALE] [] "6.2.0" "O(1)"
        "Describes the subcommands";
}
