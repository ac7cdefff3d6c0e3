//! One cluster map, ready for routing. Immutable.
//!
//! For: slot -> member in two array reads; checking a map that came from the network before it is used.
//! Not here: connections (`links` puts them beside the members), fetching (`refresh`).
//! Next: `target` asks this for the member of each key.

use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::{ClusterMap, View};

/// In `primaries`: nobody serves the partition.
const NOBODY: u16 = u16::MAX;

/// Position of a member in a topology; means nothing in another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct MemberIndex(u16);

impl MemberIndex {
    pub(crate) fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// A node as the client sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// Who.
    pub(crate) id: NodeId,
    /// Which run of it.
    pub(crate) incarnation: Incarnation,
    /// Is it up?
    pub(crate) up: bool,
    /// Where requests for its own keys go: its cluster port, or its client port if that is off.
    pub(crate) direct: Option<String>,
    /// Where the cluster answers as one (keyless commands): its client port, or its cluster port if that is off.
    pub(crate) whole: Option<String>,
}

/// A map and what routing needs of it.
#[derive(Debug)]
pub(crate) struct Topology {
    view: View,
    members: Vec<Member>,
    primaries: Vec<u16>,
}

impl Topology {
    /// Checks a map that came from a node and computes its placement (about a millisecond).
    ///
    /// # Errors
    /// In words, when the map contradicts itself so that computing with it could go wrong.
    pub(crate) fn new(map: ClusterMap) -> Result<Self, String> {
        if map.nodes.len() >= usize::from(NOBODY) {
            return Err(format!("{} nodes, more than this client can count", map.nodes.len()));
        }
        let view = View::checked(map)
            .map_err(|wrong| format!("a map that contradicts itself: {}", wrong.join("; ")))?;
        let members: Vec<Member> = view
            .map
            .nodes
            .iter()
            .map(|(&id, record)| Member {
                id,
                incarnation: record.incarnation,
                up: record.is_up(),
                direct: address(&record.addresses.host, [record.addresses.cluster, record.addresses.client]),
                whole: address(&record.addresses.host, [record.addresses.client, record.addresses.cluster]),
            })
            .collect();
        let index_of = |id: NodeId| members.binary_search_by_key(&id, |member| member.id).ok();
        let primaries = (0..view.map.partitions)
            .map(|partition| {
                let primary = view.row(partition as u16).primary.and_then(index_of);
                primary.map_or(NOBODY, |index| index as u16)
            })
            .collect();
        Ok(Self { view, members, primaries })
    }

    /// Version of the map.
    pub(crate) fn epoch(&self) -> Epoch {
        self.view.map.epoch
    }

    /// The map and its table.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// All members, by id.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Who serves a slot, if anybody does.
    pub(crate) fn primary_of(&self, slot: u16) -> Option<MemberIndex> {
        let partition = self.view.partition_of_slot(slot);
        match self.primaries[usize::from(partition)] {
            NOBODY => None,
            index => Some(MemberIndex(index)),
        }
    }

    /// The `turn`-th member that is up, counted round and round.
    pub(crate) fn nth_up(&self, turn: usize) -> Option<MemberIndex> {
        let count = self.members.iter().filter(|member| member.up).count();
        let wanted = turn.checked_rem(count)?;
        let (position, _) = self.members.iter().enumerate().filter(|(_, member)| member.up).nth(wanted)?;
        Some(MemberIndex(position as u16))
    }
}

/// `host:port` with the first port that is on.
fn address(host: &str, ports: [u16; 2]) -> Option<String> {
    let port = ports.into_iter().find(|&port| port != 0)?;
    // A bare IPv6 address needs its brackets.
    Some(if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    })
}

#[cfg(test)]
mod tests {
    use korum_protocol::id::Epoch;
    use korum_protocol::map::Liveness;

    use super::*;
    use crate::testing::{map, topology};

    #[test]
    fn a_slot_leads_to_the_primary_that_the_view_names() {
        let topology = topology(4, 3);
        assert_eq!(topology.epoch(), Epoch(3));
        for slot in 0..16_384 {
            let primary = topology.view().row(topology.view().partition_of_slot(slot)).primary;
            let member = topology.primary_of(slot).map(|index| topology.members()[index.get()].id);
            assert_eq!(member, primary);
        }
    }

    #[test]
    fn a_map_that_contradicts_itself_is_refused() {
        let mut broken = map(3, 1);
        broken.partitions = 100;
        assert!(Topology::new(broken).is_err());
        let mut broken = map(3, 1);
        broken.primary_since.clear();
        assert!(Topology::new(broken).is_err());
    }

    #[test]
    fn a_node_without_a_cluster_port_is_reached_at_its_client_port() {
        let mut map = map(1, 1);
        let record = map.nodes.values_mut().next().unwrap();
        record.addresses.cluster = 0;
        record.addresses.host = "::1".into();
        let topology = Topology::new(map).unwrap();
        assert_eq!(topology.members()[0].direct.as_deref(), Some("[::1]:6001"));
    }

    #[test]
    fn keyless_commands_never_go_to_a_node_that_is_down() {
        let mut map = map(3, 1);
        let down = *map.nodes.keys().next().unwrap();
        map.nodes.get_mut(&down).unwrap().liveness = Liveness::Down { excluded: true };
        let topology = Topology::new(map).unwrap();
        for turn in 0..10 {
            let chosen = topology.nth_up(turn).unwrap();
            assert_ne!(topology.members()[chosen.get()].id, down);
        }
    }
}
