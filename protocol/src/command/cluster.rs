//! What Redis Cluster clients ask and say.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::{Categories, tips};

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Cluster;

    ReadOnly "readonly" 1 [LOADING STALE FAST] [] "3.0.0" "O(1)"
        "Allows this connection to read from replicas" { .also(&[Categories::CONNECTION]) };
    ReadWrite "readwrite" 1 [LOADING STALE FAST] [] "3.0.0" "O(1)"
        "Takes back what READONLY allowed" { .also(&[Categories::CONNECTION]) };
    Asking "asking" 1 [FAST] [] "3.0.0" "O(1)"
        "Lets the next command follow an ASK redirect" { .also(&[Categories::CONNECTION]) };
    Cluster "cluster" -2 [] [] "3.0.0" "Depends on the subcommand"
        "Asks and changes the cluster" { .subcommands(CLUSTER) };
}

commands! {
    static CLUSTER: Cluster;

    ClusterInfo "cluster|info" 2 [STALE] [] "3.0.0" "O(1)"
        "Describes the state of the cluster" { .tips(tips::UNSTABLE) };
    ClusterMyid "cluster|myid" 2 [STALE] [] "3.0.0" "O(1)"
        "Returns the id of this node";
    ClusterNodes "cluster|nodes" 2 [STALE] [] "3.0.0" "O(N) with N nodes"
        "Lists all nodes and their slots" { .tips(tips::UNSTABLE) };
    ClusterSlots "cluster|slots" 2 [STALE] [] "3.0.0" "O(N) with N nodes"
        "Lists ranges of slots and the nodes that serve them"
        { .tips(tips::UNSTABLE).deprecated("7.0.0", "`CLUSTER SHARDS`") };
    ClusterShards "cluster|shards" 2 [STALE] [] "7.0.0" "O(N) with N nodes"
        "Lists shards, their slots and their nodes" { .tips(tips::UNSTABLE) };
    ClusterKeyslot "cluster|keyslot" 3 [STALE] [] "3.0.0" "O(N) with N bytes in the key"
        "Returns the slot of a key";
    ClusterCountkeysinslot "cluster|countkeysinslot" 3 [STALE] [] "3.0.0" "O(1)"
        "Counts this node's keys in a slot";
    ClusterGetkeysinslot "cluster|getkeysinslot" 4 [STALE] [] "3.0.0" "O(N) with N keys asked for"
        "Returns names of this node's keys in a slot" { .tips(tips::UNSTABLE) };
    ClusterMeet "cluster|meet" -4 [ADMIN STALE NO_ASYNC_LOADING] [] "3.0.0" "O(1)"
        "Makes this node meet another";
    ClusterForget "cluster|forget" 3 [ADMIN STALE NO_ASYNC_LOADING] [] "3.0.0" "O(1)"
        "Removes a node from the cluster";
    ClusterLinks "cluster|links" 2 [STALE] [] "7.0.0" "O(N) with N nodes"
        "Describes the links between nodes" { .tips(tips::UNSTABLE) };
    ClusterCountFailureReports "cluster|count-failure-reports" 3 [ADMIN STALE] [] "3.0.0" "O(N)"
        "Counts the nodes that report a node as failed" { .tips(tips::UNSTABLE) };
    ClusterReplicas "cluster|replicas" 3 [ADMIN STALE] [] "5.0.0" "O(1)"
        "Lists the replicas of a node" { .tips(tips::UNSTABLE) };
    ClusterSlaves "cluster|slaves" 3 [ADMIN STALE] [] "3.0.0" "O(1)"
        "Lists the replicas of a node" { .tips(tips::UNSTABLE).deprecated("5.0.0", "`CLUSTER REPLICAS`") };
    ClusterHelp "cluster|help" 2 [LOADING STALE] [] "5.0.0" "O(1)"
        "Describes the subcommands";
}
