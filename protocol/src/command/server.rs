//! The server as a whole: settings, statistics, commands about commands.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{Categories, KeyFlags, KeySpec, tips};

/// Looks at the key behind a subcommand, not at its value.
const LOOK_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RO]);

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Server;

    Command "command" -1 [LOADING STALE] [] "2.8.13" "O(N) with N commands"
        "Describes all commands"
        { .also(&[Categories::CONNECTION]).tips(tips::UNSTABLE_ORDER).subcommands(COMMAND) };
    Info "info" -1 [LOADING STALE] [] "1.0.0" "O(1)"
        "Describes the state of the server" { .also(&[Categories::DANGEROUS]).tips(tips::SHARDS_SPECIAL) };
    Config "config" -2 [] [] "2.0.0" "Depends on the subcommand"
        "Asks and changes settings" { .subcommands(CONFIG) };
    DbSize "dbsize" 1 [READONLY FAST ALL_NODES] [] "1.0.0" "O(1)"
        "Returns the number of keys" { .also(&[Categories::KEYSPACE]).tips(tips::SHARDS_SUM) };
    FlushDb "flushdb" -1 [WRITE ALL_NODES] [] "1.0.0" "O(N) with N keys"
        "Deletes all keys of the database"
        { .also(&[Categories::DANGEROUS, Categories::KEYSPACE]).tips(tips::SHARDS_ALL_SUCCEED) };
    FlushAll "flushall" -1 [WRITE ALL_NODES] [] "1.0.0" "O(N) with N keys"
        "Deletes all keys of all databases"
        { .also(&[Categories::DANGEROUS, Categories::KEYSPACE]).tips(tips::SHARDS_ALL_SUCCEED) };
    SwapDb "swapdb" 3 [WRITE FAST] [] "4.0.0" "O(P) with P partitions"
        "Swaps the keys of two databases" { .also(&[Categories::DANGEROUS, Categories::KEYSPACE]) };
    Time "time" 1 [LOADING STALE FAST] [] "2.6.0" "O(1)"
        "Returns the server's time" { .tips(tips::UNSTABLE) };
    Shutdown "shutdown" -1 [ADMIN NOSCRIPT LOADING STALE NO_MULTI ALLOW_BUSY] [] "1.0.0" "O(1), or O(N) with N keys to save"
        "Stops the server";
    Lolwut "lolwut" -1 [READONLY FAST] [] "5.0.0" "O(1)"
        "Shows the version and a picture";
    Memory "memory" -2 [] [] "4.0.0" "Depends on the subcommand"
        "Looks into the use of memory" { .subcommands(MEMORY) };
    Slowlog "slowlog" -2 [] [] "2.2.12" "Depends on the subcommand"
        "Looks at commands that took long" { .subcommands(SLOWLOG) };
    Latency "latency" -2 [] [] "2.8.13" "Depends on the subcommand"
        "Looks for what delays commands" { .subcommands(LATENCY) };
    Acl "acl" -2 [] [] "6.0.0" "Depends on the subcommand"
        "Asks and changes what users may do" { .subcommands(ACL) };
    Debug "debug" -2 [ADMIN NOSCRIPT LOADING STALE] [] "1.0.0" "Depends on the subcommand"
        "Helps those who develop the server" { .system() };
    Role "role" 1 [NOSCRIPT LOADING STALE FAST] [] "2.8.12" "O(1)"
        "Returns the role of the node in replication" { .also(&[Categories::ADMIN, Categories::DANGEROUS]) };
    Module "module" -2 [] [] "4.0.0" "Depends on the subcommand"
        "Looks at modules" { .subcommands(MODULE) };
    Monitor "monitor" 1 [ADMIN NOSCRIPT LOADING STALE] [] "1.0.0" "O(1)"
        "Shows all commands that come in";
}

commands! {
    static COMMAND: Server;

    CommandCount "command|count" 2 [LOADING STALE] [] "2.8.13" "O(1)"
        "Returns the number of commands" { .also(&[Categories::CONNECTION]) };
    CommandInfo "command|info" -2 [LOADING STALE] [] "2.8.13" "O(N) with N commands asked for"
        "Describes some commands, or all" { .also(&[Categories::CONNECTION]).tips(tips::UNSTABLE_ORDER) };
    CommandDocs "command|docs" -2 [LOADING STALE] [] "7.0.0" "O(N) with N commands asked for"
        "Documents some commands, or all" { .also(&[Categories::CONNECTION]).tips(tips::UNSTABLE_ORDER) };
    CommandList "command|list" -2 [LOADING STALE] [] "7.0.0" "O(N) with N commands"
        "Lists the names of commands" { .also(&[Categories::CONNECTION]).tips(tips::UNSTABLE_ORDER) };
    CommandGetkeys "command|getkeys" -4 [LOADING STALE] [] "2.8.13" "O(N) with N arguments"
        "Finds the keys in a whole command" { .also(&[Categories::CONNECTION]) };
    CommandGetkeysandflags "command|getkeysandflags" -4 [LOADING STALE] [] "7.0.0" "O(N) with N arguments"
        "Finds the keys in a whole command and what happens to them" { .also(&[Categories::CONNECTION]) };
    CommandHelp "command|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands" { .also(&[Categories::CONNECTION]) };
}

