//! Scripts and functions in Lua.
//!
//! For: the facts of the family, as data.
//! Not here: parsing and executing: the node's `command::{script, function}` and `dispatch::{scripts, functions}` do both.

use super::{Categories, KeyFlags, KeySpec, tips};

/// Keys behind their number, with which a script may do anything.
const ANY: KeySpec = KeySpec::counted(2, &[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
/// Keys behind their number, which a script reads.
const READ: KeySpec = KeySpec::counted(2, &[KeyFlags::RO, KeyFlags::ACCESS]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Scripting;

    Eval "eval" -3 [NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [ANY] "2.6.0" "Depends on the script"
        "Runs a script";
    EvalSha "evalsha" -3 [NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [ANY] "2.6.0" "Depends on the script"
        "Runs a script that is known, by its digest";
    EvalRo "eval_ro" -3 [READONLY NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [READ] "7.0.0" "Depends on the script"
        "Runs a script that only reads" { .only(&[Categories::SCRIPTING, Categories::SLOW]) };
    EvalShaRo "evalsha_ro" -3 [READONLY NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [READ] "7.0.0" "Depends on the script"
        "Runs a known script that only reads, by its digest" { .only(&[Categories::SCRIPTING, Categories::SLOW]) };
    FCall "fcall" -3 [NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [ANY] "7.0.0" "Depends on the function"
        "Calls a function";
    FCallRo "fcall_ro" -3 [READONLY NOSCRIPT STALE SKIP_MONITOR NO_MANDATORY_KEYS MOVABLEKEYS] [READ] "7.0.0" "Depends on the function"
        "Calls a function that only reads" { .only(&[Categories::SCRIPTING, Categories::SLOW]) };
    Function "function" -2 [] [] "7.0.0" "Depends on the subcommand"
        "Looks at the libraries of functions" { .plain().subcommands(FUNCTION) };
    Script "script" -2 [] [] "2.6.0" "Depends on the subcommand"
        "Looks at the scripts that are known" { .plain().subcommands(SCRIPT) };
}

commands! {
    static SCRIPT: Scripting;

    ScriptExists "script|exists" -3 [NOSCRIPT] [] "2.6.0" "O(N) with N digests"
        "Tells which scripts are known" { .tips(tips::SHARDS_AND) };
    ScriptFlush "script|flush" -2 [NOSCRIPT] [] "2.6.0" "O(N) with N scripts"
        "Forgets all scripts" { .tips(tips::NODES_ALL_SUCCEED) };
    ScriptKill "script|kill" 2 [NOSCRIPT ALLOW_BUSY] [] "2.6.0" "O(1)"
        "Ends the scripts that run on this node" { .tips(tips::SHARDS_ONE) };
    ScriptLoad "script|load" 3 [NOSCRIPT STALE] [] "2.6.0" "O(N) with N bytes"
        "Makes a script known and returns its digest" { .tips(tips::NODES_ALL_SUCCEED) };
    ScriptDebug "script|debug" 3 [NOSCRIPT] [] "3.2.0" "O(1)"
        "Would switch the debugger of scripts";
    ScriptHelp "script|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static FUNCTION: Scripting;

    FunctionDelete "function|delete" 3 [WRITE NOSCRIPT] [] "7.0.0" "O(1)"
        "Removes a library and its functions" { .tips(tips::SHARDS_ALL_SUCCEED) };
    FunctionDump "function|dump" 2 [NOSCRIPT] [] "7.0.0" "O(N) with N functions"
        "Returns all libraries in one payload";
    FunctionFlush "function|flush" -2 [WRITE NOSCRIPT] [] "7.0.0" "O(N) with N functions"
        "Removes all libraries" { .tips(tips::SHARDS_ALL_SUCCEED) };
    FunctionHelp "function|help" 2 [LOADING STALE] [] "7.0.0" "O(1)"
        "Describes the subcommands";
    FunctionKill "function|kill" 2 [NOSCRIPT ALLOW_BUSY] [] "7.0.0" "O(1)"
        "Ends the functions that run on this node" { .tips(tips::SHARDS_ONE) };
    FunctionList "function|list" -2 [NOSCRIPT] [] "7.0.0" "O(N) with N functions"
        "Lists libraries and their functions" { .tips(tips::UNSTABLE_ORDER) };
    FunctionLoad "function|load" -3 [WRITE DENYOOM NOSCRIPT] [] "7.0.0" "O(N) with N bytes of code"
        "Makes a library of functions" { .tips(tips::SHARDS_ALL_SUCCEED) };
    FunctionRestore "function|restore" -3 [WRITE DENYOOM NOSCRIPT] [] "7.0.0" "O(N) with N functions in the payload"
        "Makes the libraries of a payload" { .tips(tips::SHARDS_ALL_SUCCEED) };
    FunctionStats "function|stats" 2 [NOSCRIPT ALLOW_BUSY] [] "7.0.0" "O(1)"
        "Tells which function runs, and how many there are" { .tips(tips::SHARDS_SPECIAL) };
}
