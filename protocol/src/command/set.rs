//! Sets: members in one key, each of them once.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec, tips};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Looks at one key, not at its members.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Adds to one key.
const INSERT: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Removes members of one key.
const DELETE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::DELETE]);
/// Removes members of one key and tells which.
const TAKE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// Adds to the second key.
const INSERT_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Reads all keys.
const READ_ALL: KeySpec = KeySpec::many(-1, 1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Reads all keys behind their number.
const READ_COUNTED: KeySpec = KeySpec::counted(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Overwrites the first key.
const OVERWRITE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Overwrites the first key; Redis says so in other words for `SINTERSTORE`.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Reads all keys but the first.
const READ_REST: KeySpec = KeySpec { first: 2, ..READ_ALL };

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Set;

    SAdd "sadd" -3 [WRITE DENYOOM FAST] [INSERT] "1.0.0" "O(N) with N members"
        "Adds members to a set and counts those that are new";
    SRem "srem" -3 [WRITE FAST] [DELETE] "1.0.0" "O(N) with N members"
        "Removes members from a set; the last one takes the set with it";
    SMembers "smembers" 2 [READONLY] [READ] "1.0.0" "O(N) with N members in the set"
        "Returns all members of a set" { .tips(tips::UNSTABLE_ORDER) };
    SIsMember "sismember" 3 [READONLY FAST] [LOOK] "1.0.0" "O(1)"
        "Tells whether something is a member of a set";
    SMIsMember "smismember" -3 [READONLY FAST] [READ] "6.2.0" "O(N) with N questions"
        "Tells of several things whether they are members of a set";
    SCard "scard" 2 [READONLY FAST] [LOOK] "1.0.0" "O(1)"
        "Counts the members of a set";
    SPop "spop" -2 [WRITE FAST] [TAKE] "1.0.0" "O(N) with N members returned"
        "Removes members by chance and returns them" { .tips(tips::UNSTABLE) };
    SRandMember "srandmember" -2 [READONLY] [READ] "1.0.0" "O(N) with N members returned"
        "Returns members by chance" { .tips(tips::UNSTABLE) };
    SMove "smove" 4 [WRITE FAST] [TAKE INSERT_SECOND] "1.0.0" "O(1)"
        "Moves a member from one set to another";
    SInter "sinter" -2 [READONLY] [READ_ALL] "1.0.0" "O(N*M) with N members in the smallest of M sets"
        "Returns the members that all sets have" { .tips(tips::UNSTABLE_ORDER) };
    SInterCard "sintercard" -3 [READONLY MOVABLEKEYS] [READ_COUNTED] "7.0.0"
        "O(N*M) with N members in the smallest of M sets"
        "Counts the members that all sets have";
    SUnion "sunion" -2 [READONLY] [READ_ALL] "1.0.0" "O(N) with N members in all sets together"
        "Returns the members that any of the sets has" { .tips(tips::UNSTABLE_ORDER) };
    SDiff "sdiff" -2 [READONLY] [READ_ALL] "1.0.0" "O(N) with N members in all sets together"
        "Returns the members that only the first of the sets has" { .tips(tips::UNSTABLE_ORDER) };
    SInterStore "sinterstore" -3 [WRITE DENYOOM] [UPDATE READ_REST] "1.0.0"
        "O(N*M) with N members in the smallest of M sets"
        "Stores the members that all sets have";
    SUnionStore "sunionstore" -3 [WRITE DENYOOM] [OVERWRITE READ_REST] "1.0.0"
        "O(N) with N members in all sets together"
        "Stores the members that any of the sets has";
    SDiffStore "sdiffstore" -3 [WRITE DENYOOM] [OVERWRITE READ_REST] "1.0.0"
        "O(N) with N members in all sets together"
        "Stores the members that only the first of the sets has";
    SScan "sscan" -3 [READONLY] [READ] "2.8.0" "O(1) for each call, O(N) for a whole walk over N members"
        "Walks over the members of a set, a few with each call" { .tips(tips::UNSTABLE) };
}
