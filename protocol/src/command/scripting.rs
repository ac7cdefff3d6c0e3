//! Scripts in Lua.
//!
//! For: the facts of the family, as data.
//! Not here: parsing and executing: the node's `command::script` and `dispatch::scripts` do both.

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
