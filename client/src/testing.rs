//! Maps for tests.

use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{Addresses, ClusterMap, Liveness, LossPolicy, Membership, NodeRecord};

use crate::topology::Topology;

/// A cluster of `nodes` nodes at an epoch, all up; node ids from 1.
pub(crate) fn map(nodes: u64, epoch: u64) -> ClusterMap {
    let record = |id: u64| NodeRecord {
        addresses: Addresses {
            host: "127.0.0.1".into(),
            client: 6_000 + id as u16,
            cluster: 16_000 + id as u16,
            peer: 1,
        },
        zone: String::new(),
        weight: 1,
        incarnation: Incarnation(1),
        liveness: Liveness::Up,
        membership: Membership::Member,
    };
    ClusterMap {
        cluster_id: ClusterId(1),
        epoch: Epoch(epoch),
        membership_epoch: Epoch(epoch),
        partitions: 64,
        replication: 1,
        placement_seed: 7,
        balance_permille: 0,
        loss_policy: LossPolicy::Empty,
        nodes: (1..=nodes).map(|id| (NodeId(id), record(id))).collect(),
        indices: (1..=nodes).map(|id| Some(NodeId(id))).collect(),
        holders: Default::default(),
        primary_since: vec![Epoch(1); 64],
        emptied: Default::default(),
        lost_total: 0,
        settings: Default::default(),
    }
}

/// Its topology.
pub(crate) fn topology(nodes: u64, epoch: u64) -> Topology {
    Topology::new(map(nodes, epoch)).expect("a map made here is valid")
}
