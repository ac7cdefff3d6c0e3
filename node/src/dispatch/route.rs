//! Where does a command run?
//!
//! For: turning a map, the slots of a command's keys and the port it came in at into a [`Route`].
//! Not here: stores, sockets, clocks, reply bytes.
//! Next: `batch` acts on it.

use korum_protocol::id::NodeId;
use korum_protocol::map::{PartitionId, View};

/// The answer to a command on a partition that nobody serves.
pub const NOT_SERVED: &str = "CLUSTERDOWN Hash slot not served";

/// Which door a command came through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Port {
    /// The whole cluster behaves as one Redis: commands are forwarded.
    Client,
    /// This node speaks for itself, as a node of a Redis Cluster does: commands are redirected.
    Cluster,
    /// Forwarded by another node: executed here or handed back.
    Forwarded,
}

/// Where a command with keys runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// On this node's partition.
    Here(PartitionId),
    /// On the node that is the partition's primary.
    Forward(NodeId, PartitionId),
    /// The client shall ask there itself.
    Moved(u16, NodeId),
    /// The keys are not all in one slot.
    CrossSlot,
    /// Nobody serves the partition.
    Down(PartitionId),
    /// Not here, and the sender is to look at a newer map.
    Elsewhere,
}

/// Routes a command whose keys have these slots (at least one).
#[must_use]
pub fn route(view: &View, me: NodeId, port: Port, slots: impl IntoIterator<Item = u16>) -> Route {
    let mut slots = slots.into_iter();
    let Some(slot) = slots.next() else { return Route::CrossSlot };
    if slots.any(|other| other != slot) {
        return Route::CrossSlot;
    }
    let partition = view.partition_of_slot(slot);
    match (view.row(partition).primary, port) {
        (Some(primary), _) if primary == me => Route::Here(partition),
        (_, Port::Forwarded) => Route::Elsewhere,
        (None, _) => Route::Down(partition),
        (Some(primary), Port::Client) => Route::Forward(primary, partition),
        (Some(primary), Port::Cluster) => Route::Moved(slot, primary),
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::map::{LossPolicy, MapChange};

    use super::*;
    use crate::command::test_maps::{grown, single};

    const ME: NodeId = NodeId(1);

    /// A slot of which node 1 is primary, and one of which it is not.
    fn slots(view: &View) -> (u16, u16) {
        let slot_of = |is_mine: bool| {
            (0..16384)
                .find(|&slot| (view.row(view.partition_of_slot(slot)).primary == Some(ME)) == is_mine)
                .unwrap()
        };
        (slot_of(true), slot_of(false))
    }

    #[test]
    fn each_port_sends_a_command_its_own_way() {
        let view = grown(64);
        let (mine, other) = slots(&view);
        let (here, there) = (view.partition_of_slot(mine), view.partition_of_slot(other));
        let primary = view.row(there).primary.unwrap();
        for port in [Port::Client, Port::Cluster, Port::Forwarded] {
            assert_eq!(route(&view, ME, port, [mine]), Route::Here(here), "{port:?}");
        }
        assert_eq!(route(&view, ME, Port::Client, [other]), Route::Forward(primary, there));
        assert_eq!(route(&view, ME, Port::Cluster, [other]), Route::Moved(other, primary));
        assert_eq!(route(&view, ME, Port::Forwarded, [other]), Route::Elsewhere);
    }

    #[test]
    fn keys_in_two_slots_cross() {
        let view = single(64);
        assert_eq!(route(&view, ME, Port::Client, [1, 1]), Route::Here(view.partition_of_slot(1)));
        assert_eq!(route(&view, ME, Port::Client, [1, 2]), Route::CrossSlot);
        assert_eq!(route(&view, ME, Port::Cluster, [1, 2]), Route::CrossSlot);
    }

    #[test]
    fn a_partition_that_nobody_serves_is_down() {
        let mut map = single(64).map;
        map.loss_policy = LossPolicy::Refuse;
        let view = View::new(map);
        let incarnation = view.map.nodes[&ME].incarnation;
        let view = view.apply(&MapChange::MarkDown { node: ME, incarnation }).unwrap();
        let down = Route::Down(view.partition_of_slot(9));
        assert_eq!(route(&view, ME, Port::Client, [9]), down);
        assert_eq!(route(&view, ME, Port::Cluster, [9]), down);
    }
}
