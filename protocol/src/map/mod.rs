//! The cluster map: the one value that the nodes agree on through Raft.
//!
//! For: who is in the cluster, who holds what, and the settings that hold for all.
//! Not here: how it is agreed (the crate `korum-raft`), keys and values.
//! Next: `change` lists every way it may change, `apply` performs one, `view` adds the table.

pub mod apply;
pub mod change;
pub mod check;
pub mod databases;
mod settle;
pub mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{ClusterId, Epoch, Incarnation, NodeId};

pub use change::{MapChange, Move, Refusal, Registration};
pub use databases::{DATABASES_MAX, DatabaseOrder};
pub use view::{NodeList, Row, Table, View};

/// A partition's number, `0..partitions`.
pub type PartitionId = u16;

/// What all nodes agree on. A value: clone, change, check, swap.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ClusterMap {
    /// Which cluster this is.
    pub cluster_id: ClusterId,
    /// Version of this map.
    pub epoch: Epoch,
    /// Last epoch at which anything changed that replica sets or liveness depend on.
    /// A proposal that names an older one is refused, so that an outdated cutover can never apply.
    pub membership_epoch: Epoch,
    /// Number of partitions, a power of two in 64..=16384; fixed for ever.
    pub partitions: u32,
    /// Wanted copies of each partition, 1..=8; fewer while there are fewer nodes.
    pub replication: u8,
    /// Seed of all rankings; fixed for ever.
    pub placement_seed: u64,
    /// Bounded load in permille; 0 turns it off (PLACEMENT.md §6).
    pub balance_permille: u16,
    /// What happens to a partition whose holders are all gone.
    pub loss_policy: LossPolicy,
    /// All nodes, by id.
    pub nodes: BTreeMap<NodeId, NodeRecord>,
    /// The choose-k index space; `None` is a hole; the last is never a hole.
    pub indices: Vec<Option<NodeId>>,
    /// Holders of the partitions whose holders differ from their replica set, in ranking order.
    /// A holder is always up.
    pub holders: BTreeMap<PartitionId, Vec<NodeId>>,
    /// The era of each partition: the epoch at which its present primary became primary.
    pub primary_since: Vec<Epoch>,
    /// When a partition was last started empty because all its holders were gone.
    pub emptied: BTreeMap<PartitionId, Epoch>,
    /// How many times a partition was lost, since the cluster was created.
    pub lost_total: u64,
    /// Settings that hold for the whole cluster, as text.
    pub settings: BTreeMap<String, String>,
}

impl ClusterMap {
    /// What its nodes call the cluster when they meet: `cluster_id`, until an operator re-forms a lost quorum. Then it
    /// changes, so that nodes of the old quorum are strangers.
    #[must_use]
    pub fn formation(&self) -> ClusterId {
        let named = self.settings.get(apply::SETTING_FORMATION);
        named.and_then(|text| apply::parse_formation(text)).unwrap_or(self.cluster_id)
    }
}

/// What happens to a partition whose holders are all gone.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub enum LossPolicy {
    /// Its first candidate starts it empty: a cache goes on.
    #[default]
    Empty,
    /// It answers an error until an operator decides.
    Refuse,
}

/// What the map knows of one node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct NodeRecord {
    /// Where it is reached.
    pub addresses: Addresses,
    /// Failure domain; equal labels share one. Empty when unlabelled.
    pub zone: String,
    /// Share of the data, 1..=16.
    pub weight: u8,
    /// Which run of the node is meant.
    pub incarnation: Incarnation,
    /// Is it there?
    pub liveness: Liveness,
    /// Does it belong?
    pub membership: Membership,
}

impl NodeRecord {
    /// Up, and so able to hold and serve.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.liveness == Liveness::Up
    }

    /// May appear in replica sets: a member that is not down for long.
    #[must_use]
    pub fn is_eligible(&self) -> bool {
        self.membership == Membership::Member && self.liveness != (Liveness::Down { excluded: true })
    }
}

/// Where a node is reached. Ports of one host; 0 means that the port is off.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug, Default)]
pub struct Addresses {
    /// Host name or IP address that clients and peers use.
    pub host: String,
    /// Client port.
    pub client: u16,
    /// Cluster port, announced by `CLUSTER SLOTS`.
    pub cluster: u16,
    /// Peer port.
    pub peer: u16,
}

/// Is a node there?
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Liveness {
    /// It holds leases and may hold partitions.
    Up,
    /// It lost its leases and all its holdings; to come back it registers a newer incarnation.
    Down {
        /// Down for so long that replica sets no longer count on it.
        excluded: bool,
    },
}

/// Does a node belong?
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Membership {
    /// Known, follows the log, owns no index yet.
    Joining,
    /// Owns indices.
    Member,
    /// Owns indices still, but is in no replica set: its partitions move away.
    Leaving,
}
