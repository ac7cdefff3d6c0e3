//! Maps for the tests of this room.

use std::collections::BTreeMap;

use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{Addresses, ClusterMap, Liveness, LossPolicy, Membership, NodeRecord};

/// Members `1..=count`, all up in their first incarnation, each in a zone of its own.
pub fn map_of(count: u64) -> ClusterMap {
    let nodes = (1..=count).map(|id| (NodeId(id), record(&format!("zone {id}")))).collect::<BTreeMap<_, _>>();
    ClusterMap {
        cluster_id: ClusterId(1),
        epoch: Epoch(1),
        membership_epoch: Epoch(1),
        partitions: 64,
        replication: 2,
        placement_seed: 0,
        balance_permille: 0,
        loss_policy: LossPolicy::Empty,
        indices: nodes.keys().map(|node| Some(*node)).collect(),
        nodes,
        holders: BTreeMap::new(),
        primary_since: vec![Epoch(1); 64],
        emptied: BTreeMap::new(),
        lost_total: 0,
        settings: BTreeMap::new(),
    }
}

fn record(zone: &str) -> NodeRecord {
    NodeRecord {
        addresses: Addresses { host: "127.0.0.1".into(), client: 1, cluster: 2, peer: 3 },
        zone: zone.to_owned(),
        weight: 1,
        incarnation: Incarnation(1),
        liveness: Liveness::Up,
        membership: Membership::Member,
    }
}

/// The record of a node, to change it.
pub fn record_of(map: &mut ClusterMap, node: u64) -> &mut NodeRecord {
    map.nodes.get_mut(&NodeId(node)).unwrap()
}
