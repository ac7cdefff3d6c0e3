//! Lists: items in order in one key.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{KeyFlags, KeySpec};

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Looks at one key, not at its values.
const LOOK: KeySpec = KeySpec::one(1, &[KeyFlags::RO]);
/// Adds to one key.
const INSERT: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Adds to the second key.
const INSERT_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RW, KeyFlags::INSERT]);
/// Changes what is in one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Removes parts of one key.
const DELETE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::DELETE]);
/// What taking out does with a key.
const TAKES: &[KeyFlags] = &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::DELETE];
/// Takes out of one key.
const TAKE: KeySpec = KeySpec::one(1, TAKES);
/// Takes out of several keys, up to the last argument.
const TAKE_MANY: KeySpec = KeySpec::many(-2, 1, TAKES);
/// Takes out of keys behind their number, which is argument 2.
const TAKE_COUNTED_SECOND: KeySpec = KeySpec::counted(2, TAKES);
/// Takes out of keys behind their number.
const TAKE_COUNTED: KeySpec = KeySpec::counted(1, TAKES);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: List;

    LPush "lpush" -3 [WRITE DENYOOM FAST] [INSERT] "1.0.0" "O(1) for each item"
        "Puts items before the first of a list";
    RPush "rpush" -3 [WRITE DENYOOM FAST] [INSERT] "1.0.0" "O(1) for each item"
        "Puts items behind the last of a list";
    LPushX "lpushx" -3 [WRITE DENYOOM FAST] [INSERT] "2.2.0" "O(1) for each item"
        "Puts items before the first of a list that exists";
    RPushX "rpushx" -3 [WRITE DENYOOM FAST] [INSERT] "2.2.0" "O(1) for each item"
        "Puts items behind the last of a list that exists";
    LPop "lpop" -2 [WRITE FAST] [TAKE] "1.0.0" "O(N) with N items returned"
        "Takes the first items out of a list";
    RPop "rpop" -2 [WRITE FAST] [TAKE] "1.0.0" "O(N) with N items returned"
        "Takes the last items out of a list";
    LLen "llen" 2 [READONLY FAST] [LOOK] "1.0.0" "O(1)"
        "Counts the items of a list";
    LRange "lrange" 4 [READONLY] [READ] "1.0.0" "O(S+N) with N items returned and S blocks to the nearer end"
        "Returns items of a list by their places";
    LIndex "lindex" 3 [READONLY] [READ] "1.0.0" "O(N) with N blocks to the nearer end"
        "Returns the item in a place of a list";
    LSet "lset" 4 [WRITE DENYOOM] [UPDATE] "1.0.0" "O(N) with N blocks to the nearer end"
        "Puts another item in a place of a list";
    LInsert "linsert" 5 [WRITE DENYOOM] [INSERT] "2.2.0" "O(N) with N items up to the one that is searched"
        "Puts an item before or behind another one";
    LRem "lrem" 4 [WRITE] [DELETE] "1.0.0" "O(N) with N items in the list"
        "Removes the items that are equal to one";
    LTrim "ltrim" 4 [WRITE] [DELETE] "1.0.0" "O(N) with N items removed"
        "Keeps a range of places of a list";
    LPos "lpos" -3 [READONLY] [READ] "6.0.6" "O(N) with N items compared"
        "Finds the places of the items that are equal to one";
    LMove "lmove" 5 [WRITE DENYOOM] [TAKE INSERT_SECOND] "6.2.0" "O(1)"
        "Moves an item from an end of a list to an end of another one";
    RPopLPush "rpoplpush" 3 [WRITE DENYOOM] [TAKE INSERT_SECOND] "1.2.0" "O(1)"
        "Moves the last item of a list before the first of another one"
        { .deprecated("6.2.0", "`LMOVE` with `RIGHT` and `LEFT`") };
    LMPop "lmpop" -4 [WRITE MOVABLEKEYS] [TAKE_COUNTED] "7.0.0" "O(N+M) with N keys and M items returned"
        "Takes items out of the first list that has any";
    BlPop "blpop" -3 [WRITE NOSCRIPT BLOCKING] [TAKE_MANY] "2.0.0" "O(N) with N keys"
        "Takes the first item out of the first list that has any, or waits for one";
    BrPop "brpop" -3 [WRITE NOSCRIPT BLOCKING] [TAKE_MANY] "2.0.0" "O(N) with N keys"
        "Takes the last item out of the first list that has any, or waits for one";
    BlMove "blmove" 6 [WRITE DENYOOM NOSCRIPT BLOCKING] [TAKE INSERT_SECOND] "6.2.0" "O(1)"
        "Moves an item from an end of a list to an end of another one, or waits for one";
    BrPopLPush "brpoplpush" 4 [WRITE DENYOOM NOSCRIPT BLOCKING] [TAKE INSERT_SECOND] "2.2.0" "O(1)"
        "Moves the last item of a list before the first of another one, or waits for one"
        { .deprecated("6.2.0", "`BLMOVE` with `RIGHT` and `LEFT`") };
    BlMPop "blmpop" -5 [WRITE BLOCKING MOVABLEKEYS] [TAKE_COUNTED_SECOND] "7.0.0" "O(N+M) with N keys and M items returned"
        "Takes items out of the first list that has any, or waits for some";
}
