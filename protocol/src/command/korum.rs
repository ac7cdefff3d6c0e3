//! `KORUM`: what operators ask of the cluster and tell it.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `admin` does both.

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Korum;

    Korum "korum" -2 [] [] "0.1.0" "Depends on the subcommand"
        "Asks and changes a Korum cluster" { .subcommands(KORUM) };
}

commands! {
    static KORUM: Korum;

    KorumMap "korum|map" -2 [LOADING STALE] [] "0.1.0" "O(N) with N nodes and partitions"
        "Returns the map of the cluster";
    KorumStatus "korum|status" -2 [LOADING STALE] [] "0.1.0" "O(N) with N nodes"
        "Describes nodes, partitions and what moves";
    KorumExplain "korum|explain" 3 [LOADING STALE] [] "0.1.0" "O(N) with N nodes"
        "Explains where a key lives and why";
    KorumPlan "korum|plan" -2 [LOADING STALE] [] "0.1.0" "O(N) with N partitions"
        "Shows what would move when nodes are added or removed";
    KorumDrain "korum|drain" -2 [ADMIN NOSCRIPT STALE] [] "0.1.0" "O(1), the moves take longer"
        "Moves everything off a node, then lets it leave";
    KorumForget "korum|forget" 3 [ADMIN NOSCRIPT STALE] [] "0.1.0" "O(1)"
        "Removes a node that is gone";
    KorumReplication "korum|replication" -2 [ADMIN NOSCRIPT STALE] [] "0.1.0" "O(1), the moves take longer"
        "Returns or sets the number of copies of every partition";
    KorumWeight "korum|weight" -3 [ADMIN NOSCRIPT STALE] [] "0.1.0" "O(1), the moves take longer"
        "Returns or sets the share of a node";
    KorumReformQuorum "korum|reform-quorum" -2 [ADMIN NOSCRIPT LOADING STALE] [] "0.1.0" "O(N) with N nodes"
        "Re-forms a quorum that is lost for good from the nodes that are left";
    KorumConsistency "korum|consistency" -2 [NOSCRIPT LOADING STALE] [] "0.1.0" "O(1)"
        "Returns or sets what a write waits for";
    KorumSafeToStop "korum|safe-to-stop" -3 [LOADING STALE] [] "0.1.0" "O(N) with N partitions"
        "Tells whether nodes may be stopped, and why not";
    KorumPeer "korum|peer" 2 [LOADING STALE] [] "0.1.0" "O(1)"
        "Returns the peer address of this node, for a node that joins";
    KorumPart "korum|part" -4 [READONLY] [] "0.1.0" "O(N) with N keys of the partition"
        "Asks one partition; internal";
    KorumClear "korum|clear" -3 [WRITE] [] "0.1.0" "O(N) with N keys of the partition"
        "Empties one partition, of all databases or of one; internal";
    KorumWatch "korum|watch" -4 [READONLY] [] "0.1.0" "O(N) with N keys"
        "Returns the position of a partition, from which on its history tells what changed; internal";
    KorumExec "korum|exec" -4 [WRITE] [] "0.1.0" "Depends on the commands in it"
        "Executes a transaction on one partition; internal";
    KorumExecRo "korum|exec-ro" -4 [READONLY] [] "0.1.0" "Depends on the commands in it"
        "Executes a transaction that only reads on one partition; internal";
    KorumReady "korum|ready" -5 [READONLY] [] "0.1.0" "O(N) with N keys"
        "Tells which of some keys is the first that has something, or waits for it; internal";
    KorumEval "korum|eval" -6 [WRITE] [] "0.1.0" "Depends on the script"
        "Runs a script on one partition; internal";
    KorumEvalRo "korum|eval-ro" -6 [READONLY] [] "0.1.0" "Depends on the script"
        "Runs a script that only reads on one partition; internal";
    KorumFCall "korum|fcall" -5 [WRITE] [] "0.1.0" "Depends on the function"
        "Runs a function on one partition; internal";
    KorumFCallRo "korum|fcall-ro" -5 [READONLY] [] "0.1.0" "Depends on the function"
        "Runs a function that only reads on one partition; internal";
    KorumLibraries "korum|libraries" 5 [READONLY] [] "0.1.0" "O(N) with N bytes of code"
        "Returns the libraries of functions, unless the asker knows them; internal";
    KorumChangeLibraries "korum|change-libraries" -4 [WRITE] [] "0.1.0" "O(N) with N bytes of code"
        "Changes the libraries of functions; internal";
    KorumScript "korum|script" -3 [] [] "0.1.0" "O(N) with N digests"
        "Asks a node what it knows of scripts; internal";
    KorumHelp "korum|help" 2 [LOADING STALE] [] "0.1.0" "O(1)"
        "Describes the subcommands";
}