commands! {
    static CONFIG: Server;

    ConfigGet "config|get" -3 [ADMIN NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N settings"
        "Returns settings";
    ConfigSet "config|set" -4 [ADMIN NOSCRIPT LOADING STALE] [] "2.0.0" "O(N) with N settings"
        "Changes settings while the server runs" { .tips(tips::NODES_ALL_SUCCEED) };
    ConfigResetstat "config|resetstat" 2 [ADMIN NOSCRIPT LOADING STALE] [] "2.0.0" "O(1)"
        "Sets the statistics back to zero";
    ConfigRewrite "config|rewrite" 2 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.0" "O(1)"
        "Writes the present settings to the configuration file";
    ConfigHelp "config|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static MEMORY: Server;

    MemoryUsage "memory|usage" -3 [READONLY] [LOOK_SECOND] "4.0.0" "O(N) with N samples"
        "Estimates the memory that a key takes";
    MemoryDoctor "memory|doctor" 2 [] [] "4.0.0" "O(1)"
        "Reports problems with memory" { .tips(tips::SHARDS_SPECIAL) };
    MemoryStats "memory|stats" 2 [] [] "4.0.0" "O(1)"
        "Describes the use of memory" { .tips(tips::SHARDS_SPECIAL) };
    MemoryPurge "memory|purge" 2 [] [] "4.0.0" "Depends on the memory in use, may be slow"
        "Asks the allocator to give memory back" { .tips(tips::SHARDS_ALL_SUCCEED) };
    MemoryMallocStats "memory|malloc-stats" 2 [] [] "4.0.0" "Depends on the allocator"
        "Shows what the allocator counts" { .tips(tips::SHARDS_SPECIAL) };
    MemoryHelp "memory|help" 2 [LOADING STALE] [] "4.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static SLOWLOG: Server;

    SlowlogGet "slowlog|get" -2 [ADMIN LOADING STALE] [] "2.2.12" "O(N) with N entries"
        "Returns the newest entries of the log" { .tips(tips::NODES_UNSTABLE) };
    SlowlogLen "slowlog|len" 2 [ADMIN LOADING STALE] [] "2.2.12" "O(1)"
        "Returns the number of entries of the log" { .tips(tips::NODES_SUM_UNSTABLE) };
    SlowlogReset "slowlog|reset" 2 [ADMIN LOADING STALE] [] "2.2.12" "O(N) with N entries"
        "Empties the log" { .tips(tips::NODES_ALL_SUCCEED) };
    SlowlogHelp "slowlog|help" 2 [LOADING STALE] [] "6.2.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static MODULE: Server;

    ModuleList "module|list" 2 [ADMIN NOSCRIPT] [] "4.0.0" "O(N) with N modules"
        "Lists the modules that are loaded" { .tips(tips::UNSTABLE_ORDER) };
    ModuleHelp "module|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static ACL: Server;

    AclCat "acl|cat" -2 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1), a category is of bounded size"
        "Lists the categories of commands, or the commands of one";
    AclDeluser "acl|deluser" -3 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N connections"
        "Removes users, and closes their connections";
    AclDryrun "acl|dryrun" -4 [ADMIN NOSCRIPT LOADING STALE] [] "7.0.0" "O(N) with N arguments"
        "Tells whether a user may run a command, without running it";
    AclGenpass "acl|genpass" -2 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Makes a password that nobody guesses";
    AclGetuser "acl|getuser" 3 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N rules of the user"
        "Describes a user";
    AclList "acl|list" 2 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N users"
        "Describes all users, by the rules that make them";
    AclLoad "acl|load" 2 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Reads users from a file";
    AclLog "acl|log" -2 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N entries"
        "Shows what was denied, or forgets it";
    AclSave "acl|save" 2 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Writes users to a file";
    AclSetuser "acl|setuser" -3 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N rules"
        "Makes a user, or changes one";
    AclUsers "acl|users" 2 [ADMIN NOSCRIPT LOADING STALE] [] "6.0.0" "O(N) with N users"
        "Lists the names of all users";
    AclWhoami "acl|whoami" 2 [NOSCRIPT LOADING STALE] [] "6.0.0" "O(1)"
        "Returns the user of this connection";
    AclHelp "acl|help" 2 [LOADING STALE] [] "6.0.0" "O(1)"
        "Describes the subcommands";
}

commands! {
    static LATENCY: Server;

    LatencyDoctor "latency|doctor" 2 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.13" "O(1)"
        "Reports delays in words" { .tips(tips::NODES_SPECIAL) };
    LatencyGraph "latency|graph" 3 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.13" "O(1)"
        "Draws the delays of one kind" { .tips(tips::NODES_SPECIAL) };
    LatencyHistogram "latency|histogram" -2 [ADMIN NOSCRIPT LOADING STALE] [] "7.0.0" "O(N) with N commands"
        "Counts commands by the time they took" { .tips(tips::NODES_SPECIAL) };
    LatencyHistory "latency|history" 3 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.13" "O(1)"
        "Returns the delays of one kind over time" { .tips(tips::NODES_SPECIAL) };
    LatencyLatest "latency|latest" 2 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.13" "O(1)"
        "Returns the newest delay of each kind" { .tips(tips::NODES_SPECIAL) };
    LatencyReset "latency|reset" -2 [ADMIN NOSCRIPT LOADING STALE] [] "2.8.13" "O(1)"
        "Forgets delays" { .tips(tips::NODES_ALL_SUCCEED) };
    LatencyHelp "latency|help" 2 [LOADING STALE] [] "2.8.13" "O(1)"
        "Describes the subcommands";
}
