//! I8: a node that has not caught up is never read from and never counted.
//!
//! Whoever the node's own map calls a holder has a copy that was whole, and nobody else is treated as one.

use std::collections::BTreeMap;

use korum_node::store::Role;
use korum_protocol::map::PartitionId;

use crate::world::World;

/// What was seen so far.
#[derive(Default)]
pub struct Whole {
    /// By node and process: which copies were whole and have not been dropped since. One that is made equal in place,
    /// after a failover, keeps every acknowledged write meanwhile.
    copies: BTreeMap<(usize, u32), Vec<bool>>,
}

impl Whole {
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        for (number, member, node) in world.nodes() {
            let view = node.view();
            let run = node.local_peer().incarnation();
            let is_up = view.map.nodes.get(&node.id()).is_some_and(|it| it.is_up() && it.incarnation == run);
            let copies = self.copies.entry((number, member.runs)).or_default();
            copies.resize(node.store().len(), false);
            for partition in 0..node.store().len() as PartitionId {
                let row = view.row(partition);
                let locked = node.store().lock(partition);
                let counts = matches!(locked.role, Role::Primary(_) | Role::Replica { .. });
                let was_whole = &mut copies[usize::from(partition)];
                *was_whole = locked.history.position().is_some() || (*was_whole && counts);
                if !is_up {
                    continue;
                }
                let wrong = if counts != row.holders.contains(&node.id()) {
                    if counts { "counts as a copy but is no holder" } else { "is a holder without a copy" }
                } else if counts && !*was_whole {
                    "is a holder that never caught up"
                } else {
                    continue;
                };
                let (name, epoch) = (&member.host.name, view.map.epoch);
                return Err(format!("I8: {name} {wrong} of partition {partition} in epoch {epoch}"));
            }
        }
        Ok(())
    }
}
