//! Every way the map may change, and what each change assumes.
//!
//! For: the values that go through Raft. Conditional, so that a late or repeated one does nothing.
//! Next: `apply`.

use serde::{Deserialize, Serialize};

use super::{Addresses, LossPolicy, PartitionId};
use crate::id::{ClusterId, Epoch, Incarnation, NodeId};

/// One change of the map.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum MapChange {
    /// The first change: a cluster of one node, which holds everything.
    Create {
        /// The new cluster.
        cluster_id: ClusterId,
        /// Number of partitions.
        partitions: u32,
        /// Wanted copies.
        replication: u8,
        /// Seed of all rankings.
        placement_seed: u64,
        /// Policy for lost partitions.
        loss_policy: LossPolicy,
        /// The first node.
        node: NodeId,
        /// What is known of it.
        registration: Registration,
    },
    /// A node with a new id: becomes Joining and Up, owns no index yet. Refused if the id is known.
    Join {
        /// Its id.
        node: NodeId,
        /// What is known of it.
        registration: Registration,
    },
    /// A Joining node that is up with this incarnation becomes a Member and takes its indices.
    Admit {
        /// Its id.
        node: NodeId,
        /// The incarnation that was seen.
        incarnation: Incarnation,
    },
    /// A known node started again, or found that it was marked down: Up with a newer incarnation.
    /// It loses every holding of the older one. Refused unless the incarnation is newer.
    Register {
        /// Its id.
        node: NodeId,
        /// What is known of it now.
        registration: Registration,
    },
    /// An Up node with this incarnation is gone: Down, and it loses its holdings (this is failover).
    MarkDown {
        /// Its id.
        node: NodeId,
        /// The incarnation that is gone.
        incarnation: Incarnation,
    },
    /// A Down node with this incarnation has been away too long: replica sets stop counting on it.
    Exclude {
        /// Its id.
        node: NodeId,
        /// The incarnation that is gone.
        incarnation: Incarnation,
    },
    /// A member becomes Leaving: replica sets stop counting on it, its partitions move away.
    /// Refused if no other eligible node would remain.
    Drain {
        /// Its id.
        node: NodeId,
    },
    /// A node leaves the map; its indices become holes. Refused while it is up and holds anything,
    /// or if it is the last one.
    Forget {
        /// Its id.
        node: NodeId,
    },
    /// Copies are complete: their targets, members of the replica set, become holders.
    /// Only the primary proposes this; if it will not be the primary afterwards it serves nothing of the
    /// partition from before it proposes until it has seen the outcome.
    /// A move may name a holder: the holders are then only put in order, and surplus ones dropped.
    /// Moves whose assumption fails are skipped.
    Cutover {
        /// The membership epoch in which the copies were made.
        membership_epoch: Epoch,
        /// Which partitions, and to whom.
        moves: Vec<Move>,
    },
    /// Replicas did not acknowledge in time: they stop being holders; never the primary.
    /// Drops whose assumption fails are skipped.
    DropHolders {
        /// Which partitions, and whose copies.
        drops: Vec<Move>,
    },
    /// Another number of copies, 1..=8.
    SetReplication {
        /// Wanted copies.
        replication: u8,
    },
    /// Another share of the data, 1..=16.
    SetWeight {
        /// Its id.
        node: NodeId,
        /// The new weight.
        weight: u8,
    },
    /// A cluster-wide setting; `None` removes it.
    Set {
        /// Name of the setting.
        name: String,
        /// Its value.
        value: Option<String>,
    },
    /// Highest live indices move into the lowest holes (PLACEMENT.md §5).
    Compact,
    /// Two databases change their keys. Refused unless there were so many swaps before.
    SwapDatabases {
        /// One of them.
        first: u8,
        /// The other.
        second: u8,
        /// How many swaps the proposer has seen.
        swaps: u64,
    },
}

/// What a node says of itself when it registers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Registration {
    /// Where it is reached.
    pub addresses: Addresses,
    /// Its failure domain.
    pub zone: String,
    /// Its share of the data (kept from the map when a known node registers again).
    pub weight: u8,
    /// Which run of it this is.
    pub incarnation: Incarnation,
}

/// One partition and one node whose copy is added or dropped. Assumes that the era still is `era`,
/// and that the node is up with `incarnation`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Move {
    /// The partition.
    pub partition: PartitionId,
    /// The era of the primary that proposes this.
    pub era: Epoch,
    /// Whose copy.
    pub node: NodeId,
    /// Which run of that node.
    pub incarnation: Incarnation,
}

/// Why a change was not applied. The map is as it was.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, thiserror::Error)]
pub enum Refusal {
    /// What the change assumed no longer holds, nor ever will again; there is nothing to do.
    #[error("the change is out of date: {reason}")]
    Outdated {
        /// The epoch of the map that it met: whoever has seen that map knows whether an earlier attempt
        /// at the same change was agreed.
        at: Epoch,
        /// What no longer holds.
        reason: String,
    },
    /// The change is not allowed.
    #[error("{0}")]
    Forbidden(String),
}
