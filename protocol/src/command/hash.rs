//! Hashes: fields with values in one key.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec, tips};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Looks at one key, not at its values.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Adds to one key.
const INSERT: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Removes parts of one key.
const DELETE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::DELETE]);
/// Changes one key and tells of its value.
const CHANGE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Hash;

    HSet "hset" -4 [WRITE DENYOOM FAST] [UPDATE] "2.0.0" "O(N) with N fields"
        "Sets fields of a hash and counts those that are new";
    HSetNx "hsetnx" 4 [WRITE DENYOOM FAST] [INSERT] "2.0.0" "O(1)"
        "Sets a field of a hash when it does not exist yet";
    HMSet "hmset" -4 [WRITE DENYOOM FAST] [UPDATE] "2.0.0" "O(N) with N fields"
        "Sets fields of a hash" { .deprecated("4.0.0", "`HSET` with several fields and values") };
    HGet "hget" 3 [READONLY FAST] [READ] "2.0.0" "O(1)"
        "Returns the value of a field";
    HMGet "hmget" -3 [READONLY FAST] [READ] "2.0.0" "O(N) with N fields"
        "Returns the values of several fields";
    HGetAll "hgetall" 2 [READONLY] [READ] "2.0.0" "O(N) with N fields in the hash"
        "Returns all fields of a hash with their values" { .tips(tips::UNSTABLE_ORDER) };
    HKeys "hkeys" 2 [READONLY] [READ] "2.0.0" "O(N) with N fields in the hash"
        "Returns all fields of a hash" { .tips(tips::UNSTABLE_ORDER) };
    HVals "hvals" 2 [READONLY] [READ] "2.0.0" "O(N) with N fields in the hash"
        "Returns all values of a hash" { .tips(tips::UNSTABLE_ORDER) };
    HLen "hlen" 2 [READONLY FAST] [LOOK] "2.0.0" "O(1)"
        "Counts the fields of a hash";
    HExists "hexists" 3 [READONLY FAST] [LOOK] "2.0.0" "O(1)"
        "Tells whether a field exists";
    HStrLen "hstrlen" 3 [READONLY FAST] [LOOK] "3.2.0" "O(1)"
        "Returns the length of the value of a field";
    HDel "hdel" -3 [WRITE FAST] [DELETE] "2.0.0" "O(N) with N fields"
        "Deletes fields; the last one takes the hash with it";
    HIncrBy "hincrby" 4 [WRITE DENYOOM FAST] [CHANGE] "2.0.0" "O(1)"
        "Adds to the integer in a field";
    HIncrByFloat "hincrbyfloat" 4 [WRITE DENYOOM FAST] [CHANGE] "2.6.0" "O(1)"
        "Adds to the floating point number in a field";
    HRandField "hrandfield" -2 [READONLY] [READ] "6.2.0" "O(N) with N fields returned"
        "Returns fields by chance" { .tips(tips::UNSTABLE) };
    HScan "hscan" -3 [READONLY] [READ] "2.8.0" "O(1) for each call, O(N) for a whole walk over N fields"
        "Walks over the fields of a hash, a few with each call" { .tips(tips::UNSTABLE) };
    HExpire "hexpire" -6 [WRITE DENYOOM FAST] [UPDATE] "7.4.0" "O(N) with N fields"
        "Sets the time to live of fields in seconds";
    HPExpire "hpexpire" -6 [WRITE DENYOOM FAST] [UPDATE] "7.4.0" "O(N) with N fields"
        "Sets the time to live of fields in milliseconds";
    HExpireAt "hexpireat" -6 [WRITE DENYOOM FAST] [UPDATE] "7.4.0" "O(N) with N fields"
        "Sets when fields expire, as a Unix time in seconds";
    HPExpireAt "hpexpireat" -6 [WRITE DENYOOM FAST] [UPDATE] "7.4.0" "O(N) with N fields"
        "Sets when fields expire, as a Unix time in milliseconds";
    HTtl "httl" -5 [READONLY FAST] [READ] "7.4.0" "O(N) with N fields"
        "Returns the time to live of fields in seconds" { .tips(tips::UNSTABLE) };
    HPTtl "hpttl" -5 [READONLY FAST] [READ] "7.4.0" "O(N) with N fields"
        "Returns the time to live of fields in milliseconds" { .tips(tips::UNSTABLE) };
    HExpireTime "hexpiretime" -5 [READONLY FAST] [READ] "7.4.0" "O(N) with N fields"
        "Returns when fields expire, as a Unix time in seconds";
    HPExpireTime "hpexpiretime" -5 [READONLY FAST] [READ] "7.4.0" "O(N) with N fields"
        "Returns when fields expire, as a Unix time in milliseconds";
    HPersist "hpersist" -5 [WRITE FAST] [UPDATE] "7.4.0" "O(N) with N fields"
        "Removes the expiry of fields";
    HGetDel "hgetdel" -5 [WRITE FAST] [CHANGE] "8.0.0" "O(N) with N fields"
        "Returns the values of fields and deletes the fields";
    HGetEx "hgetex" -5 [WRITE FAST] [CHANGE] "8.0.0" "O(N) with N fields"
        "Returns the values of fields and sets when the fields expire";
    HSetEx "hsetex" -6 [WRITE DENYOOM FAST] [UPDATE] "8.0.0" "O(N) with N fields"
        "Sets fields of a hash and when they expire";
}
