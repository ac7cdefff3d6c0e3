//! Sorted sets: members with scores, in the order of the scores.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec, tips};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Looks at one key, not at its members.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Changes one key and tells of its value.
const CHANGE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
/// Removes members of one key.
const DELETE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::DELETE]);
/// Removes members of one key and tells which.
const TAKE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// The same, with the keys behind their number.
const TAKE_COUNTED: KeySpec = KeySpec::counted(1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// The same, from behind a timeout on.
const TAKE_COUNTED_SECOND: KeySpec = KeySpec::counted(2, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// The same, of several keys up to the last argument.
const TAKE_MANY: KeySpec = KeySpec::many(-2, 1, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE]);
/// Overwrites the first key.
const OVERWRITE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Reads the second key.
const READ_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Reads all keys behind their number.
const READ_COUNTED: KeySpec = KeySpec::counted(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// The same, behind a destination.
const READ_COUNTED_SECOND: KeySpec = KeySpec::counted(2, &[KeyFlags::RO, KeyFlags::ACCESS]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: SortedSet;

    ZAdd "zadd" -4 [WRITE DENYOOM FAST] [UPDATE] "1.2.0" "O(log N) for each member"
        "Adds members to a sorted set or gives them other scores";
    ZIncrBy "zincrby" 4 [WRITE DENYOOM FAST] [CHANGE] "1.2.0" "O(log N)"
        "Adds to the score of a member";
    ZRem "zrem" -3 [WRITE FAST] [DELETE] "1.2.0" "O(M log N) with M members removed"
        "Removes members from a sorted set; the last one takes the set with it";
    ZCard "zcard" 2 [READONLY FAST] [LOOK] "1.2.0" "O(1)"
        "Counts the members of a sorted set";
    ZScore "zscore" 3 [READONLY FAST] [READ] "1.2.0" "O(1)"
        "Returns the score of a member";
    ZMScore "zmscore" -3 [READONLY FAST] [READ] "6.2.0" "O(N) with N members asked for"
        "Returns the scores of several members";
    // Redis 7.0 takes exactly two arguments, 7.2 takes WITHSCORE too.
    ZRank "zrank" -3 [READONLY FAST] [READ] "2.0.0" "O(log N)"
        "Returns the place of a member in the order of the scores";
    ZRevRank "zrevrank" -3 [READONLY FAST] [READ] "2.0.0" "O(log N)"
        "Returns the place of a member, counted from the highest score";
    ZCount "zcount" 4 [READONLY FAST] [READ] "2.0.0" "O(log N)"
        "Counts the members with scores in a range";
    ZLexCount "zlexcount" 4 [READONLY FAST] [READ] "2.8.9" "O(log N)"
        "Counts the members in a range of names";
    ZRange "zrange" -4 [READONLY] [READ] "1.2.0" "O(log N + M) with M members returned"
        "Returns the members in a range of places, scores or names";
    ZRangeStore "zrangestore" -5 [WRITE DENYOOM] [OVERWRITE READ_SECOND] "6.2.0"
        "O(log N + M) with M members stored"
        "Stores the members in a range of places, scores or names";
    ZRevRange "zrevrange" -4 [READONLY] [READ] "1.2.0" "O(log N + M) with M members returned"
        "Returns the members in a range of places, highest scores first"
        { .deprecated("6.2.0", "`ZRANGE` with `REV`") };
    ZRangeByScore "zrangebyscore" -4 [READONLY] [READ] "1.0.5" "O(log N + M) with M members returned"
        "Returns the members with scores in a range"
        { .deprecated("6.2.0", "`ZRANGE` with `BYSCORE`") };
    ZRevRangeByScore "zrevrangebyscore" -4 [READONLY] [READ] "2.2.0" "O(log N + M) with M members returned"
        "Returns the members with scores in a range, highest first"
        { .deprecated("6.2.0", "`ZRANGE` with `REV` and `BYSCORE`") };
    ZRangeByLex "zrangebylex" -4 [READONLY] [READ] "2.8.9" "O(log N + M) with M members returned"
        "Returns the members in a range of names"
        { .deprecated("6.2.0", "`ZRANGE` with `BYLEX`") };
    ZRevRangeByLex "zrevrangebylex" -4 [READONLY] [READ] "2.8.9" "O(log N + M) with M members returned"
        "Returns the members in a range of names, last first"
        { .deprecated("6.2.0", "`ZRANGE` with `REV` and `BYLEX`") };
    ZRemRangeByRank "zremrangebyrank" 4 [WRITE] [DELETE] "2.0.0" "O(M log N) with M members removed"
        "Removes the members in a range of places";
    ZRemRangeByScore "zremrangebyscore" 4 [WRITE] [DELETE] "1.2.0" "O(M log N) with M members removed"
        "Removes the members with scores in a range";
    ZRemRangeByLex "zremrangebylex" 4 [WRITE] [DELETE] "2.8.9" "O(M log N) with M members removed"
        "Removes the members in a range of names";
    ZPopMin "zpopmin" -2 [WRITE FAST] [TAKE] "5.0.0" "O(M log N) with M members returned"
        "Removes the members with the lowest scores and returns them";
    ZPopMax "zpopmax" -2 [WRITE FAST] [TAKE] "5.0.0" "O(M log N) with M members returned"
        "Removes the members with the highest scores and returns them";
    ZMPop "zmpop" -4 [WRITE MOVABLEKEYS] [TAKE_COUNTED] "7.0.0" "O(K + M log N) with K keys and M members returned"
        "Removes members of the first sorted set that has any and returns them";
    BzPopMin "bzpopmin" -3 [WRITE NOSCRIPT BLOCKING FAST] [TAKE_MANY] "5.0.0" "O(log N)"
        "Removes the member with the lowest score of the first sorted set that has any, or waits for one";
    BzPopMax "bzpopmax" -3 [WRITE NOSCRIPT BLOCKING FAST] [TAKE_MANY] "5.0.0" "O(log N)"
        "Removes the member with the highest score of the first sorted set that has any, or waits for one";
    BzMPop "bzmpop" -5 [WRITE BLOCKING MOVABLEKEYS] [TAKE_COUNTED_SECOND] "7.0.0"
        "O(K + M log N) with K keys and M members returned"
        "Removes members of the first sorted set that has any, or waits for some";
    ZRandMember "zrandmember" -2 [READONLY] [READ] "6.2.0" "O(N) with N members returned"
        "Returns members by chance" { .tips(tips::UNSTABLE) };
    ZUnion "zunion" -3 [READONLY MOVABLEKEYS] [READ_COUNTED] "6.2.0" "O(N + M log M) with N members in all sets, M returned"
        "Returns the members that any of the sets has, with their scores put together";
    ZInter "zinter" -3 [READONLY MOVABLEKEYS] [READ_COUNTED] "6.2.0"
        "O(N*K + M log M) with N members in the smallest of K sets, M returned"
        "Returns the members that all sets have, with their scores put together";
    ZDiff "zdiff" -3 [READONLY MOVABLEKEYS] [READ_COUNTED] "6.2.0" "O(N + M log M) with N members in all sets, M returned"
        "Returns the members that only the first of the sets has";
    ZUnionStore "zunionstore" -4 [WRITE DENYOOM MOVABLEKEYS] [OVERWRITE READ_COUNTED_SECOND] "2.0.0"
        "O(N + M log M) with N members in all sets, M stored"
        "Stores the members that any of the sets has, with their scores put together";
    ZInterStore "zinterstore" -4 [WRITE DENYOOM MOVABLEKEYS] [OVERWRITE READ_COUNTED_SECOND] "2.0.0"
        "O(N*K + M log M) with N members in the smallest of K sets, M stored"
        "Stores the members that all sets have, with their scores put together";
    ZDiffStore "zdiffstore" -4 [WRITE DENYOOM MOVABLEKEYS] [OVERWRITE READ_COUNTED_SECOND] "6.2.0"
        "O(N + M log M) with N members in all sets, M stored"
        "Stores the members that only the first of the sets has";
    ZInterCard "zintercard" -3 [READONLY MOVABLEKEYS] [READ_COUNTED] "7.0.0" "O(N*K) with N members in the smallest of K sets"
        "Counts the members that all sets have";
    ZScan "zscan" -3 [READONLY] [READ] "2.8.0" "O(1) for each call, O(N) for a whole walk over N members"
        "Walks over the members of a sorted set, a few with each call" { .tips(tips::UNSTABLE) };
}
