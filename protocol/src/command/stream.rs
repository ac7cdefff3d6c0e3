//! Streams: entries in the order of their ids, and groups of consumers that read them.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec, tips};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Looks at one key, not at its entries.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Removes parts of one key.
const DELETE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::DELETE]);
/// Reads the key behind a subcommand.
const READ_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Changes the key behind a subcommand.
const UPDATE_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Adds to the key behind a subcommand.
const INSERT_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Removes parts of the key behind a subcommand.
const DELETE_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::DELETE]);
/// Reads the keys behind a word; as many ids follow them.
const READ_LISTED: KeySpec = KeySpec::first_half_after("STREAMS", 1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// The same behind a group and a consumer.
const READ_FOR_GROUP: KeySpec = KeySpec::first_half_after("STREAMS", 4, &[KeyFlags::RO, KeyFlags::ACCESS]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Stream;

    XAdd "xadd" -5 [WRITE DENYOOM FAST] [UPDATE] "5.0.0" "O(1), and O(N) with N entries that are trimmed"
        "Adds an entry to a stream and returns its id" { .tips(tips::UNSTABLE) };
    XLen "xlen" 2 [READONLY FAST] [LOOK] "5.0.0" "O(1)"
        "Counts the entries of a stream";
    XRange "xrange" -4 [READONLY] [READ] "5.0.0" "O(N) with N entries returned"
        "Returns the entries between two ids";
    XRevRange "xrevrange" -4 [READONLY] [READ] "5.0.0" "O(N) with N entries returned"
        "Returns the entries between two ids, the last one first";
    XRead "xread" -4 [READONLY BLOCKING MOVABLEKEYS] [READ_LISTED] "5.0.0" "O(N) with N entries returned"
        "Returns entries of several streams behind given ids, and may wait for them";
    XDel "xdel" -3 [WRITE FAST] [DELETE] "5.0.0" "O(1) for each entry"
        "Deletes entries and counts those that were there";
    XTrim "xtrim" -4 [WRITE] [DELETE] "5.0.0" "O(N) with N entries that are trimmed"
        "Removes the oldest entries of a stream" { .tips(tips::UNSTABLE) };
    XSetId "xsetid" -3 [WRITE DENYOOM FAST] [UPDATE] "5.0.0" "O(1)"
        "Sets the last id of a stream";
    XGroup "xgroup" -2 [] [] "5.0.0" "Depends on the subcommand"
        "Creates, changes and destroys groups" { .plain().subcommands(XGROUP) };
    XReadGroup "xreadgroup" -7 [WRITE BLOCKING MOVABLEKEYS] [READ_FOR_GROUP] "5.0.0" "O(N) with N entries returned"
        "Returns new entries to a consumer of a group, or those that it has not acknowledged; may wait for them";
    XAck "xack" -4 [WRITE FAST] [UPDATE] "5.0.0" "O(1) for each entry"
        "Acknowledges entries that were delivered to a group";
    XPending "xpending" -3 [READONLY] [READ] "5.0.0" "O(N) with N entries returned or looked at"
        "Tells which entries of a group were delivered and not acknowledged" { .tips(tips::UNSTABLE) };
    XClaim "xclaim" -6 [WRITE FAST] [UPDATE] "5.0.0" "O(log N) for each entry, with N pending ones"
        "Gives pending entries to another consumer" { .tips(tips::UNSTABLE) };
    XAutoClaim "xautoclaim" -6 [WRITE FAST] [DELETE] "6.2.0" "O(1) with a small count"
        "Gives the pending entries that were idle for long to a consumer" { .tips(tips::UNSTABLE) };
    XInfo "xinfo" -2 [] [] "5.0.0" "Depends on the subcommand"
        "Looks inside a stream" { .plain().subcommands(XINFO) };
}

commands! {
    static XGROUP: Stream;

    XGroupCreate "xgroup|create" -5 [WRITE DENYOOM] [INSERT_SECOND] "5.0.0" "O(1)"
        "Creates a group";
    XGroupSetId "xgroup|setid" -5 [WRITE] [UPDATE_SECOND] "5.0.0" "O(1)"
        "Sets the entry behind which a group goes on";
    XGroupDestroy "xgroup|destroy" 4 [WRITE] [DELETE_SECOND] "5.0.0" "O(N) with N pending entries"
        "Destroys a group";
    XGroupCreateConsumer "xgroup|createconsumer" 5 [WRITE DENYOOM] [INSERT_SECOND] "6.2.0" "O(1)"
        "Creates a consumer of a group";
    XGroupDelConsumer "xgroup|delconsumer" 5 [WRITE] [DELETE_SECOND] "5.0.0" "O(1)"
        "Deletes a consumer of a group";
    XGroupHelp "xgroup|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static XINFO: Stream;

    XInfoStream "xinfo|stream" -3 [READONLY] [READ_SECOND] "5.0.0" "O(1)"
        "Describes a stream";
    XInfoGroups "xinfo|groups" 3 [READONLY] [READ_SECOND] "5.0.0" "O(1)"
        "Describes the groups of a stream";
    XInfoConsumers "xinfo|consumers" 4 [READONLY] [READ_SECOND] "5.0.0" "O(1)"
        "Describes the consumers of a group" { .tips(tips::UNSTABLE) };
    XInfoHelp "xinfo|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}
